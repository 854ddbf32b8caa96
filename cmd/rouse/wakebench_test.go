package main

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"rouse.dev/rouse/internal/pgtest"
)

// hook is an agent with a routine that webhooks fire. A trigger takes a number of deliveries in a minute (domain.WebhookRateLimit), and a
// client makes more than that.
type hook struct {
	agent, routine string
	triggers       []triggerOfHook
	next           int
}

type triggerOfHook struct{ path, secret string }

// triggersOfHook is what a routine may have.
const triggersOfHook = 50

// trigger is the one whose turn it is.
func (h *hook) trigger() triggerOfHook {
	h.next++
	return h.triggers[h.next%len(h.triggers)]
}

// BenchmarkWakes: 64 clients on connections that stay wake agents, fire routines and call webhooks, each an agent of its own, one
// kind after the other. First while nothing is executed, then while a server works off what has been caused, 64 runs at a time.
// Baseline: pgbench with eight clients on the same durable cluster, before and after.
func BenchmarkWakes(b *testing.B) {
	const clients = 64
	length := benchTime(b)
	for b.Loop() {
		data := filepath.Join(pgtest.Folder(b), "data")
		keeper := startProfiled(b, data, "--standby")
		address, env := databaseOf(b, data)
		db := open(b, address)
		pgtest.FillPgbench(b, address)
		before, _ := pgtest.Pgbench(b, address, 5, 8)
		hooks := newJourney(keeper).hooks(clients)
		figures := map[string]float64{}
		profiles, profiled := profileEnv(b)
		front := start(b, pgtest.Folder(b), append(profiled, env...), "--standby")
		front.owner = keeper.owner
		causes(b, front, db, profiles, hooks, length, "", figures)
		front.end(syscall.SIGTERM)
		profiles, profiled = profileEnv(b)
		server := start(b, pgtest.Folder(b), append(profiled, env...), "--workers", fmt.Sprint(clients))
		server.owner = keeper.owner
		causes(b, server, db, profiles, hooks, length, "-draining", figures)
		figures["storm-MB"] = memoryOf(b, server, "VmHWM:")
		server.end(syscall.SIGTERM)
		after, _ := pgtest.Pgbench(b, address, 5, 8)
		baseline := (before + after) / 2
		for name, value := range figures {
			if kind, ok := strings.CutSuffix(name, "/s"); ok {
				figures[kind+"/pgbench"] = value / baseline
			}
		}
		figures["pgbench-8-tps"] = baseline
		report(b, figures)
		keeper.end(syscall.SIGTERM)
	}
}

// causes lets each client cause the same thing for its own agent, over and over, and notes how many there were in a second and how
// long one took.
func causes(b *testing.B, p *program, db *sql.DB, profiles string, hooks []hook, length time.Duration, when string, figures map[string]float64) {
	b.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: len(hooks), DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport}
	base := strings.TrimSuffix(p.url, "/graphql")
	post := func(url, token, body string, want int, wrong string) error {
		req, err := http.NewRequestWithContext(b.Context(), http.MethodPost, url, strings.NewReader(body))
		if err != nil {
			return err
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+token)
		resp, err := client.Do(req)
		if err != nil {
			return err
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err == nil && (resp.StatusCode != want || wrong != "" && strings.Contains(string(answer), wrong)) {
			err = fmt.Errorf("status %d: %s", resp.StatusCode, answer)
		}
		return err
	}
	mutation := func(document, id string) error {
		body, err := json.Marshal(map[string]any{"query": document, "variables": map[string]any{"id": id}})
		if err != nil {
			return err
		}
		return post(p.url, p.owner, string(body), http.StatusOK, `"message"`) // of a userError, or an error
	}
	for _, cause := range []struct {
		kind string
		once func(client int) error
	}{
		{"wakes", func(i int) error { return mutation(wakeAgent, hooks[i].agent) }},
		{"fires", func(i int) error { return mutation(fireRoutine, hooks[i].routine) }},
		{"webhooks", func(i int) error {
			to := hooks[i].trigger()
			return post(base+to.path, to.secret, `{"branch":"main"}`, http.StatusAccepted, "")
		}},
	} {
		name := cause.kind + when
		beginProfile(b, db)
		endProfiles := profile(b, profiles, name, length)
		l := hammer(b, len(hooks), length, p.cmd.Process.Pid, cause.once)
		endProfiles()
		endProfile(b, db, l.rps*length.Seconds())
		figures[name+"/s"], figures[name+"-p50-ms"], figures[name+"-p99-ms"], figures[name+"-cpu-us"] = l.rps, l.p50, l.p99, l.cpu
	}
}

