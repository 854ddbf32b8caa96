//go:build unix

// Package executor starts real agents and brings back what they say (SPEC S7). An Executor runs one attempt from its
// prompt to its result. It does not know queues, leases or the database. What must be stored on the way goes through
// the Sink. What ends an attempt early comes in through the context.
package executor

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/outbound"
	"rouse.dev/rouse/internal/xid"
)

// Executor runs attempts of one kind.
type Executor interface {
	// Run launches one attempt and returns when nothing of it runs any more. The error is nil or a *Failure; the
	// Result is filled as far as the attempt got in both cases. Cancelling ctx ends the attempt; its cause becomes
	// the failure's cause, and a *Stop as cause shortens the grace.
	Run(ctx context.Context, req Request, sink Sink) (Result, error)
}

// Request is one attempt to make.
type Request struct {
	RunID           xid.ID
	AgentID         xid.ID
	WorkspaceID     xid.ID
	TaskID          xid.ID // "" for a taskless run
	Attempt         int    // from 1
	Prompt          string
	Environment     []Variable // opened secrets, then the variables of SPEC S7.4; of two with one name the later counts
	ResumeSessionID string     // a session that an earlier Result called resumable, or ""
	FullPrompt      string     // the prompt for a new session, should that one be gone; "": Prompt is it
	Headers         []Variable // of HTTP, opened
	Secret          string     // signs requests over HTTP; "": they are not signed
	Spec            domain.ExecutorSpec
	// Lease is until when the attempt may run; nil: nobody else would take it up.
	Lease *Lease
	// Log is what is kept of the output; the zero value is what a run's first attempt may keep.
	Log domain.LogAllowance
	log *logBudget // of launches that are one attempt
	// toolArgs tell a preset's program of servers of tools.
	toolArgs []string
	// Test says that there is no run, because somebody only wants to know whether the executor works.
	Test bool
	// Mask replaces every known secret in a text; nil means that no secrets are known. Lines, results and failures pass
	// through it before they leave the executor. It sees one line at a time: a secret of several lines must be masked
	// line by line.
	Mask func(string) string
}

// Variable is one environment variable in plain text.
type Variable struct{ Name, Value string }

// Sink takes what an attempt yields while it runs. Its methods are never called at the same time, and never after Run
// returned. A slow Line slows the agent down.
type Sink interface {
	// Process is called once the process runs and before it is given the prompt. An error ends the attempt.
	Process(ProcessGroup) error
	// Session is called when the attempt's session is known, and again when the agent names another one. Its error does
	// not end the attempt (SPEC S7.8); it is kept in Result.SessionError.
	Session(id string) error
	// WorkingCopy is called before an attempt begins in its working copy, and when it has ended there. Its error does not end the attempt.
	WorkingCopy(w domain.WorkingCopy) error
	// Line is one line of output: masked, valid UTF-8 without NUL, at most 8 KiB.
	Line(stream domain.LogStream, text string)
	// Progress is one step of the agent's work, for those who read it by program: masked, and small. Its lines tell it, too.
	Progress(step map[string]any)
}

// Result is what came of an attempt.
type Result struct {
	Launched     bool           // the agent was really started
	Object       map[string]any // the result object of SPEC S7.5; nil when there was none
	SessionID    string         // "" when nothing was launched
	Resumable    bool           // the agent named the session itself, so that it may be handed back to resume it
	SessionError error          // what Sink.Session answered
	// SessionUntold says that the Sink was not told the session, because the attempt was over at once: it is stored with its end.
	SessionUntold bool
	Fresh         bool      // the session to resume was gone: the agent was told the full prompt in a new one
	ExitCode      int       // 128+n for signal n; -1 when no process ended
	Usage         *Usage    // nil when the agent did not say
	Tail          string    // the last lines of output, at most 4 KiB
	Survivors     error     // which processes of the attempt could not be ended, or why that is not known; nil: all have
	Accepted      *Accepted // an agent service has taken the run and reports its end itself; nil for all else
}

