//go:build unix

package remote

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/retry"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// Store is what a worker.Pool asks of its store, answered by the API of a server.
type Store struct {
	client    *Client
	self      xid.ID
	workspace xid.ID
	queue     string
	command   *domain.CommandSpec // the worker's own; nil: it has none
	journal   *journal
	log       *slog.Logger

	mu   sync.Mutex
	held map[store.Attempt]*lease

	older    bool           // the server knows no working copies; only the loop uses it
	nameless bool           // the server does not take what a worker says of itself; only the loop uses it
	info     map[string]any // what this worker says of itself

	call xid.ID // names the call for a run that was not answered yet; only the loop uses it
}

// Sizes of what is sent, encoded: a request has at most 256 KiB.
const (
	maxLines    = 160 << 10
	maxResult   = 160 << 10
	maxUnread   = 1 << 10
	maxEvidence = 8 << 10
)

func (s *Store) find(a store.Attempt) *lease {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.held[a]
}

// leaseInput proves to the server that an attempt is ours.
func (s *Store) leaseInput(a store.Attempt) map[string]any {
	token := ""
	if l := s.find(a); l != nil {
		token = l.token
	}
	return map[string]any{"runId": a.RunID, "attempt": a.Number, "leaseToken": token}
}

// report sends one report mutation and reads the problems of its payload.
func (s *Store) report(ctx context.Context, a store.Attempt, mutation string, more map[string]any) error {
	input := map[string]any{"lease": s.leaseInput(a)}
	maps.Copy(input, more)
	var out struct {
		Answer struct{ UserErrors userErrors }
	}
	kind := strings.ToUpper(mutation[:1]) + mutation[1:] + "Input"
	query := fmt.Sprintf(`mutation($input: %s!) { answer: %s(input: $input) { userErrors { code message } } }`, kind, mutation)
	if err := s.client.do(ctx, callLimit, query, map[string]any{"input": input}, &out); err != nil {
		return err
	}
	return out.Answer.UserErrors.err()
}

// end is report for what ends an attempt: the lease is let go of once the server has taken it, or does not know it.
func (s *Store) end(ctx context.Context, a store.Attempt, mutation, outcome string, more map[string]any) error {
	err := s.report(ctx, a, mutation, more)
	if older, refused := forOlder(more, err); refused {
		err = s.report(ctx, a, mutation, older)
	}
	if err == nil || isFenced(err) {
		s.told(a, outcome, more, err)
		s.mu.Lock()
		delete(s.held, a)
		s.mu.Unlock()
		s.journal.forget(a)
	}
	return err
}

// told logs the end of a run.
func (s *Store) told(a store.Attempt, outcome string, more map[string]any, fenced error) {
	fields := []any{"run_id", a.RunID, "attempt", a.Number, "outcome", outcome}
	if l := s.find(a); l != nil {
		fields = append(fields, "took", time.Since(l.since).Round(time.Millisecond))
	}
	if message, ok := more["message"].(string); ok && outcome == "failed" {
		fields = append(fields, "code", more["code"], "cause", message, "permanent", more["permanent"])
	}
	if fenced != nil {
		s.log.Warn("the end of a run came too late: another attempt owns it", fields...)
		return
	}
	s.log.Info("run ended", fields...)
}

// Start gives what the lease brought: the server has started the run.
func (s *Store) Start(_ context.Context, a store.Attempt) (*store.Launch, error) {
	l := s.find(a)
	if l == nil {
		return nil, store.ErrFenced
	}
	return l.launch, nil
}

// RecordProcess remembers the agent's process group on this machine. The server does not need to know it. Should this
// worker die, its watchdog ends the group, the next worker of the folder what left the group, and the lease runs out.
func (s *Store) RecordProcess(_ context.Context, a store.Attempt, g store.ProcessGroup) error {
	return s.journal.note(a, g)
}

// RecordSession tells the agent's session.
func (s *Store) RecordSession(ctx context.Context, a store.Attempt, sessionID string) error {
	return s.report(ctx, a, "reportRunStarted", map[string]any{"sessionId": sessionID})
}

// SessionNotStored tells the operator here: the server counts what it could not store itself.
func (s *Store) SessionNotStored(workspaceID xid.ID) {
	s.log.Warn("the server did not take a session", "workspace_id", workspaceID)
}

// AppendLog sends lines, as many at once as a request holds.
func (s *Store) AppendLog(ctx context.Context, a store.Attempt, lines []store.LogLine) error {
	for len(lines) > 0 {
		n, size := 0, 0
		var input []map[string]any
		for ; n < len(lines) && (n == 0 || size < maxLines); n++ {
			line := lines[n]
			encoded, err := json.Marshal(line.Text)
			if err != nil {
				return fmt.Errorf("encode a line: %w", err)
			}
			size += len(encoded) + 80
			input = append(input, map[string]any{"stream": line.Stream, "text": line.Text, "at": line.At.UTC().Format(time.RFC3339Nano)})
		}
		if err := s.report(ctx, a, "reportRunProgress", map[string]any{"firstSequence": lines[0].Seq, "lines": input}); err != nil {
			return err
		}
		lines = lines[n:]
	}
	return nil
}

