package store

import (
	"fmt"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store/pgtx"
	"rouse.dev/rouse/internal/xid"
)

// lane is an agent's hot state, locked.
type lane struct {
	agentID, workspaceID xid.ID
	status               domain.AgentStatus
	maxSessions, running int
	cooldown             time.Duration
	eligibleAt           time.Time
	headAt               *time.Time
	headID               *string
}

// laneSet is lanes by their agents.
type laneSet map[xid.ID]lane

// held says whether the agent launches nothing.
func (l *lane) held() bool { return domain.AgentHold{Status: l.status}.Held() }

// headBefore says whether the lane's head comes before the other's; both have one.
func (l *lane) headBefore(other *lane) bool {
	if c := l.headAt.Compare(*other.headAt); c != 0 {
		return c < 0
	}
	return *l.headID < *other.headID
}

// lanesNeeded says that a transaction came to need lanes that it has not locked. Lanes come first, in the order of their
// agents, so it is begun again, and locks these with the others.
type lanesNeeded struct{ agents []string }

// Error says how many it lacked.
func (e *lanesNeeded) Error() string { return fmt.Sprintf("%d more lanes are needed", len(e.agents)) }

// Is says that it is a change which the transaction did not know of when it began.
func (e *lanesNeeded) Is(target error) bool { return target == pgtx.ErrChanged }
