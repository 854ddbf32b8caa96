package model

import (
	"testing"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/xid"
)

func TestACursorIsReadToItsLastByte(t *testing.T) {
	id := xid.New("run")
	for _, c := range []ent.Cursor{{ID: id}, {ID: id, Value: "a name"}, {ID: id, Value: ""}, {ID: id, Value: time.Date(2026, 4, 25, 9, 0, 0, 123456000, time.UTC)}, {ID: id, Value: "3.1.9"}} {
		text := CursorText(c)
		if got, err := UnmarshalCursor(text); err != nil || CursorText(got) != text {
			t.Errorf("%v: %v, %v", c, got, err)
		}
		for _, bad := range []string{text + "A", text + "AA", text + "AAAA", text + "=", text + "\n", text + text, text[:len(text)-1], "\n" + text} {
			if got, err := UnmarshalCursor(bad); err == nil {
				t.Errorf("%q is read as %v", bad, got)
			}
		}
	}
	for _, bad := range []any{5, true, nil, []any{"x"}, "", "x"} {
		if got, err := UnmarshalCursor(bad); err == nil {
			t.Errorf("%v is read as %v", bad, got)
		}
	}
}