// Progress sends steps of the work, each by itself.
func (s *Store) Progress(ctx context.Context, a store.Attempt, steps ...map[string]any) error {
	for _, details := range steps {
		if err := s.report(ctx, a, "reportRunProgress", map[string]any{"firstSequence": 1, "progress": details}); err != nil {
			return err
		}
	}
	return nil
}

// heartbeatsAtOnce is how many mutations one request may have.
const heartbeatsAtOnce = 10

// Heartbeat renews the leases; for how long, the server knows.
func (s *Store) Heartbeat(ctx context.Context, attempts []store.Attempt, _ time.Duration) ([]store.AttemptState, error) {
	var states []store.AttemptState
	for len(attempts) > 0 {
		n := min(len(attempts), heartbeatsAtOnce)
		some, err := s.heartbeat(ctx, attempts[:n])
		if err != nil {
			return nil, err
		}
		states, attempts = append(states, some...), attempts[n:]
	}
	return states, nil
}

func (s *Store) heartbeat(ctx context.Context, attempts []store.Attempt) ([]store.AttemptState, error) {
	var parameters, fields []string
	variables := map[string]any{}
	for i, a := range attempts {
		name := "a" + strconv.Itoa(i)
		parameters = append(parameters, "$"+name+": ReportRunHeartbeatInput!")
		fields = append(fields, fmt.Sprintf("%s: reportRunHeartbeat(input: $%s) { expiresAt cancelRequested userErrors { code message } }", name, name))
		variables[name] = map[string]any{"lease": s.leaseInput(a)}
	}
	var out map[string]struct {
		ExpiresAt       time.Time
		CancelRequested bool
		UserErrors      userErrors
	}
	query := "mutation(" + strings.Join(parameters, ", ") + ") { " + strings.Join(fields, " ") + " }"
	if err := s.client.do(ctx, callLimit, query, variables, &out); err != nil {
		return nil, err
	}
	states := make([]store.AttemptState, len(attempts))
	for i, a := range attempts {
		got := out["a"+strconv.Itoa(i)]
		err := got.UserErrors.err()
		if err != nil && !isFenced(err) {
			return nil, err
		}
		states[i] = store.AttemptState{Attempt: a, Lost: err != nil, CancelRequested: got.CancelRequested, LeaseUntil: got.ExpiresAt}
	}
	return states, nil
}

// CancelRequested is for pools that watch signals, which a worker elsewhere does not: its heartbeat brings the cancel.
func (s *Store) CancelRequested(ctx context.Context, runID xid.ID) (bool, error) {
	s.mu.Lock()
	var attempts []store.Attempt
	for a := range s.held {
		if a.RunID == runID {
			attempts = append(attempts, a)
		}
	}
	s.mu.Unlock()
	states, err := s.Heartbeat(ctx, attempts, 0)
	return err == nil && len(states) == 1 && states[0].CancelRequested, err
}

// Finish reports success, after what it brings along: the server has a call for each.
func (s *Store) Finish(ctx context.Context, a store.Attempt, ok store.Success) error {
	if ok.Named {
		if err := s.RecordSession(ctx, a, ok.SessionID); err != nil {
			return err
		}
	}
	if err := s.AppendLog(ctx, a, ok.Lines); err != nil {
		return err
	}
	more := map[string]any{"usage": usageInput(ok.Usage), "freshSession": ok.Fresh}
	result := fitting(ok.Result)
	if ok.Resumable && result["session_id"] == nil { // named in another way than by the result
		result = maps.Clone(result)
		if result == nil {
			result = map[string]any{}
		}
		result["session_id"] = ok.SessionID
	}
	if result != nil {
		more["result"] = result
	}
	return s.end(ctx, a, "reportRunSucceeded", "succeeded", more)
}

// Fail reports failure.
func (s *Store) Fail(ctx context.Context, a store.Attempt, f store.Failure) error {
	more := map[string]any{"message": f.Message, "code": cmp.Or(f.Code, domain.RunErrorCodeOther),
		"permanent": f.Permanent, "freshSession": f.Fresh, "usage": usageInput(f.Usage), "result": fitting(f.Result), "sessionId": resumable(f.SessionID, f.Resumable)}
	more["evidence"] = domain.CutText(f.Words, maxEvidence, "")
	if wait := waitOf(f); wait > 0 {
		more["retryAfter"] = fmt.Sprintf("PT%dS", int(wait/time.Second))
	}
	return s.end(ctx, a, "reportRunFailed", "failed", more)
}

