package graph

import (
	"encoding/json"
	"strings"
	"testing"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

func TestAPositionSurvivesItsCursor(t *testing.T) {
	t.Parallel()
	id := xid.New("run")
	for _, want := range []position{
		{run: id}, {run: id, event: 12}, {run: id, event: 3, line: reads.LogPosition{Attempt: 2, Seq: 1 << 40}},
		eventPlace(id, 7), linePlace(id, reads.LogPosition{Attempt: 1, Seq: 9}),
	} {
		var c ent.Cursor
		if err := c.UnmarshalGQL(model.CursorText(want.cursor())); err != nil {
			t.Fatal(err)
		}
		if got, err := positionOf(&c, id); err != nil || got != want {
			t.Errorf("%+v became %+v, %v", want, got, err)
		}
	}
	if got, err := positionOf(nil, id); err != nil || got != (position{run: id}) {
		t.Errorf("no cursor is %+v, %v, want the beginning", got, err)
	}
}

func TestForeignAndDamagedPositionsAreRefused(t *testing.T) {
	t.Parallel()
	id := xid.New("run")
	for name, c := range map[string]ent.Cursor{
		"a cursor of another run":       position{run: xid.New("run"), event: 1}.cursor(),
		"a cursor of a list":            {ID: id},
		"a cursor with another value":   {ID: id, Value: int64(3)},
		"too few parts":                 {ID: id, Value: "1.2"},
		"too many parts":                {ID: id, Value: "1.2.3.4"},
		"a negative number":             {ID: id, Value: "-1.0.0"},
		"a plus sign":                   {ID: id, Value: "+1.0.0"},
		"leading zeros":                 {ID: id, Value: "01.0.0"},
		"a number out of range":         {ID: id, Value: "99999999999999999999.0.0"},
		"an attempt that is no integer": {ID: id, Value: "1.9999999999.0"},
		"nothing that is known":         {ID: id, Value: "-.-.-"},
		"half a line":                   {ID: id, Value: "1.1.-"},
		"the other half of a line":      {ID: id, Value: "1.-.1"},
		"no event and no line":          {ID: id, Value: "0.-.-"},
		"a line of no attempt":          {ID: id, Value: "-.0.0"},
	} {
		if got, err := positionOf(&c, id); err == nil {
			t.Errorf("%s: %+v, want an error", name, got)
		}
	}
}

func FuzzStreamCursor(f *testing.F) {
	id := xid.New("run")
	f.Add(model.CursorText(position{run: id, event: 3}.cursor()))
	f.Add("gaFpoA")
	f.Fuzz(func(t *testing.T, text string) {
		var c ent.Cursor
		if c.UnmarshalGQL(text) != nil {
			return
		}
		p, err := positionOf(&c, id)
		if err != nil {
			return
		}
		var again ent.Cursor
		if err := again.UnmarshalGQL(model.CursorText(p.cursor())); err != nil {
			t.Fatal(err)
		}
		if q, err := positionOf(&again, id); err != nil || q != p {
			t.Errorf("%q is %+v, written and read again %+v, %v", text, p, q, err)
		}
	})
}

func TestACursorOfAnotherOrderIsRefused(t *testing.T) {
	t.Parallel()
	id := xid.New("agt")
	cursors := map[order]ent.Cursor{byID: {ID: id}, byText: {ID: id, Value: "name"}}
	for made, c := range cursors {
		for _, asked := range []order{byID, byText, byTime} {
			err := page{after: &c}.check(asked)
			if (err == nil) != (made == asked) {
				t.Errorf("a cursor of order %d in a list of order %d: %v", made, asked, err)
			}
		}
	}
	for _, value := range []any{map[string]any{}, int8(1), "a\x00b"} {
		if (page{after: &ent.Cursor{ID: id, Value: value}}).check(byText) == nil {
			t.Errorf("a cursor with value %v is taken", value)
		}
	}
}

func TestPageOfBoundsEveryList(t *testing.T) {
	t.Parallel()
	if p, err := pageOf(100, nil, nil, nil, nil); err != nil || *p.first != 25 || p.last != nil {
		t.Errorf("without sizes: %+v, %v", p, err)
	}
	for name, sizes := range map[string][2]*int{
		"both": {new(1), new(1)}, "none at all": {new(0), nil}, "negative": {nil, new(-1)}, "too many": {new(101), nil}, "too many from the end": {nil, new(101)},
	} {
		if _, err := pageOf(100, nil, sizes[0], nil, sizes[1]); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestStoredObjectsAreRead(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "null", "null": "null", "{}": "{}", `{"n": 12345678901234567890}`: `{"n":12345678901234567890}`} {
		got, err := object(json.RawMessage(text))
		out, _ := json.Marshal(got)
		if err != nil || string(out) != want {
			t.Errorf("object(%q) = %s, %v", text, out, err)
		}
	}
	if _, err := object(json.RawMessage("[1]")); err == nil || !strings.Contains(err.Error(), "JSON object") {
		t.Errorf("a list is read as an object: %v", err)
	}
}
