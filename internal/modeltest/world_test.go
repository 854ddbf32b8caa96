package modeltest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// program is a store on a database of its own.
type program struct {
	*store.Store
	db  *sql.DB
	log *slog.Logger
	// What is read after each step is planned once: to plan it anew takes as long as a step.
	readState, readOffice *sql.Stmt
}

// withBatches is a store of the program's database of which so many transitions share a transaction; 0: as many as come.
func (p *program) withBatches(most int) *store.Store {
	return store.New(p.db, store.Options{Events: deaf{}, Counters: metrics.New(), Log: p.log, Jitter: func() float64 { return 0 }, Together: most})
}

type deaf struct{}

func (deaf) Publish(...event.Event) {}

// Long enough that nothing of it ends during a sequence: time passes by SQL alone. What the program itself parks for less
// (a retry, a budget's reservation) the database makes longer.
const (
	window   = time.Minute
	cooldown = time.Hour
	lease    = time.Hour
)

func newProgram(t *testing.T, maxConnections int) *program {
	t.Helper()
	db := pgtest.New(t)
	db.SetMaxOpenConns(maxConnections)
	db.SetMaxIdleConns(maxConnections)
	log := slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelError}))
	p := &program{db: db, log: log}
	p.Store = p.withBatches(0)
	if err := p.Activate(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, statement := range watch {
		if _, err := db.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	for query, stmt := range map[string]**sql.Stmt{stateQuery: &p.readState, officeQuery: &p.readOffice} {
		prepared, err := db.PrepareContext(t.Context(), query)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = prepared.Close() }) // with its connections
		*stmt = prepared
	}
	return p
}

// watch refuses, in the database itself and at every instant, what no transition may do; and keeps time from passing.
var watch = []string{`
CREATE FUNCTION watch_run() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF OLD.wake_class = 'EVENT' AND NEW.wake_class <> 'EVENT' THEN RAISE EXCEPTION 'the class of run % went back', OLD.id; END IF;
  IF OLD.finished_at IS NOT NULL AND NEW.status <> OLD.status THEN RAISE EXCEPTION 'run % ended twice', OLD.id; END IF;
  IF NEW.attempt < OLD.attempt THEN RAISE EXCEPTION 'the attempts of run % went back', OLD.id; END IF;
  RETURN NEW;
END $$`, `
CREATE TRIGGER watch BEFORE UPDATE ON runs FOR EACH ROW EXECUTE FUNCTION watch_run()`, `
CREATE FUNCTION hold_time() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  NEW.parked_until = NEW.parked_until + interval '1 hour';
  RETURN NEW;
END $$`, `
CREATE TRIGGER hold_time_made BEFORE INSERT ON runs FOR EACH ROW WHEN (NEW.parked_until > clock_timestamp()) EXECUTE FUNCTION hold_time()`, `
CREATE TRIGGER hold_time BEFORE UPDATE ON runs FOR EACH ROW
  WHEN (NEW.parked_until > clock_timestamp() AND NEW.parked_until IS DISTINCT FROM OLD.parked_until) EXECUTE FUNCTION hold_time()`, `
CREATE FUNCTION watch_lane() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NEW.running > OLD.running AND NEW.running > NEW.max_sessions THEN RAISE EXCEPTION 'agent % is over its capacity', OLD.agent_id; END IF;
  RETURN NEW;
END $$`, `
CREATE TRIGGER watch BEFORE UPDATE ON agent_lanes FOR EACH ROW EXECUTE FUNCTION watch_lane()`, `
CREATE FUNCTION watch_workspace() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
  IF NEW.running > OLD.running AND NEW.running > NEW.max_running THEN RAISE EXCEPTION 'workspace % is over its ceiling', OLD.workspace_id; END IF;
  RETURN NEW;
END $$`, `
CREATE TRIGGER watch BEFORE UPDATE ON workspace_lanes FOR EACH ROW EXECUTE FUNCTION watch_workspace()`,
}

// place is one workspace on a program, with its agents and routines.
type place struct {
	*program
	workspace xid.ID
	agents    []xid.ID
	routines  []xid.ID
	projects  []xid.ID // none unless tasks are about them
}

