package domain

import (
	"testing"
	"time"
)

func TestHoldAgain(t *testing.T) {
	first := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	held := &WorkspaceHold{Since: first, ByKind: AuthorKindUser, By: "ann", Note: "deploy", Fires: HoldFiresHold}
	later := func(by, note string, fires HoldFires) WorkspaceHold {
		return WorkspaceHold{Since: first.Add(time.Hour), ByKind: AuthorKindUser, By: by, Note: note, Fires: fires}
	}
	for _, c := range []struct {
		name    string
		held    *WorkspaceHold
		asked   WorkspaceHold
		want    WorkspaceHold
		changes bool
	}{
		{"what nobody holds is held from now on", nil, later("bob", "", HoldFiresSkip), later("bob", "", HoldFiresSkip), true},
		{"the same once more changes nothing", held, later("bob", "deploy", HoldFiresHold), *held, false},
		{"a call without a note says nothing new", held, later("bob", "", HoldFiresHold), *held, false},
		{"another note is taken over, and the hold began when it began", held, later("bob", "incident", HoldFiresHold),
			WorkspaceHold{Since: first, ByKind: AuthorKindUser, By: "bob", Note: "incident", Fires: HoldFiresHold}, true},
		{"other fires keep the note", held, later("bob", "", HoldFiresSkip),
			WorkspaceHold{Since: first, ByKind: AuthorKindUser, By: "bob", Note: "deploy", Fires: HoldFiresSkip}, true},
	} {
		if got, changes := c.held.Again(c.asked); got != c.want || changes != c.changes {
			t.Errorf("%s: %+v, %t, want %+v, %t", c.name, got, changes, c.want, c.changes)
		}
	}
}
