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
	launchesSince        *time.Time // when the window of unattended launches began
	launches             int        // unattended ones since
}

// window is what a limit leaves of the lane's unattended launches at an instant.
func (l *lane) window(limit *domain.LaunchLimit, now time.Time) domain.LaunchWindow {
	w := domain.LaunchWindow{Limit: limit, Launches: l.launches}
	if l.launchesSince != nil {
		w.Since = *l.launchesSince
	}
	return w.At(now)
}

// braked says whether one more unattended launch is one too many.
func (l *lane) braked(limit *domain.LaunchLimit, now time.Time) bool {
	_, full := l.window(limit, now).Full()
	return full
}

// launched notes an unattended launch.
func (l *lane) launched(limit *domain.LaunchLimit, now time.Time) {
	w := l.window(limit, now).Launch(now)
	l.launchesSince, l.launches = &w.Since, w.Launches
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
