package graph_test

import (
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/graph"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// pullAgent makes an agent whose runs workers of the queue gpu execute.
func (w *world) pullAgent() string {
	w.t.Helper()
	out := w.createAgent("puller", map[string]any{"executor": map[string]any{"pull": map[string]any{"queue": "gpu", "command": map[string]any{
		"argv": []string{"agent", "-p"}, "environment": []any{map[string]any{"name": "API_KEY", "value": "hunter2"}},
	}}}})
	if out.CreateAgent.Agent == nil {
		w.t.Fatal(out.CreateAgent.UserErrors)
	}
	return out.CreateAgent.Agent.ID
}

type leaseAnswer struct {
	Run struct {
		ID, Status string
	}
	Attempt               int
	LeaseToken, ExpiresAt string
	Prompt                string
	Command               *struct{ Argv, Environment []string }
	ResumeSessionID       *string
	Environment           []struct{ Name, Value string }
}

func (l *leaseAnswer) input() map[string]any {
	return map[string]any{"runId": l.Run.ID, "attempt": l.Attempt, "leaseToken": l.LeaseToken}
}

func (l *leaseAnswer) variable(name string) string {
	for _, v := range l.Environment {
		if v.Name == name {
			return v.Value
		}
	}
	return ""
}

// acquire asks for a run of the queue gpu.
func (w *world) acquire(more map[string]any) (*leaseAnswer, userErrors) {
	w.t.Helper()
	input := map[string]any{"workspaceId": w.workspace, "queue": "gpu"}
	for k, v := range more {
		input[k] = v
	}
	var out struct {
		AcquireRun struct {
			Lease      *leaseAnswer
			UserErrors userErrors
		}
	}
	w.Do(w.t.Context(), `mutation($input: AcquireRunInput!) { acquireRun(input: $input) { lease { run { id status } attempt leaseToken expiresAt prompt
		command { argv environment } resumeSessionId environment { name value } } userErrors { code message field } } }`, map[string]any{"input": input}, &out)
	return out.AcquireRun.Lease, out.AcquireRun.UserErrors
}

type reportAnswer struct {
	Run *struct {
		Status, Summary string
		SessionID       *string
		Usage           *struct{ CostUsd string }
	}
	ExpiresAt       *string
	CancelRequested bool
	AcceptedThrough *int
	RetryAt         *string
	UserErrors      userErrors
}

// report sends one of the report mutations; fields is what is asked of its payload.
func (w *world) report(mutation, fields string, lease map[string]any, more map[string]any) reportAnswer {
	w.t.Helper()
	input := map[string]any{"lease": lease}
	for k, v := range more {
		input[k] = v
	}
	kind := strings.ToUpper(mutation[:1]) + mutation[1:] + "Input"
	var out struct{ Answer reportAnswer }
	w.Do(w.t.Context(), `mutation($input: `+kind+`!) { answer: `+mutation+`(input: $input) { `+fields+` userErrors { code message field } } }`, map[string]any{"input": input}, &out)
	return out.Answer
}

func TestAWorkerTakesARunAndReportsItsEnd(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.wake(w.pullAgent())
	lease, problems := w.acquire(nil)
	if lease == nil || lease.Run.ID != run || lease.Run.Status != "CLAIMED" || lease.Attempt != 1 || lease.Prompt == "" {
		t.Fatalf("lease %+v, %v", lease, problems)
	}
	if lease.Command == nil || lease.Command.Argv[0] != "agent" || lease.variable("API_KEY") != "hunter2" || !strings.HasPrefix(lease.variable("ROUSE_RUN_TOKEN"), "rsr_") {
		t.Errorf("lease %+v", lease)
	}
	if again, _ := w.acquire(nil); again != nil {
		t.Errorf("given twice: %+v", again)
	}
	if got := w.report("reportRunStarted", "run { sessionId }", lease.input(), map[string]any{"sessionId": "s-1"}); got.Run == nil || *got.Run.SessionID != "s-1" {
		t.Errorf("started: %+v", got)
	}
	if got := w.report("reportRunHeartbeat", "expiresAt cancelRequested", lease.input(), nil); got.ExpiresAt == nil || got.CancelRequested {
		t.Errorf("heartbeat: %+v", got)
	}
	lines := []any{map[string]any{"text": "the key is hunter2"}, map[string]any{"stream": "STDERR", "text": "a\u0000b\n" + strings.Repeat("x", 9000)}}
	got := w.report("reportRunProgress", "acceptedThrough", lease.input(), map[string]any{"firstSequence": 1, "lines": lines, "progress": map[string]any{"done": 3, "token": lease.LeaseToken}})
	if got.AcceptedThrough == nil || *got.AcceptedThrough != 2 {
		t.Errorf("progress: %+v", got)
	}
	got = w.report("reportRunSucceeded", "run { status summary sessionId usage { costUsd } }", lease.input(), map[string]any{
		"result": map[string]any{"summary": "told hunter2", "session_id": "s-2"}, "usage": map[string]any{"inputTokens": 5, "costUsd": "0.25"}})
	if got.Run == nil || got.Run.Status != "FINISHED" || got.Run.Summary != "told ***" || *got.Run.SessionID != "s-2" || got.Run.Usage.CostUsd != "0.250000" {
		t.Errorf("succeeded: %+v", got)
	}
	w.checkReported(run)
	for mutation, more := range map[string]map[string]any{
		"reportRunStarted": {"sessionId": "late"}, "reportRunHeartbeat": {}, "reportRunProgress": {"firstSequence": 1}, "reportRunSucceeded": {},
		"reportRunFailed": {"message": "late"}, "reportRunHandedBack": {},
	} {
		if got := w.report(mutation, "", lease.input(), more).UserErrors.String(); got != "STALE_LEASE input.lease" {
			t.Errorf("a late %s: %q", mutation, got)
		}
	}
}

// checkReported looks at what was stored of the reports: masked, cut, and the money in the ledger.
func (w *world) checkReported(run string) {
	w.t.Helper()
	var out struct {
		Run struct {
			Logs struct {
				Edges []struct{ Node struct{ Text, Stream string } }
			}
			Events struct {
				Edges []struct {
					Node struct {
						Kind string
						Data map[string]any
					}
				}
			}
		}
	}
	w.Do(w.t.Context(), `query($id: ID!) { run(id: $id) { logs { edges { node { text stream } } } events(first: 50) { edges { node { kind data } } } } }`, map[string]any{"id": run}, &out)
	if l := out.Run.Logs.Edges; len(l) != 2 || l[0].Node.Text != "the key is ***" || l[1].Node.Stream != "STDERR" || len(l[1].Node.Text) > 8<<10 || strings.ContainsAny(l[1].Node.Text, "\x00\n") {
		w.t.Errorf("lines are %.200v", l)
	}
	for _, e := range out.Run.Events.Edges {
		if e.Node.Kind == "PROGRESS" && (e.Node.Data["done"] != 3.0 || e.Node.Data["token"] != "***") {
			w.t.Errorf("progress is %v", e.Node.Data)
		}
	}
	var spent string
	w.ok(w.db.QueryRow(`SELECT cost_usd || ' ' || input_tokens FROM cost_entries WHERE run_id = $1 AND attempt = 1`, run).Scan(&spent))
	if spent != "0.250000 5" {
		w.t.Errorf("the ledger has %s", spent)
	}
}

// Secrets are masked in everything stored (SPEC S7.6), whatever type they are reported as.
func TestASecretThatIsANumberIsMaskedInWhatWorkersReport(t *testing.T) {
	t.Parallel()
	const number = 81745023
	for mutation, more := range map[string]map[string]any{"reportRunSucceeded": {}, "reportRunFailed": {"message": "no"}, "reportRunHandedBack": {}} {
		t.Run(mutation, func(t *testing.T) {
			w := newWorld(t)
			run := w.wake(w.pullAgent())
			lease, _ := w.acquire(nil)
			w.report("reportRunProgress", "acceptedThrough", lease.input(), map[string]any{"firstSequence": 1, "progress": map[string]any{"pin": number, "list": []any{number}}})
			more["result"] = map[string]any{"summary": "done", "pin": number, "deep": []any{map[string]any{"81745023": number}}, "session_id": "s-hunter2"}
			if got := w.report(mutation, "", lease.input(), more).UserErrors.String(); got != "" {
				t.Fatal(got)
			}
			var kept string
			w.ok(w.db.QueryRow(`SELECT jsonb_agg(c.result)::text || (SELECT jsonb_agg(e.data)::text FROM run_events e WHERE e.run_id = $1) || coalesce((SELECT session_id FROM runs WHERE id = $1), '')
|| coalesce((SELECT string_agg(session_id, ' ') FROM run_attempts WHERE run_id = $1), '') FROM run_contents c WHERE c.run_id = $1`, run).Scan(&kept))
			if strings.Contains(kept, "81745023") || strings.Contains(kept, "hunter2") || !strings.Contains(kept, `"pin": "***"`) || strings.HasSuffix(kept, "***") {
				t.Errorf("stored: %s", kept)
			}
		})
	}
}

func TestASessionWhoseIdHoldsASecretIsRefused(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.wake(w.pullAgent())
	lease, _ := w.acquire(nil)
	got := w.report("reportRunStarted", "run { sessionId }", lease.input(), map[string]any{"sessionId": "s-hunter2"})
	if got.UserErrors.String() != "INVALID input.sessionId" {
		t.Errorf("%+v", got)
	}
}

func TestAWorkersFailureIsRetriedAndItsUseCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.wake(w.pullAgent())
	lease, _ := w.acquire(nil)
	got := w.report("reportRunFailed", "run { status } retryAt", lease.input(), map[string]any{"message": "no hunter2", "code": "CRASH", "usage": map[string]any{"costUsd": "0.5"}})
	if got.Run == nil || got.Run.Status != "QUEUED" || got.RetryAt == nil {
		t.Errorf("failed: %+v", got)
	}
	var spent, message string
	w.ok(w.db.QueryRow(`SELECT c.cost_usd, r.error_message FROM cost_entries c JOIN runs r ON r.id = c.run_id WHERE r.id = $1 AND r.cost_usd = 0.5`, run).Scan(&spent, &message))
	if spent != "0.500000" || message != "no ***" {
		t.Errorf("the ledger has %s, the run %q", spent, message)
	}
}