// settings are what a place is made with.
type settings struct {
	windowed bool
	ceiling  int
	agents   []agentSettings // the first is the coordinator
	routines []routineSettings
}

// queue is the one that workers take runs from.
const queue = "model"

type agentSettings struct {
	capacity                     int
	cools, skipsIdle, noExecutor bool
	pulls                        bool // its runs are executed by workers of the queue
}

type routineSettings struct {
	agent  int
	policy domain.ConcurrencyPolicy
}

func newPlace(ctx context.Context, p *program, s settings) (*place, error) {
	name := string(xid.New("place"))
	made, err := p.CreateWorkspace(ctx, store.CreateWorkspace{Name: name, Slug: name[len("place_"):], OfficeWorkflow: true})
	if err != nil {
		return nil, err
	}
	w := &place{program: p, workspace: made.ID}
	length := time.Duration(0)
	if s.windowed {
		length = window
	}
	if err := w.sql(ctx, `UPDATE workspaces SET coalescing_window_ms = $2 WHERE id = $1`, w.workspace, length.Milliseconds()); err != nil {
		return nil, err
	}
	if err := w.setCeiling(ctx, s.ceiling); err != nil {
		return nil, err
	}
	for i, a := range s.agents {
		if err := w.addAgent(ctx, i, a); err != nil {
			return nil, err
		}
	}
	for i, r := range s.routines {
		if err := w.addRoutine(ctx, i, r); err != nil {
			return nil, err
		}
	}
	return w, nil
}

func (w *place) addAgent(ctx context.Context, i int, a agentSettings) error {
	in := store.CreateAgent{WorkspaceID: w.workspace, Name: fmt.Sprint("agent ", i+1), Role: domain.AgentRoleWorker,
		MaxConcurrentSessions: a.capacity, SkipIdleWakeups: &a.skipsIdle, Executor: &domain.ExecutorSpec{Echo: &domain.EchoSpec{}}}
	if i == 0 {
		in.Role = domain.AgentRoleCoordinator
	}
	if a.cools {
		in.Cooldown = cooldown
	}
	if a.pulls {
		in.Executor = &domain.ExecutorSpec{Pull: &domain.PullSpec{Queue: queue, Lease: lease}}
	}
	if a.noExecutor {
		in.Executor = nil
	}
	made, err := w.CreateAgent(ctx, in)
	w.agents = append(w.agents, made.ID)
	return err
}

func (w *place) addRoutine(ctx context.Context, i int, r routineSettings) error {
	none := ""
	made, err := w.CreateRoutine(ctx, store.CreateRoutine{WorkspaceID: w.workspace, Name: fmt.Sprint("routine ", i+1), Description: "Do {{what}}",
		AssigneeID: w.agents[r.agent], ConcurrencyPolicy: r.policy, CatchUpPolicy: domain.CatchUpPolicySkipMissed, CatchUpMax: 1,
		Variables: []domain.RoutineVariable{{Name: "what", Type: domain.VariableTypeText, Default: &none}}})
	w.routines = append(w.routines, made.ID)
	return err
}

func (w *place) sql(ctx context.Context, query string, args ...any) error {
	_, err := w.db.ExecContext(ctx, query, args...)
	return err
}

// setCeiling bounds the workspace's live runs; 0 ends the bound.
func (w *place) setCeiling(ctx context.Context, most int) error {
	bound := domain.Change[int]{Set: true}
	if most > 0 {
		bound = domain.To(most)
	}
	_, err := w.UpdateSettings(ctx, store.UpdateSettings{WorkspaceID: w.workspace, Patch: domain.SettingsPatch{MaxRuns: bound}})
	return err
}

func (w *place) setCapacity(ctx context.Context, agent, capacity int) error {
	_, _, err := w.UpdateAgent(ctx, store.UpdateAgent{WorkspaceID: w.workspace, AgentID: w.agents[agent], Patch: domain.AgentPatch{Sessions: domain.To(capacity)}})
	return err
}

