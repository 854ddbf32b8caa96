package prompt

import (
	"flag"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
)

var update = flag.Bool("update", false, "write the golden files anew")

// situation is what a run is woken by, in one of the forms of its source. Of runs about a task the golden files show the prompt of a
// resumed session, too; a run without a task never resumes one (SPEC S7.2).
type situation struct {
	name string
	task bool
	wake Wake
}

var ben = Outcome{AgentID: "agt_2", Agent: "Ben", Part: "assignee", Text: "The importer reads all three formats.\nIt is not tried with empty files.", At: noon.Add(-time.Hour)}

// situations are what an agent is woken by.
func situations() []situation {
	reviewer := Outcome{AgentID: "agt_3", Agent: "Cleo", Part: "reviewer", Text: "Nothing tests the limit.", At: noon.Add(-time.Hour)}
	routine := Wake{Source: domain.WakeupSourceRoutine, At: noon, Routine: "Watch the queue", Text: "Look at the queue of north.",
		Payload: &domain.RoutinePayload{RoutineID: "rtn_1", TriggerID: "trg_1", RoutineRunID: "rrn_1",
			Variables: map[string]string{"region": "north", "depth": "3"}, ScheduledFor: noon, MissedTicks: 12, MissedSince: noon.Add(-36 * time.Hour)}}
	manual, webhook := routine, routine
	manual.Payload = &domain.RoutinePayload{RoutineID: "rtn_1", RoutineRunID: "rrn_2"}
	body := `{"action": "opened", "pull_request": {"number": 7, "title": "Read <empty> files"}}`
	webhook.Text = "Look at the pull request."
	webhook.Payload = &domain.RoutinePayload{RoutineID: "rtn_1", TriggerID: "trg_2", RoutineRunID: "rrn_3",
		Variables: map[string]string{"payload": body, "action": "opened", "pull_request": `{"number":7,"title":"Read <empty> files"}`}}
	task := func(source domain.WakeupSource, basis domain.WakeBasis) Wake {
		return Wake{Source: source, At: noon, Payload: &domain.TaskPayload{TaskID: "tsk_1", Basis: basis}}
	}
	assigned, review, approval := task(domain.WakeupSourceTaskAssigned, domain.WakeBasisAssignee), task(domain.WakeupSourceTaskAssigned, domain.WakeBasisReviewer), task(domain.WakeupSourceTaskAssigned, domain.WakeBasisApprover)
	assigned.Outcomes, review.Outcomes, approval.Outcomes = []Outcome{reviewer}, []Outcome{ben}, []Outcome{ben}
	approval.Approvals = []Approval{{ID: "apr_1", Question: "May the importer go out?"}}
	children := task(domain.WakeupSourceTaskChildrenCompleted, "")
	children.Tasks = []TaskRef{{ID: "tsk_4", Title: "Write the importer", State: domain.TaskStateDone, Outcome: &Outcome{AgentID: "agt_2", Agent: "Ben", Text: ben.Text}},
		{ID: "tsk_5", Title: "Write its page", State: domain.TaskStateCancelled}}
	return []situation{
		{"routine_schedule", false, routine},
		{"routine_manual", false, manual},
		{"routine_webhook", false, webhook},
		{"comment", true, commentWake(1)},
		{"agent_error", false, Wake{Source: domain.WakeupSourceAgentError, At: noon, Agent: "Ben",
			Payload: &domain.AgentErrorPayload{FailedAgentID: "agt_2", FailedSessionID: "ses_1", RunID: "run_9", Error: "exit code 3\ndisk full"}}},
		{"self", false, Wake{Source: domain.WakeupSourceSelf, At: noon, Payload: &domain.SelfPayload{Reason: "test", Payload: map[string]any{"b": 1, "a": "x"}}}},
		{"user", false, Wake{Source: domain.WakeupSourceUser, At: noon, User: "Ann", Payload: &domain.UserPayload{UserID: "usr_1", Context: map[string]any{"question": "how far?"}}}},
		{"task_assigned", true, assigned},
		{"task_review", true, review},
		{"task_approval", true, approval},
		{"task_by_name", true, task(domain.WakeupSourceTaskAssigned, domain.WakeBasisExplicit)},
		{"task_blockers_resolved", true, Wake{Source: domain.WakeupSourceTaskBlockersResolved, At: noon,
			Payload: &domain.BlockersPayload{TaskID: "tsk_1", ResolvedBlockerIDs: []string{"tsk_2", "tsk_3"}},
			Tasks: []TaskRef{{ID: "tsk_2", Title: "Design", State: domain.TaskStateDone, Outcome: &Outcome{AgentID: "agt_3", Agent: "Cleo", Text: "The format is in docs/format.md."}},
				{ID: "tsk_3", Title: "Old plan", State: domain.TaskStateCancelled}}}},
		{"task_children_completed", true, children},
		{"approval_resolved", false, Wake{Source: domain.WakeupSourceApprovalResolved, At: noon, Question: "May I merge?",
			Payload: &domain.ApprovalPayload{ApprovalID: "apr_1", Status: domain.ApprovalStatusRejected, DecisionNote: "Not before Friday."}}},
		{"budget_alert", false, Wake{Source: domain.WakeupSourceBudgetAlert, At: noon, Agent: "Bob",
			Payload: &domain.BudgetPayload{AgentID: "agt_2", BudgetPct: 82.5}}},
	}
}