func TestAWorkerMaySayThatTryingAgainCannotHelp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.wake(w.pullAgent())
	lease, _ := w.acquire(nil)
	got := w.report("reportRunFailed", "run { status } retryAt", lease.input(), map[string]any{"message": "no such program", "code": "LAUNCH", "permanent": true})
	if got.Run == nil || got.Run.Status != "FAILED" || got.RetryAt != nil {
		t.Errorf("failed: %+v", got)
	}
	if n := w.one(`SELECT count(*) FROM inbox_items WHERE kind = 'AGENT_ERROR'`); n != "1" {
		t.Errorf("%s items in the inbox", n)
	}
}

func TestAnAgentServiceMaySayThatTryingAgainCannotHelp(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.pullAgent()
	w.wake(agentID)
	lease, _ := w.acquire(nil)
	w.sql(`UPDATE run_attempts SET executor = 'http'`) // as if rouse had called it
	service := *w
	service.Client = w.As(auth.Principal{Kind: auth.KindRun, WorkspaceID: xid.ID(w.workspace), AgentID: xid.ID(agentID), RunID: xid.ID(lease.Run.ID), Attempt: 1})
	own := lease.input()
	own["leaseToken"] = lease.variable("ROUSE_RUN_TOKEN")
	if got := service.report("reportRunFailed", "run { id } retryAt", own, map[string]any{"message": "no", "permanent": true}); got.Run == nil || got.RetryAt != nil {
		t.Errorf("failed: %+v", got)
	}
	if status := w.one(`SELECT status FROM runs`); status != "FAILED" {
		t.Errorf("the run is %s", status)
	}
}