// forOlder is a report as a server takes it that is older than this worker; refused is false when err has other causes than a word
// which that server does not know.
func forOlder(more map[string]any, err error) (older map[string]any, refused bool) {
	answer, ok := errors.AsType[*Refused](err)
	if !ok || !newerWords.MatchString(answer.Message) {
		return nil, false
	}
	older = maps.Clone(more)
	delete(older, "evidence")
	delete(older, "retryAfter")
	if code, is := older["code"].(domain.RunErrorCode); is && code.RefusesAccount() {
		older["code"] = domain.RunErrorCodeOther
	}
	if usage, is := older["usage"].(map[string]any); is && usage != nil {
		usage = maps.Clone(usage)
		delete(usage, "sessionTokens")
		delete(usage, "sessionCost")
		older["usage"] = usage
	}
	return older, true
}

// newerWords are those of reports that servers of earlier releases do not know.
var newerWords = regexp.MustCompile(`evidence|retryAfter|sessionTokens|sessionCost|\bAUTH\b|\bBILLING\b`)

// waitOf is how long a rate limit lasts that a failure speaks of; 0 for none. Times of day are those of this machine.
func waitOf(f store.Failure) time.Duration {
	wait := f.RetryAfter
	if now := time.Now(); wait == 0 && retry.IsRateLimit(f.Words) {
		if at, ok := retry.ResetAt(now, f.Words, f.Zone); ok {
			wait = at.Sub(now)
		}
	}
	return min(wait, 35*24*time.Hour)
}

// Cancelled reports that a cancel was obeyed: the server ends a run that was asked to end CANCELLED, however it ends.
func (s *Store) Cancelled(ctx context.Context, a store.Attempt, u store.Unfinished) error {
	return s.end(ctx, a, "reportRunFailed", "cancelled", map[string]any{"message": "the agent was ended as asked", "freshSession": u.Fresh,
		"usage": usageInput(u.Usage), "result": fitting(u.Result), "sessionId": resumable(u.SessionID, u.Resumable)})
}

// HandBack gives the run back.
func (s *Store) HandBack(ctx context.Context, a store.Attempt, u store.Unfinished) error {
	return s.end(ctx, a, "reportRunHandedBack", "handed back", map[string]any{"usage": usageInput(u.Usage), "result": fitting(u.Result), "sessionId": resumable(u.SessionID, u.Resumable)})
}

// resumable is a session that the agent named itself; null for any other.
func resumable(sessionID string, named bool) any {
	if !named || sessionID == "" {
		return nil
	}
	return sessionID
}

// usageInput is a use as the server takes it: a report that it refused would lose the end of the run.
func usageInput(u *store.Usage) map[string]any {
	if u == nil {
		return nil
	}
	var t domain.Tally
	t.Input("inputTokens", u.InputTokens)
	t.Output("outputTokens", u.OutputTokens)
	t.Cost("costUsd", cmp.Or(u.CostUSD, "0"))
	sent := t.Usage()
	input := map[string]any{"inputTokens": sent.InputTokens, "outputTokens": sent.OutputTokens, "costUsd": cmp.Or(sent.CostUSD, "0")}
	if unread := strings.Trim(u.Unread+"; "+sent.Unread, "; "); unread != "" {
		input["unread"] = domain.CutText(unread, maxUnread, "…")
	}
	for name, is := range map[string]bool{"costUnread": u.CostUnread || sent.CostUnread, "sessionTokens": u.SessionTokens, "sessionCost": u.SessionCost} {
		if is {
			input[name] = true
		}
	}
	return input
}

// fitting is a result as it fits into a request: one that is too long is reduced to its texts of SPEC S7.5, cut.
func fitting(result map[string]any) map[string]any {
	if encoded, err := json.Marshal(result); result == nil || err == nil && len(encoded) <= maxResult {
		return result
	}
	const each, cutMark = 8 << 10, " [… cut: the result was too long to be sent]"
	short := map[string]any{"cut": true}
	for _, name := range []string{"summary", "result", "message", "error", "next_action", "session_id"} {
		if text, ok := result[name].(string); ok {
			short[name] = domain.CutText(text, each, cutMark)
		}
	}
	if actions := result["actions"]; actions != nil { // those that do not fit are told of as refused
		short["actions"] = cutMark
		if encoded, err := json.Marshal(actions); err == nil && len(encoded) <= maxResult/2 {
			short["actions"] = actions
		}
	}
	if domain.ResultText(short) == "" {
		short["summary"] = "The result was too long to be sent, and had no summary."
	}
	return short
}

// Accept is for agents that report to the server by themselves, which are not run by workers.
func (s *Store) Accept(context.Context, store.Attempt, store.Acceptance) error {
	return errors.New("a worker elsewhere runs commands alone, and nobody accepts them")
}