// input is what an agent in a role is told of a situation.
func (s situation) input(role domain.AgentRole, resumed bool) Input {
	in := base()
	if s.task {
		in = withTask(in)
		in.Run.Task.Blockers = []TaskRef{{ID: "tsk_9", Title: "Get the sample files", State: domain.TaskStateTodo}}
		in.Run.Task.Children = []TaskRef{{ID: "tsk_4", Title: "Write the importer", State: domain.TaskStateDone}}
		in.Run.Task.Comments = []Comment{{ID: "cmt_0", Author: "Ann", Body: "It has time until Friday.", At: noon.Add(-2 * time.Hour)}}
	}
	in.Wakes, in.Agent.Role, in.Delta = []Wake{s.wake}, role, resumed
	if s.wake.Source == domain.WakeupSourceRoutine {
		in.Summary = "## Active focus\nThe queue of north.\n\n## Next action\nContinue monitoring."
	}
	if role == domain.AgentRoleCoordinator {
		in.Run.Colleagues = []Colleague{
			{ID: "agt_2", Name: "Ben", Role: domain.AgentRoleWorker, Status: domain.AgentStatusWorking, About: "# Who you are\n\nYou write the importers. Each has a test with an empty file."},
			{ID: "agt_3", Name: "Cleo", Role: domain.AgentRoleSpecialist, Status: domain.AgentStatusPaused},
		}
	}
	return in
}

// merged are further inputs: several causes in one run, and what a run has beside its cause.
func merged() map[string]Input {
	comments := withTask(base())
	for n := 1; n <= 14; n++ {
		comments.Run.Task.Comments = append(comments.Run.Task.Comments, *commentWake(n).Comment)
	}
	comments.Run.Task.CommentCount = 14
	for n := 8; n <= 14; n++ {
		comments.Wakes = append(comments.Wakes, commentWake(n))
	}
	burst := withTask(base())
	for n := 1; n <= 60; n++ {
		burst.Wakes = append(burst.Wakes, commentWake(n))
	}
	missed := base() // three slots of one routine, and one with other values
	for n, region := range []string{"north", "south", "north", "north"} {
		at := noon.Add(time.Duration(n) * time.Minute)
		missed.Wakes = append(missed.Wakes, Wake{Source: domain.WakeupSourceRoutine, At: at, Routine: "Watch the queue", Text: "Look at the queue of " + region + ".",
			Payload: &domain.RoutinePayload{RoutineID: "rtn_1", TriggerID: "trg_1", ScheduledFor: at}})
	}
	again := withWakes(withTask(base()), commentWake(1))
	again.Delta, again.Summary, again.Run.Attempt = true, "never shown", 2
	reinstructed := again
	reinstructed.Reinstructed = true
	tools, none := withWakes(withTask(base()), commentWake(1)), withWakes(base(), commentWake(1))
	tools.Run.Tools, none.Run.Tools, none.Run.Actions = domain.AgentToolsMCP, domain.AgentToolsNone, nil
	completes := withWakes(withTask(base()), commentWake(1))
	completes.Run.Task.Completes = true
	return map[string]Input{"routine": missed, "comments": comments, "burst": burst, "second_attempt": again, "reinstructed": reinstructed,
		"tools": tools, "no_tools": none, "completes_by_default": completes}
}

