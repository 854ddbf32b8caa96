// Package event carries "look" signals between the parts of one process and between processes on one database. An event
// names what changed, never how: its receiver reads the rows. Delivery may be lost or repeated; every reader also
// polls.
package event

import "rouse.dev/rouse/internal/xid"

// Kind says what changed.
type Kind string

// The kinds of event.
const (
	Queue Kind = "queue" // something may be routed or claimed; ID is the agent, or empty
	Run   Kind = "run"   // the run's row or its events changed; ID is the run
	Log   Kind = "log"   // the run has new log lines; ID is the run

	Cancel Kind = "cancel" // somebody asked that the live run be ended; ID is the run

	Activity Kind = "activity" // the workspace's feed has a new entry; ID is the workspace
	Offer    Kind = "offer"    // the workspace offers a run to workers; ID is the workspace
)

// Event is one signal. WorkspaceID is set where it is known.
type Event struct {
	Kind        Kind
	WorkspaceID xid.ID
	ID          xid.ID
}
