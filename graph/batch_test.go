package graph

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"rouse.dev/rouse/internal/xid"
)

// counted is a batch of texts that keeps how many ids each of its reads had.
func counted(sizes *[]int) *batch[string] {
	return newBatch("texts", func(_ context.Context, ids []xid.ID) (map[xid.ID]string, error) {
		*sizes = append(*sizes, len(ids))
		out := map[xid.ID]string{}
		for _, id := range ids {
			if id == "bad" {
				return nil, errors.New("away")
			}
			out[id] = "text of " + string(id)
		}
		return out, nil
	})
}

func TestSiblingsAreReadAtOnceHoweverLateTheyAreAskedFor(t *testing.T) {
	t.Parallel()
	var sizes []int
	b := counted(&sizes)
	b.expect("a", "", "b", "b", "c")
	b.expect("c", "d")                                // c stays where it is
	for _, id := range []xid.ID{"a", "b", "c", "b"} { // each after the one before was answered
		if got, err := b.Load(t.Context(), id); err != nil || got != "text of "+string(id) {
			t.Errorf("%s is %q, %v", id, got, err)
		}
	}
	if fmt.Sprint(sizes) != "[3]" {
		t.Errorf("reads of %v ids, want one of 3", sizes)
	}
	if got, err := b.LoadAll(t.Context(), []xid.ID{"e", "a", "f", "e"}); err != nil || fmt.Sprint(got) != "[text of e text of a text of f text of e]" {
		t.Errorf("got %v, %v", got, err)
	}
	if fmt.Sprint(sizes) != "[3 2]" {
		t.Errorf("reads of %v ids, want a second one of 2: d was not asked for", sizes)
	}
}

func TestAReadThatFailsFailsForAllItsSiblings(t *testing.T) {
	t.Parallel()
	var sizes []int
	b := counted(&sizes)
	b.expect("a", "bad")
	for _, id := range []xid.ID{"a", "bad"} {
		if _, err := b.Load(t.Context(), id); err == nil || err.Error() != "load texts: away" {
			t.Errorf("%s: %v", id, err)
		}
	}
	if _, err := b.LoadAll(t.Context(), []xid.ID{"good", "a"}); err == nil {
		t.Error("one of several failed, and nobody was told")
	}
}