func (w *place) setPaused(ctx context.Context, agent int, paused bool) error {
	if paused {
		return w.PauseAgent(ctx, store.HoldAgent{WorkspaceID: w.workspace, AgentID: w.agents[agent]})
	}
	_, err := w.ResumeAgent(ctx, w.workspace, w.agents[agent])
	return err
}

// cool ends an agent's cooldown, pass the time that a run is parked for.
func (w *place) cool(ctx context.Context, agent int) error {
	return w.sql(ctx, `UPDATE agent_lanes SET eligible_at = clock_timestamp() - interval '1 second' WHERE agent_id = $1`, w.agents[agent])
}

// coolAll ends all cooldowns.
func (w *place) coolAll(ctx context.Context) error {
	return w.sql(ctx, `UPDATE agent_lanes SET eligible_at = clock_timestamp() - interval '1 second' WHERE workspace_id = $1`, w.workspace)
}

// passAll lets the time pass that queued runs wait for.
func (w *place) passAll(ctx context.Context) error {
	return w.sql(ctx, `
UPDATE runs SET parked_until = clock_timestamp() - interval '1 second' WHERE workspace_id = $1 AND status = 'QUEUED' AND parked_until IS NOT NULL`, w.workspace)
}

func (w *place) pass(ctx context.Context, run xid.ID) error {
	return w.sql(ctx, `
UPDATE runs SET parked_until = clock_timestamp() - interval '1 second' WHERE id = $1 AND status = 'QUEUED' AND parked_until IS NOT NULL`, run)
}

// request is a cause that has no method of its own, such as a comment: its row, as the store inserts it, unrouted.
type request struct {
	agent         int
	scope         string
	event, person bool
	hops          int
}

func (w *place) ask(ctx context.Context, r request) error {
	class := domain.WakeClassPeriodic
	if r.event {
		class = domain.WakeClassEvent
	}
	const query = `
INSERT INTO wakeup_requests (id, workspace_id, agent_id, causation_id, scope, source, wake_class, person_waiting, reason, payload, status,
  recovered, resends, hops, retry_count)
VALUES ($1, $2, $3, $4, $5, 'SELF', $6, $7, 'model', '{"reason": "model"}', 'QUEUED', false, 0, $8, 0)`
	return w.sql(ctx, query, xid.New("wkp"), w.workspace, w.agents[r.agent], xid.New("cau"), r.scope, class, r.person, r.hops)
}

// wake is a person's wake; the same key again must make nothing.
func (w *place) wake(ctx context.Context, agent int, key string) error {
	_, err := w.Wake(ctx, store.Wake{WorkspaceID: w.workspace, AgentID: w.agents[agent], UserID: "ann", Idempotency: store.Idempotency{Key: key, InputDigest: key}})
	return err
}

func (w *place) fireByHand(ctx context.Context, routine int, what string) error {
	in := store.FireRoutine{WorkspaceID: w.workspace, RoutineID: w.routines[routine]}
	if what != "" {
		in.Variables = map[string]string{"what": what}
	}
	_, _, err := w.FireRoutine(ctx, in)
	return err
}

// fireByClock lets a slot come. Each has a schedule of its own: one schedule has one slot a minute.
func (w *place) fireByClock(ctx context.Context, routine int) error {
	trigger := xid.New("sch")
	const schedule = `
INSERT INTO routine_triggers (id, workspace_id, routine_id, kind, enabled, cron, time_zone, next_run_at)
VALUES ($1, $2, $3, 'SCHEDULE', true, '* * * * *', 'UTC', date_trunc('minute', clock_timestamp()))`
	if err := w.sql(ctx, schedule, trigger, w.workspace, w.routines[routine]); err != nil {
		return err
	}
	_, err := w.FireDue(ctx, trigger)
	return err
}

func (w *place) expire(ctx context.Context, a store.Attempt) error {
	return w.sql(ctx, `UPDATE attempt_leases SET lease_until = clock_timestamp() - interval '1 second' WHERE run_id = $1 AND attempt = $2`, a.RunID, a.Number)
}

// allowed lets pass what a rule may answer to somebody who comes too late.
func allowed(err error) error {
	var refused *domain.UserError
	if errors.Is(err, store.ErrFenced) || errors.As(err, &refused) {
		return nil
	}
	return err
}