func TestAWorkersCallIsMadeAgainWhenItsAnswerWasLost(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.wake(w.pullAgent())
	call := map[string]any{"idempotencyKey": "call-1"}
	first, _ := w.acquire(call)
	again, _ := w.acquire(call)
	if first == nil || again == nil {
		t.Fatalf("first %+v, then %+v", first, again)
	}
	compare(t, "the attempt that is given again",
		is("run", again.Run.ID, run),
		is("attempt", again.Attempt, 1),
		is("prompt", again.Prompt, first.Prompt),
		holds("its token is another", again.LeaseToken != first.LeaseToken))
	if got := w.report("reportRunHeartbeat", "", first.input(), nil).UserErrors.String(); got != "STALE_LEASE input.lease" {
		t.Errorf("the former token: %q", got)
	}
	if got := w.report("reportRunHeartbeat", "expiresAt", again.input(), nil); got.ExpiresAt == nil {
		t.Errorf("the new token: %+v", got)
	}
	if third, _ := w.acquire(call); third != nil {
		t.Errorf("a run at work was given away: %+v", third)
	}
	if _, problems := w.acquire(map[string]any{"idempotencyKey": ""}); problems.String() != "INVALID input.idempotencyKey" {
		t.Errorf("an empty key: %s", problems)
	}
}