// Usage is what an attempt used by its own account.
type Usage = domain.AttemptUsage

// Failure is why an attempt did not succeed. Message is masked and says what happened and what to do next.
type Failure struct {
	Code      domain.RunErrorCode
	Message   string
	Permanent bool // trying again cannot help
	// Words are those of an error, in which a rate limit is looked for; what an agent printed ordinarily is not among them. Masked.
	Words string
	// Local says that they were said by a program on this machine, whose clock they mean.
	Local bool
	// RetryAfter is how long to wait before a retry, as the other side says in data; 0 when it does not say.
	RetryAfter time.Duration
	Cause      error // the context's cause when the attempt was ended from outside; the system's error for launches
}

// Error is the message.
func (f *Failure) Error() string { return f.Message }

// Unwrap is the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// Stop is a cause for cancelling a run's context that also bounds the time between TERM and KILL, e.g. because the lease
// ends soon (SPEC S8.4).
type Stop struct {
	Reason error
	Grace  time.Duration // at most this, whatever the spec's grace is
}

// Error is the reason.
func (s *Stop) Error() string { return s.Reason.Error() }

// Unwrap is the reason.
func (s *Stop) Unwrap() error { return s.Reason }

// Registry finds the executor of a kind.
type Registry map[domain.ExecutorKind]Executor

// NewRegistry holds the kinds of this version; allow is for NewHTTP.
func NewRegistry(command *Command, allow outbound.Addresses) Registry {
	return Registry{
		domain.ExecutorCommand: command, domain.ExecutorACP: NewACP(command), domain.ExecutorHTTP: NewHTTP(allow), domain.ExecutorEcho: Echo{},
	}
}

// Find is the executor for spec. Its error is a permanent *Failure: no executor is set, or not one of this version.
func (r Registry) Find(spec domain.ExecutorSpec) (Executor, error) {
	kind := spec.Kind()
	if kind == "" {
		return nil, &Failure{Code: domain.RunErrorCodeLaunch, Permanent: true,
			Message: "no executor is set for this run: set one on the task, the agent, the project or the workspace"}
	}
	if executor, ok := r[kind]; ok {
		return executor, nil
	}
	return nil, &Failure{Code: domain.RunErrorCodeLaunch, Permanent: true,
		Message: fmt.Sprintf("the executor %q is not available in this version of rouse: set a command executor instead", kind)}
}

// Run finds the executor for the request and runs it.
func (r Registry) Run(ctx context.Context, req Request, sink Sink) (Result, error) {
	executor, err := r.Find(req.Spec)
	if err != nil {
		return Result{ExitCode: -1}, err
	}
	command, here := r[domain.ExecutorCommand].(*Command)
	if req.Spec.Checkout() == nil || req.Test {
		return executor.Run(ctx, req, sink)
	}
	if !here {
		return Result{ExitCode: -1}, permanentLaunch("the executor has a checkout, and this process makes no working copies: let the process that runs the agents run it")
	}
	return command.inWorkingCopy(ctx, req, sink, executor)
}

// fullPrompt is the prompt for a session that knows nothing.
func (r Request) fullPrompt() string { return cmp.Or(r.FullPrompt, r.Prompt) }

// mask applies the request's mask, if any.
func (r Request) mask(s string) string {
	if r.Mask == nil {
		return s
	}
	return r.Mask(s)
}

// tell makes a failure ready to leave the executor.
func (r Request) tell(f *Failure) *Failure {
	f.Message, f.Words = r.told(f.Message), r.told(f.Words)
	return f
}

// maxFailure is the most bytes of a failure's message; it lies on the run's row and goes to the inbox.
const maxFailure = 8 << 10

// told is a message as it may be stored: masked, and cut after that.
func (r Request) told(message string) string {
	return cutText(r.mask(domain.StorableText(message)), maxFailure)
}
