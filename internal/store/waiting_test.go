package store

import (
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// TestWaitingTellsTheTruth compares, for random states of the queue, what Waiting says of every queued run with what the
// real claim then takes: one said NONE is taken or settled by the next pass, one said anything else is not, and what is
// said to hold it does. It goes on until each reason that exists was given at least
// 30 times, and in the full form (make test-model) 100 times.
func TestWaitingTellsTheTruth(t *testing.T) {
	t.Parallel()
	base := uint64(time.Now().UnixNano())
	s := newTruth(t)
	for round := uint64(0); !s.enough(); round++ {
		if round > 2000 {
			t.Fatalf("too rare: %v", s.said)
		}
		s.play(base + round)
	}
	t.Logf("first seed %d, said %v", base, s.said)
}

// truth makes random states on one database.
type truth struct {
	*world
	rand       *rand.Rand
	seed       uint64
	workspaces []xid.ID
	agents     []xid.ID
	said       map[domain.QueueHold]int
}

func newTruth(t *testing.T) *truth {
	s := &truth{world: newWorld(t), said: map[domain.QueueHold]int{}}
	other, err := s.CreateWorkspace(t.Context(), CreateWorkspace{Name: "Other", OfficeWorkflow: true})
	s.workspaces = []xid.ID{s.workspace, must(s.world, other, err).ID}
	for i := range 8 {
		s.agents = append(s.agents, s.agent(fmt.Sprint("agent", i), func(a *CreateAgent) { a.WorkspaceID = s.workspaces[i%2] }))
	}
	return s
}

func (s *truth) enough() bool {
	times := 30
	if os.Getenv("ROUSE_MODEL_FULL") != "" {
		times = 100
	}
	for _, hold := range []domain.QueueHold{domain.QueueHoldNone, domain.QueueHoldRouting, domain.QueueHoldAgentAtCapacity, domain.QueueHoldAgentCooldown,
		domain.QueueHoldWindow, domain.QueueHoldBackoff, domain.QueueHoldRateLimit, domain.QueueHoldScopeBusy, domain.QueueHoldWorkspaceCeiling,
		domain.QueueHoldGuardError, domain.QueueHoldWorkspaceHeld, domain.QueueHoldLoopBreaker} {
		if s.said[hold] < times {
			return false
		}
	}
	return true
}

// play makes a state, asks, claims all that can be claimed in batches of random size, and compares.
func (s *truth) play(seed uint64) {
	s.Helper()
	s.seed, s.rand = seed, rand.New(rand.NewPCG(seed, 1))
	s.reset()
	for i, agent := range s.agents {
		s.fill(agent, s.workspaces[i%2])
	}
	s.sql(`UPDATE workspace_lanes w SET running = (SELECT count(*) FROM runs WHERE workspace_id = w.workspace_id AND status = 'CLAIMED')`)
	for _, id := range s.workspaces {
		if s.chance(60) {
			s.sql(`UPDATE workspace_lanes SET max_running = greatest(running + $2, 0) WHERE workspace_id = $1`, id, s.rand.IntN(6)-1)
		}
		if s.chance(10) {
			s.sql(`UPDATE workspace_lanes SET held_at = clock_timestamp() WHERE workspace_id = $1`, id)
		}
	}
	queued := must(s.world, first(pgtx.Collect(s.Context(), s.db, pgtx.ScanOne[xid.ID], `SELECT id FROM runs WHERE status = 'QUEUED'`)), nil)
	requests := must(s.world, first(pgtx.Collect(s.Context(), s.db, pgtx.ScanOne[xid.ID], `SELECT id FROM wakeup_requests`)), nil)
	waiting, err := s.Waiting(s.Context(), queued, requests)
	s.ok(err)
	s.claimAll()
	for _, id := range queued {
		s.compare(id, waiting)
	}
	for _, id := range requests {
		s.said[waiting[id].Hold]++
		if waiting[id].Hold != domain.QueueHoldRouting {
			s.Errorf("seed %d: unrouted request %s is said to wait for %q", seed, id, waiting[id].Hold)
		}
	}
	again, err := s.Waiting(s.Context(), queued, nil)
	s.ok(err)
	for id, w := range again {
		if w.Hold == domain.QueueHoldNone {
			s.Errorf("seed %d: after the pass run %s is still said to be taken next", seed, id)
		}
	}
	if s.Failed() {
		s.FailNow()
	}
}

func (s *truth) reset() {
	for _, table := range []string{"wakeup_requests", "run_attempts", "attempt_leases", "run_events", "activities", "runs"} {
		s.sql(`DELETE FROM ` + table)
	}
	s.sql(`UPDATE workspace_lanes SET running = 0, max_running = NULL, held_at = NULL`)
}

func (s *truth) chance(percent int) bool { return s.rand.IntN(100) < percent }

// fill makes an agent and its queue what they may be after any history: at most one run of a scope is live or due.
func (s *truth) fill(agent, workspace xid.ID) {
	sessions, live := 1+s.rand.IntN(3), 0
	taken := map[string]bool{}
	for range s.rand.IntN(3) {
		if scope := s.scope(); !taken[scope] {
			taken[scope] = true
			live++
			s.insert(agent, workspace, scope, `'CLAIMED', NULL, NULL, clock_timestamp()`)
		}
	}
	for range s.rand.IntN(7) {
		scope := s.scope()
		switch {
		case s.chance(45):
			reason := []domain.ParkedReason{domain.ParkedReasonWindow, domain.ParkedReasonBackoff, domain.ParkedReasonRateLimit, domain.ParkedReasonGuardError}[s.rand.IntN(4)]
			minutes := 60
			if s.chance(40) {
				minutes = -1 // over, but nobody came by yet
			}
			s.insert(agent, workspace, scope, fmt.Sprintf(`'QUEUED', '%s', clock_timestamp() + interval '%d minutes', NULL`, reason, minutes))
		case taken[scope]:
			s.insert(agent, workspace, scope, `'QUEUED', 'SCOPE_BUSY', NULL, NULL`)
		default:
			taken[scope] = true
			s.insert(agent, workspace, scope, `'QUEUED', NULL, NULL, NULL`)
		}
	}
	status, deleted := "IDLE", s.chance(4)
	if s.chance(15) || deleted {
		status = []string{"PAUSED", "STOPPED"}[s.rand.IntN(2)]
	}
	s.sql(`UPDATE agents SET skip_idle_wakeups = $2, deleted_at = CASE WHEN $3 THEN clock_timestamp() END, launch_limit = NULLIF($4, 0) WHERE id = $1`,
		agent, s.chance(50), deleted, max(s.rand.IntN(8)-3, 0))
	s.sql(`UPDATE agent_lanes SET launches = $2::bigint, launches_since = CASE WHEN $2::bigint > 0 THEN clock_timestamp() - $3 * interval '1 minute' END WHERE agent_id = $1`,
		agent, s.rand.IntN(4), []int{1, 59, 61, 600}[s.rand.IntN(4)])
	rest := -1
	if s.chance(15) {
		rest = 60
	}
	s.sql(`UPDATE agent_lanes l SET status = $2, max_sessions = $3, running = $4, eligible_at = clock_timestamp() + $5 * interval '1 minute',
	  clearing = $6, (head_at, head_id) = (SELECT requested_at, id FROM runs WHERE agent_id = l.agent_id AND status = 'QUEUED' AND parked_reason IS NULL
	                        ORDER BY requested_at, id LIMIT 1) WHERE agent_id = $1`, agent, status, sessions, live, rest, deleted)
	if s.chance(20) {
		r := newRequest{workspaceID: workspace, agentID: agent, causationID: xid.New("cau"), scope: domain.ScopeTaskless, source: domain.WakeupSourceSelf,
			class: domain.WakeClassEvent, reason: "random", payload: &domain.SelfPayload{Reason: "random"}}
		s.ok(s.inTx(s.Context(), func(t *tx) error { _, _, err := t.insertRequest(s.Context(), r); return err }))
	}
}

func (s *truth) scope() string { return fmt.Sprint("task:", s.rand.IntN(5)) }

// insert makes a run; state is its status, parking and claimed_at. Few instants, so that some runs have the same.
func (s *truth) insert(agent, workspace xid.ID, scope, state string) {
	s.sql(`INSERT INTO runs (id, workspace_id, agent_id, causation_id, scope, source, wake_class, requested_at, cancel_requested_at, unattended, status, parked_reason, parked_until, claimed_at)
VALUES ($1, $2, $3, $4, $5, 'SELF', $6, '2026-01-01Z'::timestamptz + $7 * interval '1 second', CASE WHEN $8 THEN clock_timestamp() END, $9, `+state+`)`,
		xid.New("run"), workspace, agent, xid.New("cau"), scope, []string{"EVENT", "EVENT", "PERIODIC"}[s.rand.IntN(3)], s.rand.IntN(30), s.chance(4), s.chance(60))
}

func (s *truth) claimAll() {
	for vain := 0; vain < 8; { // a pass that only settled gives nothing, and may have made more due; it ends the backlogs of a few agents
		if len(s.claim(1+s.rand.IntN(16))) > 0 {
			vain = 0
		} else {
			vain++
		}
	}
}

func (s *truth) compare(id xid.ID, waiting map[xid.ID]domain.Waiting) {
	s.Helper()
	w, answered := waiting[id]
	run := s.run(id)
	s.said[w.Hold]++
	if taken := run.status != domain.RunStatusQueued; !answered || taken != (w.Hold == domain.QueueHoldNone) {
		s.Errorf("seed %d: run %s (%s) was said to wait for %q until %v, by %v; taken: %v", s.seed, id, run.scope, w.Hold, w.Until, w.BlockedBy, taken)
		return
	}
	var holds bool
	switch w.Hold {
	case domain.QueueHoldAgentAtCapacity:
		holds = one[bool](s.world, `SELECT running >= max_sessions AND running = $2 AND running = (SELECT count(*) FROM runs WHERE id = ANY($3) AND agent_id = $1 AND status = 'CLAIMED')
		  FROM agent_lanes WHERE agent_id = $1`, run.agentID, len(w.BlockedBy), pgtx.TextArray(w.BlockedBy))
	case domain.QueueHoldAgentCooldown:
		holds = one[bool](s.world, `SELECT eligible_at = $2 AND eligible_at > clock_timestamp() FROM agent_lanes WHERE agent_id = $1`, run.agentID, w.Until)
	case domain.QueueHoldWorkspaceCeiling:
		holds = one[bool](s.world, `SELECT running >= max_running FROM workspace_lanes WHERE workspace_id = $1`, run.workspaceID)
	case domain.QueueHoldScopeBusy:
		holds = len(w.BlockedBy) == 1 && one[bool](s.world, `SELECT scope = $2 AND agent_id = $3 AND (status = 'CLAIMED' OR status = 'QUEUED' AND parked_reason IS NULL) FROM runs WHERE id = $1`,
			w.BlockedBy[0], run.scope, run.agentID)
	case domain.QueueHoldWorkspaceHeld:
		holds = one[bool](s.world, `SELECT held_at = $2 FROM workspace_lanes WHERE workspace_id = $1`, run.workspaceID, w.Since)
	case domain.QueueHoldLoopBreaker:
		holds = run.parkedReason != nil && *run.parkedReason == domain.ParkedReasonLoopBreaker &&
			run.parkedUntil.Sub(w.Until).Abs() < time.Minute && // a window that begins with the pass begins by the pass's clock
			one[bool](s.world, `SELECT l.launches >= a.launch_limit AND l.launches_since + a.launch_limit_ms * interval '1 millisecond' = $2
			  FROM agent_lanes l JOIN agents a ON a.id = l.agent_id WHERE a.id = $1`, run.agentID, *run.parkedUntil)
	case domain.QueueHoldWindow, domain.QueueHoldBackoff, domain.QueueHoldRateLimit, domain.QueueHoldGuardError:
		holds = run.parkedReason != nil && string(*run.parkedReason) == string(w.Hold) && run.parkedUntil.Equal(w.Until)
	default:
		holds = w.Hold == domain.QueueHoldNone
	}
	if !holds {
		s.Errorf("seed %d: run %s was said to wait for %q until %v, by %v, which does not hold it", s.seed, id, w.Hold, w.Until, w.BlockedBy)
	}
}

// A reading that panics leaves no connection in a transaction.
func TestASnapshotEndsWhenItsReaderPanics(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic is lost")
			}
		}()
		_ = w.AtOneMoment(t.Context(), func(pgtx.Querier) error { panic("oh") })
	}()
	if n := w.db.Stats().InUse; n != 0 {
		t.Errorf("%d connections are in use", n)
	}
}