// A worker whose call is repeated after the lease has ended hears so, and takes nothing; with a new key it goes on.
func TestAWorkersCallIsRefusedWhenItsLeaseIsOver(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.wake(w.pullAgent())
	call := map[string]any{"idempotencyKey": "call-1"}
	if first, _ := w.acquire(call); first == nil {
		t.Fatal("nothing was taken")
	}
	w.sql(`UPDATE attempt_leases SET lease_until = clock_timestamp() - interval '1 second'`)
	late, problems := w.acquire(call)
	if late != nil || problems.String() != "STALE_LEASE input.idempotencyKey" {
		t.Errorf("%+v, %s", late, problems)
	}
	if message := problems[0].Message; !strings.Contains(message, run) || !strings.Contains(message, "new key") {
		t.Errorf("it says %q", message)
	}
	if next, problems := w.acquire(map[string]any{"idempotencyKey": "call-2"}); next != nil || problems.String() != "" {
		t.Errorf("a new key, while nothing is due: %+v, %s", next, problems)
	}
}

func TestAWorkerGivesARunBack(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.wake(w.pullAgent())
	lease, _ := w.acquire(nil)
	if got := w.report("reportRunHandedBack", "run { status }", lease.input(), nil); got.Run == nil || got.Run.Status != "QUEUED" {
		t.Errorf("handed back: %+v", got)
	}
	again, _ := w.acquire(nil)
	if again == nil || again.Run.ID != run || again.Attempt != 2 {
		t.Errorf("then came %+v", again)
	}
}

// TestWhatAWorkersAttemptBroughtBackIsKept: an attempt that did not succeed has used money, and may have a result with
// actions and a session, all the same.
func TestWhatAWorkersAttemptBroughtBackIsKept(t *testing.T) {
	t.Parallel()
	for mutation, more := range map[string]map[string]any{"reportRunFailed": {"message": "red"}, "reportRunHandedBack": {}} {
		t.Run(mutation, func(t *testing.T) {
			w := newWorld(t)
			run := w.wake(w.pullAgent())
			lease, _ := w.acquire(nil)
			more["sessionId"] = "s-9\n"
			if got := w.report(mutation, "", lease.input(), more).UserErrors.String(); got != "INVALID input.sessionId" {
				t.Errorf("a session of two lines: %q", got)
			}
			more["sessionId"] = "s-9"
			more["result"] = map[string]any{"error": "red hunter2", "usage": map[string]any{"cost_usd": 0.5}, "actions": []any{map[string]any{"type": "self_wake", "reason": "x"}}}
			if got := w.report(mutation, "", lease.input(), more).UserErrors.String(); got != "" {
				t.Fatal(got)
			}
			var kept, told string
			w.ok(w.db.QueryRow(`SELECT c.result->>'error', e.data->'actions'->0->>'problem' FROM run_contents c JOIN cost_entries x USING (run_id) JOIN run_events e USING (run_id)
WHERE c.run_id = $1 AND x.cost_usd = 0.5 AND e.data ? 'actions'`, run).Scan(&kept, &told))
			if kept != "red ***" || !strings.HasPrefix(told, "not carried out: ") {
				t.Errorf("the result is %q, its action %q", kept, told)
			}
		})
	}
}

