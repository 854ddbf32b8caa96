package store

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/event"
	"rouse.dev/rouse/internal/metrics"
	"rouse.dev/rouse/internal/xid"
)

// THIS FILE IS TEMPORARY: it lets other packages compile while the methods are written.

type Publisher interface{ Publish(...event.Event) }

type Options struct {
	Events   Publisher
	Counters *metrics.Counters
	Log      *slog.Logger
	Jitter   func() float64 // [0,1)
}

type Store struct{}

func New(client *ent.Client, o Options) *Store { panic("pending") }

// Reader is a client for the API: it refuses mutations and adds the workspace predicate of the principal in ctx to every query.
func NewReader(client *ent.Client) *ent.Client { panic("pending") }

// ---- records a person makes. All return *domain.UserError for what the caller can fix.
type Idempotency struct {
	Key string // "" none
}
type CreateWorkspace struct {
	Name, Slug, DefaultTimeZone string
	OfficeWorkflow              bool
	IdempotencyKey              string
}
type CreateAgent struct {
	WorkspaceID           xid.ID
	Name                  string
	Role                  domain.AgentRole
	MaxConcurrentSessions int
	Cooldown              time.Duration
	SkipIdleWakeups       *bool // nil: by role
	Instructions          string
	ManagerID             xid.ID
	SessionMaxRuns        *int
	SessionMaxAge         *time.Duration
	// Executor is already sealed by the caller; ID must then be given (sealing is bound to it).
	ID             xid.ID
	Executor       *domain.ExecutorSpec
	IdempotencyKey string
	InputDigest    string // digest of the whole input, for IDEMPOTENCY_KEY_REUSED
}
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

// Made is the answer of a creating method: the id of the record, and whether an earlier call with the key made it.
type Made struct {
	ID       xid.ID
	Replayed bool
	Clamped  []string // names of fields (API spelling) whose value was clamped
}

func (s *Store) CreateWorkspace(ctx context.Context, in CreateWorkspace) (Made, error) {
	panic("pending")
}
func (s *Store) CreateAgent(ctx context.Context, in CreateAgent) (Made, error)     { panic("pending") }
func (s *Store) CreateRoutine(ctx context.Context, in CreateRoutine) (Made, error) { panic("pending") }

type Wake struct {
	WorkspaceID, AgentID xid.ID
	UserID               string
	Context              map[string]any
	IdempotencyKey       string
	InputDigest          string
}

// Wake inserts a USER request, unrouted; Route makes or finds its run.
func (s *Store) Wake(ctx context.Context, in Wake) (Made, error) { panic("pending") }

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

// CancelRun: QUEUED at once with all its requests; CLAIMED: a flag that the owner obeys; terminal: ALREADY_TERMINAL UserError.
func (s *Store) CancelRun(ctx context.Context, workspaceID, runID xid.ID, note string) error {
	panic("pending")
}

// ---- queue
// Route routes every unrouted request of the agent under its lane lock (T2). It returns how many it routed.
func (s *Store) Route(ctx context.Context, agentID xid.ID) (int, error) { panic("pending") }

// UnroutedAgents lists agents that have unrouted requests, oldest first.
func (s *Store) UnroutedAgents(ctx context.Context, limit int) ([]xid.ID, error) { panic("pending") }

// Owner identifies this process on leases.
type Owner struct {
	ID           xid.ID // prc_…
	Host, BootID string
	PID          int
	Started      int64 // kernel start time of the process, clock ticks since boot
}

// Attempt names one try at a run and its owner: the fence of every report.
type Attempt struct {
	RunID  xid.ID
	Number int
	Owner  xid.ID
}
type Claimed struct {
	Attempt
	WorkspaceID, AgentID xid.ID
}

// Claim takes up to max due runs of agents with free sessions (T3), settles what a guard refuses, and leases the rest.
func (s *Store) Claim(ctx context.Context, owner Owner, max int, lease time.Duration) ([]Claimed, error) {
	panic("pending")
}

// Launch is what the worker needs to run one attempt.
type Launch struct {
	Attempt
	WorkspaceID, AgentID, TaskID, RoutineID xid.ID
	Prompt                                  string
	Executor                                domain.ExecutorSpec
	ExecutorHolder                          xid.ID // record that the sealed values are bound to
	ResumeSessionID                         string
	WakeReason                              domain.WakeupSource
	WakePayload                             json.RawMessage
	RunToken                                string // plain; only its digest is stored
	CausationID                             xid.ID
}

// Start assembles the prompt, writes the receipts and returns what to launch (T4). launch is nil when the attempt was settled
// instead (agent inactive, stale, cancel asked, no executor); err is ErrFenced when another attempt owns the run.
func (s *Store) Start(ctx context.Context, a Attempt) (launch *Launch, err error) { panic("pending") }

type ProcessGroup struct {
	Host, BootID string
	PGID         int
	Started      int64
}

func (s *Store) RecordProcess(ctx context.Context, a Attempt, g ProcessGroup) error { panic("pending") }
func (s *Store) RecordSession(ctx context.Context, a Attempt, sessionID string) error {
	panic("pending")
}

