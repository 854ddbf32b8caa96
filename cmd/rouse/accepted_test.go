package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"rouse.dev/rouse/internal/pgtest"
)

const serviceSecret = "a secret of the service"

// far is an agent service whose part the test plays: it has accepted a run and reports about it.
type far struct {
	journey
	lease serviceLease
	calls <-chan serviceLease
	run   string
}

// acceptedRun is a run that a service has accepted. executor adds to what its agent has.
func acceptedRun(t *testing.T, p *program, url string, calls <-chan serviceLease, executor map[string]any) far {
	t.Helper()
	j := newJourney(p)
	spec := map[string]any{"url": url + "/remote", "secret": serviceSecret, "grace": "PT5M"}
	for name, value := range executor {
		spec[name] = value
	}
	f := far{journey: j, calls: calls}
	f.run = j.wake(j.agent("far", map[string]any{"http": spec}))
	f.lease = <-calls
	f.held()
	return f
}

// held waits until the run is its service's: the call was answered, and no process has it.
func (f far) held() {
	f.t.Helper()
	db := f.database(f.data)
	defer db.Close()
	eventually(f.t, "the run is its service's", patience, func() bool {
		var accepted bool
		err := db.QueryRowContext(f.t.Context(), `SELECT accepted_at IS NOT NULL FROM attempt_leases WHERE run_id = $1`, f.run).Scan(&accepted)
		return err == nil && accepted
	})
}

// timeUp lets the time that the service has be up.
func (f far) timeUp() {
	f.t.Helper()
	db := f.database(f.data)
	defer db.Close()
	if _, err := db.ExecContext(f.t.Context(), `UPDATE attempt_leases SET lease_until = clock_timestamp() - interval '1 second' WHERE run_id = $1`, f.run); err != nil {
		f.t.Fatal(err)
	}
}

// report sends one of the report mutations with the run's token, as the service does; fields is what is asked of its payload.
func (f far) report(mutation, more, fields string) (status int, body string) {
	f.t.Helper()
	lease := map[string]any{"runId": f.lease.RunID, "attempt": f.lease.Attempt, "leaseToken": f.lease.LeaseToken}
	code, text := f.post(f.lease.LeaseToken, `mutation($lease: RunLeaseInput!) { r: `+mutation+`(input: {lease: $lease`+more+`}) { `+fields+` userErrors { code } } }`, map[string]any{"lease": lease})
	return code, string(text)
}

func (f far) wantReport(mutation, more, fields, want string) {
	f.t.Helper()
	if code, body := f.report(mutation, more, fields); code != http.StatusOK || !strings.Contains(body, want) {
		f.t.Errorf("%s: %d %s, want %s", mutation, code, body, want)
	}
}

// wantNoCall says that the service was not called again.
func (f far) wantNoCall() {
	f.t.Helper()
	select {
	case again := <-f.calls:
		f.t.Errorf("the service was called again, for attempt %d of %s", again.Attempt, again.RunID)
	default:
	}
}

// next is the same service, whose reports go to another process.
func (f far) next(t *testing.T, p *program) far {
	f.journey = f.on(t, p)
	return f
}

const allowed = "127.0.0.0/8"

