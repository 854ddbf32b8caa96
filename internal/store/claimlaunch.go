package store

import (
	"encoding/json"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// Launch is what a worker needs to run one attempt. The sealed values in Executor are bound to ExecutorHolder, the
// record that the spec was taken from. RunToken is plain: only its digest is stored.
type Launch struct {
	Attempt
	WorkspaceID, AgentID, TaskID, RoutineID, CausationID xid.ID
	Prompt                                               string
	Executor                                             domain.ExecutorSpec
	ExecutorHolder                                       xid.ID
	ResumeSessionID                                      string // "": a fresh session
	FullPrompt                                           string // for a new session, should the one to resume be gone; "" for a fresh one
	WakeReason                                           domain.WakeupSource
	WakePayload                                          json.RawMessage
	RunToken                                             auth.Token
	Log                                                  domain.LogAllowance // what is kept of its output
	Former                                               []domain.SealedSet  // of earlier attempts of the run, and of earlier runs of its session, to be masked as well
}
