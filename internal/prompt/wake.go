package prompt

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
)

// wakeContext tells why the agent was woken: the newest wakeups in full, oldest first, the rest counted.
func wakeContext(wakes []Wake, task *Task) string {
	var b strings.Builder
	b.WriteString("# Why you were woken\n\n")
	shown, earlier := wakes, []Wake(nil)
	if len(wakes) > maxWakes {
		earlier, shown = wakes[:len(wakes)-maxWakes], wakes[len(wakes)-maxWakes:]
	}
	switch len(wakes) {
	case 0:
		b.WriteString("No cause is recorded for this run. Look at your open work and continue with it.\n")
	case 1:
	default:
		fmt.Fprintf(&b, "%d causes were merged into this run, oldest first. Handle all of them.\n\n", len(wakes))
	}
	if len(earlier) > 0 {
		fmt.Fprintf(&b, "Not shown are the oldest %d of them: %s.\n\n", len(earlier), countBySource(earlier))
	}
	for _, text := range tell(shown, len(earlier)) {
		b.WriteString(text + "\n\n")
	}
	if task != nil {
		b.WriteString(cut(taskContext(*task, wakes), maxTaskSection))
	}
	return strings.TrimRight(b.String(), "\n") + "\n"
}

// tell describes the wakes that are shown, in at most maxWakeSection bytes together. They are paid for by need, the
// newest first: each may take all that is left, but for minWake of each older one. When several wakes have the same
// routine text, only the newest shows it. before is how many wakes are not shown. A single wake has no number.
func tell(shown []Wake, before int) []string {
	texts := make([]string, len(shown))
	told := map[string]int{} // the number of the wake that tells a routine's text
	left := maxWakeSection
	for i := len(shown) - 1; i >= 0; i-- {
		limit := left - i*minWake - len("\n\n")
		wake, note := shown[i], ""
		if key := routineText(wake); key != "" {
			if by := told[key]; by > 0 {
				wake.Text, note = "", fmt.Sprintf("It asks for the same as number %d.", by)
			} else {
				told[key] = before + i + 1
			}
		}
		text := lines(describe(wake, max(limit-headRoom, limit/2)), note)
		if before+len(shown) > 1 {
			text = fmt.Sprintf("%d. %s", before+i+1, text)
		}
		texts[i] = cut(text, limit)
		left -= len(texts[i]) + len("\n\n")
	}
	return texts
}

// routineText is the text of a routine's wake, by which equal texts are recognised; "" without one.
func routineText(w Wake) string {
	p, ok := w.Payload.(*domain.RoutinePayload)
	if !ok || w.Text == "" {
		return ""
	}
	return p.RoutineID + "\x00" + w.Text
}

func countBySource(wakes []Wake) string {
	counts := map[domain.WakeupSource]int{}
	for _, wake := range wakes {
		counts[wake.Source]++
	}
	var parts []string
	for source, n := range counts {
		parts = append(parts, fmt.Sprintf("%d %s", n, oneLine(string(source))))
	}
	slices.Sort(parts)
	return strings.Join(parts, ", ")
}

// describe is one wakeup in words: what happened, when, and what is expected. Quoted texts get at most limit bytes together.
func describe(w Wake, limit int) string {
	what, details := "", ""
	switch p := w.Payload.(type) {
	case *domain.RoutinePayload:
		what, details = describeRoutine(w, p, limit)
	case *domain.CommentPayload:
		what, details = describeComment(w, p, limit)
	case *domain.AgentErrorPayload:
		what, details = describeAgentError(w, p, limit)
	case *domain.SelfPayload:
		what = "You asked to be woken again. Your reason:"
		reason, left := both(limit, quoted(p.Reason), objectOf(len(p.Payload) > 0, p.Payload))
		details = lines(reason, titled("Details you left:", left))
	case *domain.UserPayload:
		what = fmt.Sprintf("%s woke you and waits for your answer.", orElse(named(w.User, p.UserID), "A person"))
		if len(p.Context) > 0 {
			details = lines("What they gave you:", object(p.Context, limit))
		}
	case *domain.TaskPayload:
		what, details = describeTask(w, p, limit)
	case *domain.BlockersPayload:
		what = fmt.Sprintf("Nothing blocks task %s any more. Continue with it.", oneLine(p.TaskID))
		details = lines("Resolved:", ended(blockers(w, p), limit))
	case *domain.ApprovalPayload:
		what, details = describeApproval(w, p, limit)
	case *domain.BudgetPayload:
		if p.AgentID == "" { // nobody in particular crossed the threshold: a person set it
			what = fmt.Sprintf("A budget is %g percent spent. Decide what work can wait, or tell a person.", p.BudgetPct)
			break
		}
		what = fmt.Sprintf("The budget of agent %s is %g percent spent. Decide whether its work can wait, or tell a person.",
			named(w.Agent, p.AgentID), p.BudgetPct)
	default:
		what = fmt.Sprintf("A wakeup of source %s without readable details.", oneLine(string(w.Source)))
	}
	if !w.At.IsZero() {
		what = fmt.Sprintf("[%s %s] %s", oneLine(string(w.Source)), instant(w.At), what)
	}
	return lines(what, details)
}