func TestACancelReachesTheWorkerWithItsHeartbeat(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	run := w.wake(w.pullAgent())
	lease, _ := w.acquire(nil)
	var out struct {
		CancelRun struct{ UserErrors userErrors }
	}
	w.Do(t.Context(), `mutation($id: ID!) { cancelRun(input: {runId: $id}) { userErrors { code } } }`, map[string]any{"id": run}, &out)
	if got := w.report("reportRunHeartbeat", "expiresAt cancelRequested", lease.input(), nil); !got.CancelRequested {
		t.Errorf("heartbeat: %+v", got)
	}
	got := w.report("reportRunFailed", "run { status } retryAt", lease.input(), map[string]any{"message": "ended as asked"})
	if got.Run == nil || got.Run.Status != "CANCELLED" || got.RetryAt != nil {
		t.Errorf("ended: %+v", got)
	}
}

func TestAWorkerThatWaitsIsGivenTheNextRun(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agentID := w.pullAgent()
	got := make(chan *leaseAnswer)
	go func() {
		lease, _ := w.acquire(map[string]any{"waitUpTo": "PT30S"}) // the poll is a minute: only a signal brings it
		got <- lease
	}()
	select {
	case lease := <-got:
		t.Fatalf("it did not wait: %+v", lease)
	case <-time.After(50 * time.Millisecond):
	}
	run := w.wake(agentID)
	if claimed, err := w.store.Claim(t.Context(), store.Owner{ID: xid.New("prc")}, 4, time.Minute); err != nil || len(claimed) != 0 {
		t.Fatalf("claimed %v, %v", claimed, err)
	}
	select {
	case lease := <-got:
		if lease == nil || lease.Run.ID != run {
			t.Errorf("got %+v", lease)
		}
	case <-time.After(time.Minute):
		t.Error("it was not told")
	}
}