// SPEC S7.1, S8.4: what a service has accepted goes on when the server that called it is killed or ends, and is not given to it
// again. The next process takes its reports.
func TestAcceptedWorkOutlivesItsServer(t *testing.T) {
	t.Parallel()
	for name, signal := range map[string]syscall.Signal{"killed": syscall.SIGKILL, "asked to end": syscall.SIGTERM} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			url, calls := startRemote(t, serviceSecret)
			data := pgtest.Installed(t)
			p := start(t, data, nil, "--http-allow", allowed, "--drain", "1h")
			f := acceptedRun(t, p, url, calls, nil)
			if code := p.end(signal); signal == syscall.SIGTERM && code != 0 { // at once, whatever the drain is
				t.Errorf("exit %d:\n%s", code, p.log)
			}
			f = f.next(t, start(t, data, nil, "--http-allow", allowed, "--drain", "1s"))
			f.wantReport("reportRunHeartbeat", "", "cancelRequested", `"cancelRequested":false,"userErrors":[]`)
			f.wantReport("reportRunProgress", `, firstSequence: 1, lines: [{text: "still at it"}]`, "acceptedThrough", `"acceptedThrough":1`)
			if view := f.journey.run(f.run); view.Status != "CLAIMED" || view.attempts() != "RUNNING" {
				t.Errorf("%+v", view)
			}
			f.wantReport("reportRunSucceeded", `, result: {summary: "done", usage: {cost_usd: "0.5"}}`, "run { status usage { costUsd } }", `"costUsd":"0.500000"`)
			if view := f.end(f.run); view.Status != "FINISHED" || view.Summary != "done" || view.attempts() != "SUCCEEDED" {
				t.Errorf("%+v", view)
			}
			f.wantNoCall()
			f.wantReport("reportRunHeartbeat", "", "cancelRequested", "STALE_LEASE")
		})
	}
}

// Two processes on one database: the one that called is killed, and the other takes the reports, beside its own work.
func TestAcceptedWorkIsReportedToAnyServerOfTheDatabase(t *testing.T) {
	t.Parallel()
	url, calls := startRemote(t, serviceSecret)
	data := pgtest.Installed(t)
	keeper := start(t, data, nil, "--standby", "--http-allow", allowed) // its database outlives the two
	_, env := databaseOf(t, data)
	first := start(t, pgtest.Folder(t), env, "--http-allow", allowed)
	first.data = data
	f := acceptedRun(t, first, url, calls, nil)
	second := start(t, pgtest.Folder(t), env, "--http-allow", allowed, "--drain", "1s")
	second.data = data
	first.end(syscall.SIGKILL)
	f = f.next(t, second)
	f.wantReport("reportRunHeartbeat", "", "cancelRequested", `"cancelRequested":false`)
	f.wantReport("reportRunSucceeded", `, result: {summary: "told the other"}`, "run { status }", "FINISHED")
	f.wantNoCall()
	second.end(syscall.SIGTERM)
	keeper.end(syscall.SIGTERM)
}

// A cancelled service hears of it from its heartbeat, and what it used is charged; after its grace it hears that it is too late.
func TestACancelReachesAnAcceptedRun(t *testing.T) {
	t.Parallel()
	url, calls := startRemote(t, serviceSecret)
	p := start(t, pgtest.Installed(t), nil, "--http-allow", allowed, "--drain", "1s", "--lease", "5s")
	cancel := func(f far) {
		t.Helper()
		var out any
		f.request(cancelRun, map[string]any{"id": f.run}, &out)
		f.wantReport("reportRunHeartbeat", "", "cancelRequested", `"cancelRequested":true,"userErrors":[]`)
	}
	obeys := acceptedRun(t, p, url, calls, nil)
	cancel(obeys)
	obeys.wantReport("reportRunFailed", `, message: "ended as asked", usage: {costUsd: "0.25"}`, "run { status usage { costUsd } }", `"status":"CANCELLED","usage":{"costUsd":"0.250000"}`)
	if view := obeys.end(obeys.run); view.Status != "CANCELLED" || view.attempts() != "CANCELLED" {
		t.Errorf("%+v", view)
	}

	silent := acceptedRun(t, p, url, calls, nil)
	cancel(silent)
	silent.timeUp()
	if view := silent.end(silent.run); view.Status != "CANCELLED" || view.attempts() != "CANCELLED" {
		t.Errorf("%+v", view)
	}
	for _, late := range [][2]string{{"reportRunHeartbeat", ""}, {"reportRunSucceeded", `, result: {summary: "late"}`}, {"reportRunFailed", `, message: "late"`}} {
		silent.wantReport(late[0], late[1], "", "STALE_LEASE")
	}
	if code, body := silent.post(silent.lease.LeaseToken, `{ process { version } }`, nil); code != http.StatusUnauthorized || !strings.Contains(string(body), "the attempt that this run token belongs to has ended") {
		t.Errorf("another call with the ended token: %d %s", code, body)
	}
}

