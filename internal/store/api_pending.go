package store

import (
	"context"
	"encoding/json"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// THIS FILE IS TEMPORARY: it lets other packages compile while the methods are written.

// Reader is a client for the API: it refuses mutations and adds the workspace predicate of the principal in ctx to every query.
func NewReader(client *ent.Client) *ent.Client { panic("pending") }

type TriggerSpec struct {
	Kind     domain.TriggerKind
	Cron     string
	TimeZone string // "": the workspace's
	Enabled  bool
}
type CreateRoutine struct {
	WorkspaceID       xid.ID
	Name, Description string
	AssigneeID        xid.ID
	ConcurrencyPolicy domain.ConcurrencyPolicy
	CatchUpPolicy     domain.CatchUpPolicy
	CatchUpMax        int
	TaskTemplate      *domain.TaskTemplate
	Variables         []domain.RoutineVariable
	Triggers          []TriggerSpec
	IdempotencyKey    string
	InputDigest       string
}

func (s *Store) CreateRoutine(ctx context.Context, in CreateRoutine) (Made, error) { panic("pending") }

type FireRoutine struct {
	WorkspaceID, RoutineID, TriggerID xid.ID // TriggerID may be empty
	Variables                         map[string]string
	IdempotencyKey                    string
	InputDigest                       string
}

// FireRoutine fires by hand: a routine run and, unless the policy says otherwise, an unrouted request. AgentID is who to route.
func (s *Store) FireRoutine(ctx context.Context, in FireRoutine) (made Made, agentID xid.ID, err error) {
	panic("pending")
}

// NextInstant is the earliest of the next parked_until, cooldown end of a lane with a head; zero: none.
func (s *Store) NextInstant(ctx context.Context) (at, now time.Time, err error) { panic("pending") }

type Repairs struct{ Heads, Running, Locks, Scopes, Unrouted int }

func (s *Store) Repair(ctx context.Context) (Repairs, error) { panic("pending") }

// ---- cron
type DueTrigger struct {
	ID        xid.ID
	NextRunAt time.Time
}

// DueTriggers lists schedules with next_run_at <= now after (at, id), in that order.
func (s *Store) DueTriggers(ctx context.Context, after DueTrigger, limit int) ([]DueTrigger, error) {
	panic("pending")
}

// FireDue fires one due trigger (T1): cursor by compare-and-set, routine runs, requests; returns agents to route.
func (s *Store) FireDue(ctx context.Context, triggerID xid.ID) ([]xid.ID, error) { panic("pending") }

// ArmTriggers gives enabled schedules without a next slot their first one, without a fire.
func (s *Store) ArmTriggers(ctx context.Context) (int, error) { panic("pending") }

// ---- streams
type RunEvent struct {
	Seq        int64
	Kind       domain.RunEventKind
	Attempt    int // 0: none
	Data       json.RawMessage
	OccurredAt time.Time
}
type LogPosition struct {
	Attempt int
	Seq     int64
}
type LogRow struct {
	LogPosition
	Stream domain.LogStream
	Text   string
	At     time.Time
}

func (s *Store) RunEventsAfter(ctx context.Context, runID xid.ID, seq int64, limit int) ([]RunEvent, error) {
	panic("pending")
}
func (s *Store) LogAfter(ctx context.Context, runID xid.ID, after LogPosition, limit int) ([]LogRow, error) {
	panic("pending")
}

// RunContent is the long texts of a run, for the API.
func (s *Store) RunContents(ctx context.Context, runIDs []xid.ID) (map[xid.ID]*ent.RunContent, error) {
	panic("pending")
}