func describeRoutine(w Wake, p *domain.RoutinePayload, limit int) (what, details string) {
	name := named(w.Routine, p.RoutineID)
	switch {
	case p.Backfilled:
		what = fmt.Sprintf("A person had your routine %s fired anew for its slot %s, which is over.", name, instant(p.ScheduledFor))
	case !p.ScheduledFor.IsZero():
		what = fmt.Sprintf("Your routine %s is due; its slot is %s.", name, instant(p.ScheduledFor))
	case p.TriggerID == "":
		what = fmt.Sprintf("A person fired your routine %s.", name)
	default:
		what = fmt.Sprintf("Your routine %s was fired from outside, by its trigger %s.", name, oneLine(p.TriggerID))
	}
	if late := domain.LateText(time.Duration(p.LateBySeconds) * time.Second); late != "" {
		what += " " + late
	}
	if p.MissedTicks > 0 {
		what += " " + missed(p)
	}
	text, values := both(limit, quoted(w.Text), variables(p.Variables, w.Text))
	title := "Variables:"
	if strings.Contains(values, cutMark) {
		title = "Variables, cut where they are long; the run's wakeup request has them whole:"
	}
	return what, lines(titled("What it asks for:", text), titled(title, values))
}

// missed is the sentence of SPEC S4.5.
func missed(p *domain.RoutinePayload) string {
	n := plural(p.MissedTicks, "tick")
	if p.MissedTruncated {
		n = "more than " + n
	}
	since := ""
	if !p.MissedSince.IsZero() {
		since = " since " + instant(p.MissedSince)
	}
	return fmt.Sprintf("You missed %s%s.", n, since)
}

func describeComment(w Wake, p *domain.CommentPayload, limit int) (what, details string) {
	if w.Comment == nil {
		return fmt.Sprintf("There is a comment (%s) on task %s, which cannot be shown any more.", oneLine(p.CommentID), oneLine(p.TaskID)), ""
	}
	what = fmt.Sprintf("%s commented on task %s. Answer it, or do what it asks for.", orElse(oneLine(w.Comment.Author), "Somebody"), oneLine(p.TaskID))
	return what, quote(w.Comment.Body, limit)
}

func describeAgentError(w Wake, p *domain.AgentErrorPayload, limit int) (what, details string) {
	what = fmt.Sprintf("Agent %s failed and gave up", named(w.Agent, p.FailedAgentID))
	if p.RunID != "" {
		what += fmt.Sprintf(" on run %s", oneLine(p.RunID))
	}
	if p.FailedSessionID != "" {
		what += fmt.Sprintf(" (session %s)", oneLine(p.FailedSessionID))
	}
	return what + ". Find out why and see that the work goes on. Its error:", quote(orElse(p.Error, "(none was given)"), limit)
}

func describeTask(w Wake, p *domain.TaskPayload, limit int) (what, details string) {
	id := oneLine(p.TaskID)
	if w.Source == domain.WakeupSourceTaskChildrenCompleted {
		return fmt.Sprintf("All subtasks of task %s have ended. Check their outcome and finish the task, or plan what is missing.", id),
			ended(w.Tasks, limit)
	}
	switch p.Basis {
	case domain.WakeBasisReviewer:
		return fmt.Sprintf("Task %s waits for your review. Read its outcome and say what you find.", id), outcomes(w.Outcomes, limit)
	case domain.WakeBasisApprover:
		asked, said := both(limit, func(limit int) string { return openApprovals(w.Approvals, limit) }, func(limit int) string { return outcomes(w.Outcomes, limit) })
		return fmt.Sprintf("Task %s waits for your approval. Decide and give your reason.", id), lines(asked, said)
	case domain.WakeBasisExplicit:
		return fmt.Sprintf("You were asked by name to work on task %s.", id), outcomes(w.Outcomes, limit)
	}
	return fmt.Sprintf("Task %s is assigned to you. Do it.", id), outcomes(w.Outcomes, limit)
}

// openApprovals names what there is to decide by the ids that the action takes.
func openApprovals(open []Approval, limit int) string {
	var parts []string
	for _, a := range open {
		parts = append(parts, fmt.Sprintf("Approval %s asks:", oneLine(a.ID)), quote(a.Question, limit/len(open)))
	}
	return lines(parts...)
}

func describeApproval(w Wake, p *domain.ApprovalPayload, limit int) (what, details string) {
	decision := "decided"
	switch p.Status {
	case domain.ApprovalStatusApproved:
		decision = "approved: go ahead"
	case domain.ApprovalStatusRejected:
		decision = "rejected: do not go ahead as planned"
	}
	what = fmt.Sprintf("The approval %s that you asked for is %s.", oneLine(p.ApprovalID), decision)
	question, note := both(limit, quoted(w.Question), quoted(p.DecisionNote))
	return what, lines(titled("You had asked:", question), titled("The note with the decision:", note))
}

// blockers are the resolved blockers by name, or by id alone when their names are not known.
func blockers(w Wake, p *domain.BlockersPayload) []TaskRef {
	if len(w.Tasks) > 0 {
		return w.Tasks
	}
	refs := make([]TaskRef, len(p.ResolvedBlockerIDs))
	for i, id := range p.ResolvedBlockerIDs {
		refs[i].ID = id
	}
	return refs
}

// references lists tasks, at most maxReferences of them.
func references(tasks []TaskRef) string {
	return listed(tasks, func(TaskRef) string { return "" })
}

// listed lists tasks, each with what is to be said of it.
func listed(tasks []TaskRef, more func(TaskRef) string) string {
	var out []string
	for i, task := range tasks {
		if i == maxReferences {
			out = append(out, fmt.Sprintf("- and %d more", len(tasks)-i))
			break
		}
		line := "- " + named(task.Title, task.ID)
		if task.State != "" {
			line += ", " + oneLine(string(task.State))
		}
		out = append(out, lines(line, more(task)))
	}
	return strings.Join(out, "\n")
}

// titled is a text under its title; "" without a text.
func titled(title, text string) string {
	if text == "" {
		return ""
	}
	return title + "\n" + text
}

// lines joins what is not empty.
func lines(parts ...string) string {
	return strings.Join(slices.DeleteFunc(parts, func(s string) bool { return s == "" }), "\n")
}

func orElse(s, fallback string) string {
	if s == "" {
		return fallback
	}
	return s
}