// hooks makes echo agents with eight sessions each, and for each a routine with webhooks that enqueues every fire.
func (j journey) hooks(n int) []hook {
	j.t.Helper()
	out, triggers := make([]hook, n), make([]any, triggersOfHook)
	for i := range triggers {
		triggers[i] = map[string]any{"webhook": map[string]any{"signingMode": "BEARER"}}
	}
	for i := range out {
		var agent struct {
			CreateAgent struct{ Agent struct{ ID string } }
		}
		j.request(createAgent, map[string]any{"in": map[string]any{"workspaceId": j.workspace, "name": fmt.Sprint("echo ", i), "role": "WORKER", "cooldown": "PT0S",
			"skipIdleWakeups": false, "maxConcurrentSessions": 8, "executor": map[string]any{"echo": map[string]any{}}}}, &agent)
		var made struct {
			CreateRoutine struct {
				Routine struct {
					ID       string
					Triggers []struct{ ID, Path string }
				}
				Secrets []struct{ TriggerID, Secret string }
			}
		}
		j.request(`mutation($in: CreateRoutineInput!) { createRoutine(input: $in) { routine { id triggers { ... on WebhookTrigger { id path } } } secrets { triggerId secret } userErrors { message } } }`,
			map[string]any{"in": map[string]any{"workspaceId": j.workspace, "name": fmt.Sprint("routine ", i), "description": "Look around.", "assigneeId": agent.CreateAgent.Agent.ID,
				"concurrencyPolicy": "ALWAYS_ENQUEUE", "triggers": triggers}}, &made)
		r := made.CreateRoutine
		out[i] = hook{agent: agent.CreateAgent.Agent.ID, routine: r.Routine.ID}
		secrets := map[string]string{}
		for _, s := range r.Secrets {
			secrets[s.TriggerID] = s.Secret
		}
		for _, t := range r.Routine.Triggers {
			out[i].triggers = append(out[i].triggers, triggerOfHook{t.Path, secrets[t.ID]})
		}
	}
	return out
}

// BenchmarkQueuedMemory: what the program's process takes at rest, and the most that it takes for a minute while 100,000 runs of a
// busy agent are queued.
func BenchmarkQueuedMemory(b *testing.B) {
	for b.Loop() {
		folder := filepath.Join(pgtest.Folder(b), "data")
		p := start(b, folder, nil)
		j := newJourney(p)
		db := j.database(folder)
		run := j.wake(j.script("sleeper", "sleep 600"))
		waitFor(b, db, `SELECT started_at IS NOT NULL FROM runs WHERE id = $1`, run)
		rest := resident(b, p)
		const fill = `
INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, status, requested_at)
SELECT 'run_' || lpad(n::text, 26, '0'), r.workspace_id, r.agent_id, 'cau_' || n, 'task:' || n, 'SELF', 'EVENT', 'QUEUED', clock_timestamp() - interval '1 hour' + n * interval '1 microsecond'
FROM runs r, generate_series(1, 100000) n WHERE r.id = $1`
		if _, err := db.ExecContext(b.Context(), fill, run); err != nil {
			b.Fatal(err)
		}
		most := 0.0
		look := time.NewTicker(100 * time.Millisecond)
		for end := time.After(time.Minute); end != nil; {
			select {
			case <-look.C:
				most = max(most, resident(b, p))
			case <-end:
				end = nil
			}
		}
		look.Stop()
		report(b, map[string]float64{"rest-MB": rest, "queued-100k-MB": most})
		p.end(syscall.SIGTERM)
	}
}