func TestAWorkerIsToldWhatIsWrongWithItsCall(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, c := range map[string]struct {
		more map[string]any
		want string
	}{
		"a workspace that is not there": {map[string]any{"workspaceId": xid.New("wsp")}, "NOT_FOUND input.workspaceId"},
		"a queue without a name":        {map[string]any{"queue": " "}, "INVALID input.queue"},
		"too long a wait":               {map[string]any{"waitUpTo": "PT31S"}, "OUT_OF_RANGE input.waitUpTo"},
	} {
		if _, problems := w.acquire(c.more); problems.String() != c.want {
			t.Errorf("%s: %q", name, problems)
		}
	}
	run := w.wake(w.pullAgent())
	lease, _ := w.acquire(nil)
	stolen := lease.input()
	stolen["leaseToken"] = lease.variable("ROUSE_RUN_TOKEN") // a run token reports only where rouse called an agent service
	foreign := map[string]any{"runId": run, "attempt": 1, "leaseToken": "nonsense"}
	absent := map[string]any{"runId": xid.New("run"), "attempt": 1, "leaseToken": lease.LeaseToken}
	for name, c := range map[string]struct {
		mutation string
		lease    map[string]any
		more     map[string]any
		want     string
	}{
		"a run that is not there": {"reportRunHeartbeat", absent, nil, "NOT_FOUND input.lease.runId"},
		"no lease token":          {"reportRunHeartbeat", foreign, nil, "STALE_LEASE input.lease"},
		"the agent's own token":   {"reportRunHeartbeat", stolen, nil, "STALE_LEASE input.lease"},
		"a line without a number": {"reportRunProgress", lease.input(), map[string]any{"firstSequence": 0}, "OUT_OF_RANGE input.firstSequence"},
		"no session":              {"reportRunStarted", lease.input(), map[string]any{"sessionId": ""}, "INVALID input.sessionId"},
		"money that is none":      {"reportRunSucceeded", lease.input(), map[string]any{"usage": map[string]any{"costUsd": "-1"}}, "INVALID input.usage.costUsd"},
		"tokens below nothing":    {"reportRunFailed", lease.input(), map[string]any{"message": "x", "usage": map[string]any{"inputTokens": -1}}, "OUT_OF_RANGE input.usage.inputTokens"},
	} {
		if got := w.report(c.mutation, "", c.lease, c.more).UserErrors.String(); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// Amounts of a worker's result are read as those of an executor of ours; what cannot be read is told in the run's last event.
func TestAmountsOfAWorkersResultInEveryForm(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	agent := w.pullAgent()
	for name, c := range map[string]struct {
		more         map[string]any
		cost, unread string
	}{
		"as text":                {map[string]any{"result": map[string]any{"usage": map[string]any{"input_tokens": "7", "cost_usd": "5.00"}}}, "5.000000", ""},
		"below nothing":          {map[string]any{"result": map[string]any{"usage": map[string]any{"cost_usd": -5}}}, "", `usage.cost_usd "-5" is below nothing`},
		"what the worker says":   {map[string]any{"usage": map[string]any{"costUnread": true, "unread": "cost is no number, said hunter2"}}, "", "cost is no number, said ***"},
		"beyond what we believe": {map[string]any{"result": map[string]any{"usage": map[string]any{"cost_usd": 1e30}}}, "", `usage.cost_usd "1e+30" is a billion dollars or more, which is not believed`},
	} {
		w.wake(agent)
		lease, _ := w.acquire(nil)
		if lease == nil {
			t.Fatalf("%s: no run", name)
		}
		got := w.report("reportRunSucceeded", "run { status usage { costUsd } }", lease.input(), c.more)
		if got.Run == nil || got.Run.Status != "FINISHED" {
			t.Fatalf("%s: %+v", name, got)
		}
		if c.cost != "" && (got.Run.Usage == nil || got.Run.Usage.CostUsd != c.cost) {
			t.Errorf("%s: %+v", name, got.Run.Usage)
		}
		if unread := w.lastEvent(lease.Run.ID)["unreadUsage"]; (unread == nil) != (c.unread == "") || unread != nil && unread != c.unread {
			t.Errorf("%s: told %v", name, unread)
		}
	}
}

// lastEvent is the data of a run's newest event.
func (w *world) lastEvent(run string) map[string]any {
	w.t.Helper()
	var out struct {
		Run struct {
			Events struct {
				Edges []struct {
					Node struct{ Data map[string]any }
				}
			}
		}
	}
	w.Do(w.t.Context(), `query($id: ID!) { run(id: $id) { events(first: 100) { edges { node { data } } } } }`, map[string]any{"id": run}, &out)
	edges := out.Run.Events.Edges
	if len(edges) == 0 {
		w.t.Fatal("no events")
	}
	return edges[len(edges)-1].Node.Data
}

func TestAnAgentReportsForItsOwnAttemptAndSeesNoOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mine, other := w.pullAgent(), w.agent("other")
	otherRun := w.wake(other)
	w.start()
	w.wake(mine)
	lease, _ := w.acquire(nil)
	caller := auth.Principal{Kind: auth.KindRun, WorkspaceID: xid.ID(w.workspace), AgentID: xid.ID(mine), RunID: xid.ID(lease.Run.ID), Attempt: 1}
	agent := *w
	agent.Client = w.As(caller)
	w.sql(`UPDATE run_attempts SET executor = 'http'`) // as if rouse had called an agent service
	own := lease.input()
	own["leaseToken"] = lease.variable("ROUSE_RUN_TOKEN")
	if got := agent.report("reportRunHeartbeat", "expiresAt", own, nil); got.ExpiresAt == nil {
		t.Errorf("its own attempt: %+v", got)
	}
	if got := agent.report("reportRunHeartbeat", "", map[string]any{"runId": otherRun, "attempt": 1, "leaseToken": own["leaseToken"]}, nil).UserErrors.String(); got != "NOT_FOUND input.lease.runId" {
		t.Errorf("another agent's run: %q", got)
	}
	reach := func(selection string) error {
		_, errs := agent.Try(t.Context(), `mutation($lease: RunLeaseInput!) { answer: reportRunStarted(input: {lease: $lease, sessionId: "s"}) { run { `+selection+` } } }`, map[string]any{"lease": own})
		if codeOf(errs) == graph.CodeForbidden {
			return errs
		}
		return nil
	}
	for selection, allowed := range map[string]bool{
		"id agent { id name } task { id title }":                true,
		"agent { instructions }":                                false,
		"agent { workspace { id } }":                            false,
		"agent { runs { edges { node { assembledPrompt } } } }": false,
		"task { runs { edges { node { id } } } }":               true, // its own ones alone
	} {
		if err := reach(selection); (err == nil) != allowed {
			t.Errorf("an agent reaches %q: %v (SPEC S7.4)", selection, err)
		}
	}
	agent.Client = w.As(auth.Principal{Kind: auth.KindRun, WorkspaceID: xid.ID(w.workspace), AgentID: xid.ID(mine), RunID: xid.ID(lease.Run.ID), Attempt: 1, TaskID: xid.ID(w.newTask("mine", nil).Task.ID)})
	said := agent.as(`mutation($w: ID!) { createTask(input: {workspaceId: $w, title: "the key is hunter2", description: "hunter2, or rsr_`+strings.Repeat("a", 43)+`"}) { task { title description } } }`, map[string]any{"w": w.workspace})
	if !strings.Contains(said, `"title":"the key is ***"`) || strings.Contains(said, "hunter2") || strings.Contains(said, "rsr_") {
		t.Errorf("an agent wrote a secret of its executor: %s (SPEC S7.6)", said)
	}
	for name, query := range map[string]string{
		"takes no run":         `mutation { acquireRun(input: {workspaceId: "` + w.workspace + `"}) { lease { prompt } } }`,
		"hands nothing back":   `mutation { reportRunHandedBack(input: {lease: {runId: "` + lease.Run.ID + `", attempt: 1, leaseToken: "x"}}) { userErrors { code } } }`,
		"wakes nobody":         `mutation { wakeAgent(input: {agentId: "` + mine + `", userId: "x"}) { userErrors { code } } }`,
		"fires nothing":        `mutation { fireRoutine(input: {routineId: "` + string(xid.New("rtn")) + `"}) { userErrors { code } } }`,
		"cancels nothing":      `mutation { cancelRun(input: {runId: "` + otherRun + `"}) { userErrors { code } } }`,
		"reaches by fragments": `mutation { createTask(input: {workspaceId: "` + w.workspace + `", title: "x"}) { task { ...F } } } fragment F on Task { assignee { ... on Agent { instructions } } }`,
		"says what runs":       `mutation { createTask(input: {workspaceId: "` + w.workspace + `", title: "x", executor: {echo: {}}}) { userErrors { code } } }`,
	} {
		if _, errs := agent.Try(t.Context(), query, nil); codeOf(errs) != graph.CodeForbidden {
			t.Errorf("an agent %s: %v", name, errs)
		}
	}
	if got := agent.as(`query($id: ID!) { run(id: $id) { assembledPrompt } }`, map[string]any{"id": otherRun}); got != `{"run":null}` {
		t.Errorf("an agent reads of another's run: %s", got)
	}
}

// as runs a mutation that may be refused, and returns its data as text, or the errors.
func (w *world) as(query string, variables map[string]any) string {
	w.t.Helper()
	data, errs := w.Try(w.t.Context(), query, variables)
	if errs != nil {
		return errs.Error()
	}
	return string(data)
}

func TestASessionOfAWorkerThatCannotBeStoredIsCounted(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.wake(w.pullAgent())
	lease, _ := w.acquire(nil)
	w.sql(`ALTER TABLE runs ADD CONSTRAINT test_no_session CHECK (session_id IS NULL OR session_id <> 'unstored')`)
	if said := w.as(`mutation($lease: RunLeaseInput!) { reportRunStarted(input: {lease: $lease, sessionId: "unstored"}) { run { id } } }`, map[string]any{"lease": lease.input()}); !strings.Contains(said, "test_no_session") {
		t.Errorf("the session was stored: %s", said)
	}
	if n := w.store.Counters(xid.ID(w.workspace)).SessionWriteFailures; n != 1 {
		t.Errorf("AC-OFFICE-LOOP-LIVENESS-002.11 %d failed writes were counted, want 1", n)
	}
}