// The time of an accepted run is kept by whoever sweeps: it is asked to end, and then fails as timed out.
func TestATimeoutReachesAnAcceptedRun(t *testing.T) {
	t.Parallel()
	url, calls := startRemote(t, serviceSecret)
	p := start(t, pgtest.Installed(t), nil, "--http-allow", allowed, "--drain", "1s", "--lease", "5s")
	f := acceptedRun(t, p, url, calls, map[string]any{"timeout": "PT1S"})
	eventually(t, "its service is asked to end", patience, func() bool {
		_, body := f.report("reportRunHeartbeat", "", "cancelRequested")
		return strings.Contains(body, `"cancelRequested":true`)
	})
	f.timeUp()
	eventually(t, "the run waits for its retry", patience, func() bool { return f.journey.run(f.run).RetryCount == 1 })
	if e := f.journey.run(f.run).Attempts[0].Error; e.Code != "TIMEOUT" || !strings.Contains(e.Message, "within its timeout of 1s") {
		t.Errorf("%+v", e)
	}
	f.wantReport("reportRunSucceeded", `, result: {summary: "late"}`, "", "STALE_LEASE")
}

// SPEC S11: while a server waits for its own agents it hears reports, and turns all else away until another time.
func TestReportsAreHeardDuringTheDrain(t *testing.T) {
	t.Parallel()
	url, calls := startRemote(t, serviceSecret)
	data := pgtest.Installed(t)
	p := start(t, data, nil, "--http-allow", allowed, "--drain", "1h", "--log-level", "debug")
	f := acceptedRun(t, p, url, calls, nil)
	o := office{journey: f.journey}
	slow := o.wake(o.agent("slow", map[string]any{"command": map[string]any{"argv": []any{"sleep", "1000"}}}))
	eventually(t, "an agent is at work here", patience, func() bool { return o.run(slow).SessionID != "" })
	p.beginShutdown()
	f.wantReport("reportRunHeartbeat", "", "cancelRequested", `"cancelRequested":false,"userErrors":[]`)
	f.wantReport("reportRunProgress", `, firstSequence: 1, lines: [{text: "during the drain"}]`, "acceptedThrough", `"acceptedThrough":1`)
	f.wantReport("reportRunSucceeded", `, result: {summary: "done during the drain"}`, "run { status }", "FINISHED")
	for _, turned := range []struct{ method, path, token string }{
		{"POST", "/graphql", p.owner}, {"POST", "/api/routine-triggers/x/fire", ""}, {"GET", "/ui/", ""}, {"GET", "/readyz", ""},
	} {
		body := fmt.Sprintf(`{"query":%q}`, `{ process { version } }`)
		req, err := http.NewRequestWithContext(t.Context(), turned.method, strings.TrimSuffix(p.url, "/graphql")+turned.path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		if turned.token != "" {
			req.Header.Set("Authorization", "Bearer "+turned.token)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close() // only its head is looked at
		if resp.StatusCode != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
			t.Errorf("%s %s: %d, Retry-After %q", turned.method, turned.path, resp.StatusCode, resp.Header.Get("Retry-After"))
		}
	}
	var out struct {
		Errors []struct{ Extensions struct{ Code string } }
	}
	_, body := p.post(p.owner, `mutation { acquireRun(input: {workspaceId: "`+f.workspace+`"}) { lease { attempt } } }`, nil)
	if err := json.Unmarshal(body, &out); err != nil || len(out.Errors) != 1 || out.Errors[0].Extensions.Code != "UNAVAILABLE" {
		t.Errorf("a worker that asks for a run: %s", body)
	}
	if code := p.end(syscall.SIGTERM); code != 0 { // the second one is in a hurry
		t.Errorf("exit %d", code)
	}
	if view := f.next(t, start(t, data, nil, "--http-allow", allowed, "--drain", "1s")).journey.run(f.run); view.Summary != "done during the drain" {
		t.Errorf("%+v", view)
	}
}
