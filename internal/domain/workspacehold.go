package domain

import "time"

// HoldFires is what becomes of the slots of schedules while a person holds their workspace.
//
//rouse:enum
type HoldFires string

const (
	HoldFiresHold HoldFires = "HOLD" // they wait, and are caught up by each routine's policy when the hold ends
	HoldFiresSkip HoldFires = "SKIP" // each is recorded SKIPPED (WORKSPACE_HELD)
)

// WorkspaceHold is who holds a workspace, why and since when. While it is held nothing of it is claimed; what causes wakes is
// taken, and waits.
type WorkspaceHold struct {
	Since  time.Time  `json:"since"`
	ByKind AuthorKind `json:"byKind"`
	By     string     `json:"by"`
	Note   string     `json:"note,omitempty"`
	Fires  HoldFires  `json:"fires"`
}

// Again is the hold after it was asked for once more, and whether that changed anything. It began when it began; another note, or
// other fires, are taken over, together with who said so. No note says nothing new.
func (h *WorkspaceHold) Again(asked WorkspaceHold) (WorkspaceHold, bool) {
	if h == nil {
		return asked, true
	}
	if asked.Note == "" {
		asked.Note = h.Note
	}
	if asked.Note == h.Note && asked.Fires == h.Fires {
		return *h, false
	}
	asked.Since = h.Since
	return asked, true
}