// golden are the inputs of all golden files, by their paths in testdata.
func golden() map[string]Input {
	all := map[string]Input{}
	for name, in := range merged() {
		all[filepath.Join("more", name+".golden")] = in
	}
	for _, s := range situations() {
		for _, role := range domain.AgentRole("").Values() {
			file := filepath.Join(s.name, strings.ToLower(role))
			all[file+".golden"] = s.input(domain.AgentRole(role), false)
			if s.task {
				all[file+"_resumed.golden"] = s.input(domain.AgentRole(role), true)
			}
		}
	}
	return all
}

func TestGolden(t *testing.T) {
	for file, in := range golden() {
		t.Run(file, func(t *testing.T) {
			got := Build(in).Text
			path := filepath.Join("testdata", file)
			if *update {
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil {
				t.Fatalf("%v: go test ./internal/prompt -update writes it", err)
			}
			if got != string(want) {
				t.Errorf("differs from %s; if it should, run go test ./internal/prompt -update. Got:\n%s", path, got)
			}
			if again := Build(in).Text; again != got {
				t.Error("the same input gave another text")
			}
		})
	}
}

// Each source has golden files, and no file is left of one that is gone.
func TestEverySourceHasItsGoldenFiles(t *testing.T) {
	have := map[domain.WakeupSource]bool{}
	for _, s := range situations() {
		have[s.wake.Source] = true
		if bound := s.wake.Payload.BoundTaskID() != ""; bound != s.task {
			t.Errorf("%s: about a task is %t, want %t", s.name, s.task, bound)
		}
	}
	for _, source := range domain.WakeupSource("").Values() {
		if !have[domain.WakeupSource(source)] {
			t.Errorf("%s has none", source)
		}
	}
	var files []string
	err := filepath.WalkDir("testdata", func(path string, d fs.DirEntry, err error) error {
		if name, in := strings.CutPrefix(path, "testdata"+string(filepath.Separator)); in && err == nil && filepath.Ext(path) == ".golden" {
			files = append(files, name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(files)
	if want := slices.Sorted(maps.Keys(golden())); !slices.Equal(files, want) {
		t.Errorf("the files are\n%v, want\n%v", files, want)
	}
}

// What an expert looks for in each prompt.
func TestEveryPromptSaysHowToEnd(t *testing.T) {
	for file, in := range golden() {
		text := Build(in).Text
		wants := []string{"at full price", "\n{\"summary\":\"", "one JSON object on a line of its own"}
		if in.Run.Task != nil {
			wants = append(wants, `"state":"BLOCKED"`, "request_approval when somebody has to decide")
			if !in.Run.Task.Completes {
				wants = append(wants, "The task stays open unless complete_task is among the actions.")
			}
			wants = append(wants, "These actions are carried out when you have ended", `- {"type":"complete_task"}`)
		}
		if in.Agent.Role == domain.AgentRoleCoordinator {
			wants = append(wants, "- Ben (agt_2), worker, working: You write the importers.\n", "- Cleo (agt_3), specialist, paused\n")
		}
		if !in.Delta && in.Run.Tools == domain.AgentToolsAPI {
			wants = append(wants, "\ncurl -sS \"$ROUSE_API_URL\"")
		}
		for _, want := range wants {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not say %q", file, want)
			}
		}
		if strings.Contains(text, "usage") || strings.Contains(text, "cost_usd") || strings.Contains(text, "tokens") {
			t.Errorf("%s asks the model what it used", file)
		}
	}
}
