package archtest

// storeRoom is one part of internal/store: its files may refer to each other and to those of the rooms before it.
type storeRoom struct {
	name     string
	receiver string // of its methods that others call; "" where it has none
	holds    string
	files    []string
}

// storeRooms are the rooms of internal/store, the lowest first. A new file needs a line in one of them; its name begins with its
// noun. Decision 23 says why they are no packages.
var storeRooms = []storeRoom{
	{"base", "", "what all parts stand on: the transaction with what follows from it, the lanes that it holds, keys of mutations, revisions, the log's line of a span", []string{
		"base", "lanerow", "mutationkey", "revision", "runrow", "spanlog",
	}},
	{"queue", "Queue", "requests, runs, lanes, budgets and offers: what waits, what is claimed next, how a run ends", []string{
		"activity", "backlog", "budget", "budgetcharge", "budgetguard", "budgetrelease",
		"claim", "claimahead", "claimbrake", "claimer", "claimerror", "claimlanes", "claimlaunch", "claimnext", "claimtake", "claimtask",
		"executor", "executortest", "hold", "holdmany", "inbox", "lane", "laneholder", "laneresting", "lanestarved", "notificationoutbox", "offer", "offermove", "offerwaiters",
		"queue", "request", "requestsend", "resend", "route", "routewrite",
		"run", "runact", "runback", "runcancel", "runcancelmany", "runcancelqueued", "runcheckout", "runend", "runfireend", "runleave", "runpark", "runretry", "runretrymany", "runsecret", "runsettle", "runspan", "runspend", "runsummary", "rununfinished",
		"session", "wake", "wakebatch",
	}},
	{"tasks", "Tasks", "the board, and the wakes that follow from a change of it", []string{
		"task", "taskapproval", "taskarchive", "taskassign", "taskblockers", "taskcomment", "taskcreate", "taskdrop", "taskend", "taskmove", "taskparticipants",
		"taskrun", "tasks", "taskupdate", "taskword",
	}},
	{"routines", "Routines", "schedules, webhooks, and the fires they lead to", []string{
		"fire", "firebatch", "firecall", "firecallchain", "firecalltrigger", "firepreview", "firequeue", "firewait", "firewrite",
		"routine", "routinebackfill", "routinechange", "routinehold", "routinelastrun", "routinerow", "routines", "routinetask", "trigger", "triggerchange", "triggerwebhook",
	}},
	{"attempts", "Attempts", "the life of one claimed run: start, reports, end, rescue", []string{
		"attempt", "attemptaccept", "attemptacquire", "attemptact", "attemptaction", "attemptcancelled", "attemptclaim", "attemptcopy", "attemptfail", "attemptfinish", "attemptlink", "attemptlog", "attemptoutcome", "attemptprocess", "attemptprompt",
		"attemptreacquire", "attemptrecovery", "attemptreport", "attemptrescue", "attempts", "attemptsession", "attemptstart", "attemptstartwrite", "attempttransition", "attemptwakes", "attemptword", "attemptworker",
	}},
	{"records", "Records", "what people set up, and the upkeep of the rows", []string{
		"agent", "agentdelete", "agentupdate", "costtally", "instance", "instancefeed", "instancepresence", "instanceprocess", "instancereseal", "instancesnapshot", "notificationchannel", "notificationdelivery", "project", "records", "repair", "repaircheckout", "repaircost", "repairfire", "repairorphan", "retention", "settings", "shapetally",
		"token", "workflow", "workspace", "workspacehold",
	}},
	{"top", "", "the parts put together", []string{"store"}},
}
