package model

import (
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/domain"
)

// RunEvent is a step in the life of a run.
type RunEvent struct {
	Cursor     ent.Cursor
	Kind       domain.RunEventKind
	Attempt    *int // from 1; nil: it belongs to no attempt
	Data       map[string]any
	OccurredAt time.Time
}

// RunLogLine is a line that an executor wrote.
type RunLogLine struct {
	Cursor ent.Cursor
	Stream domain.LogStream
	Text   string
	At     time.Time
}

// IsRunStreamItem marks a member of union RunStreamItem.
func (*RunEvent) IsRunStreamItem() {}

// IsRunStreamItem marks a member of union RunStreamItem.
func (*RunLogLine) IsRunStreamItem() {}