type LogLine struct {
	Seq    int64 // from 1 within the attempt
	Stream domain.LogStream
	Text   string
	At     time.Time
}

func (s *Store) AppendLog(ctx context.Context, a Attempt, lines []LogLine) error { panic("pending") }

// AttemptState tells the owner what a heartbeat found.
type AttemptState struct {
	Attempt
	Lost            bool
	CancelRequested bool
	LeaseUntil      time.Time // database clock
}

// Heartbeat lengthens the leases of live attempts in one statement.
func (s *Store) Heartbeat(ctx context.Context, attempts []Attempt, lease time.Duration) ([]AttemptState, error) {
	panic("pending")
}

// CancelRequested reads the flag of one run.
func (s *Store) CancelRequested(ctx context.Context, runID xid.ID) (bool, error) { panic("pending") }

type Success struct {
	Result                    map[string]any // nil: none
	Summary                   string
	SessionID                 string
	InputTokens, OutputTokens int64
	CostUSD                   string // decimal, "" unknown
}
type Failure struct {
	Code      domain.RunErrorCode
	Message   string // masked
	Permanent bool
	SessionID string
}

func (s *Store) Finish(ctx context.Context, a Attempt, ok Success) error { panic("pending") }

// Fail plans the retry, or fails the run and escalates; a cancel that was asked ends it CANCELLED.
func (s *Store) Fail(ctx context.Context, a Attempt, f Failure) error { panic("pending") }

// Cancelled ends a live attempt whose cancel was obeyed.
func (s *Store) Cancelled(ctx context.Context, a Attempt) error { panic("pending") }

// HandBack returns a live attempt to the queue at shutdown (INTERRUPTED); neither failure nor abandonment.
func (s *Store) HandBack(ctx context.Context, a Attempt) error { panic("pending") }

// Leftover is a live lease of some process, with what identifies the owner and the agent's process group.
type Leftover struct {
	Attempt
	OwnerHost, OwnerBootID string
	OwnerPID               int
	OwnerStarted           int64
	Group                  ProcessGroup // PGID 0: none
	LeaseUntil             time.Time
	Expired                bool // by the database clock
}

// Leases lists live leases of other owners: those of this host (so that dead owners are found at once), and expired ones.
func (s *Store) Leases(ctx context.Context, notOwner xid.ID, host string) ([]Leftover, error) {
	panic("pending")
}

// Abandon ends an attempt whose owner is dead or whose lease ran out: ABANDONED, run due again, third time FAILED.
// Without dead it acts only when the lease has run out by the database clock.
func (s *Store) Abandon(ctx context.Context, a Attempt, dead bool) (bool, error) { panic("pending") }

// Uptime is how long the database server has been up.
func (s *Store) Uptime(ctx context.Context) (time.Duration, error) { panic("pending") }

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

// ---- tokens
type Token struct {
	ID          xid.ID
	WorkspaceID xid.ID // zero: instance
	Name        string
	Scopes      []domain.TokenScope
	ExpiresAt   *time.Time
}
type NewToken struct {
	WorkspaceID    xid.ID
	Name           string
	Prefix, Digest string
	Scopes         []domain.TokenScope
	ExpiresAt      *time.Time
}

func (s *Store) CreateToken(ctx context.Context, in NewToken) (xid.ID, error) { panic("pending") }

// TokenByDigest is nil for an unknown, revoked or expired token.
func (s *Store) TokenByDigest(ctx context.Context, digest string) (*Token, error) { panic("pending") }

// RunTokenByDigest is the live attempt behind a run token; nil when it ended.
func (s *Store) RunTokenByDigest(ctx context.Context, digest string) (*RunToken, error) {
	panic("pending")
}

type RunToken struct {
	WorkspaceID, AgentID, RunID, TaskID xid.ID
	Attempt                             int
}

func (s *Store) HasTokens(ctx context.Context) (bool, error)      { panic("pending") }
func (s *Store) RevokeToken(ctx context.Context, id xid.ID) error { panic("pending") }

// IsEmpty says whether there is no workspace yet.
func (s *Store) IsEmpty(ctx context.Context) (bool, error) { panic("pending") }

// Activate writes the activation instant once (SPEC S10.1).
func (s *Store) Activate(ctx context.Context) error { panic("pending") }

// RunContent is the long texts of a run, for the API.
func (s *Store) RunContents(ctx context.Context, runIDs []xid.ID) (map[xid.ID]*ent.RunContent, error) {
	panic("pending")
}

// Lane is an agent's hot state, for the API.
type Lane struct {
	AgentID        xid.ID
	Status         domain.AgentStatus // WORKING when a run is live
	PauseReason    *domain.AgentPauseReason
	Running        int
	AvailableAt    *time.Time // end of the cooldown; nil: now
	LastFinishedAt *time.Time
}

func (s *Store) Lanes(ctx context.Context, agentIDs []xid.ID) (map[xid.ID]*Lane, error) {
	panic("pending")
}

var ErrFenced error
