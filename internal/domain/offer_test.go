package domain

import "testing"

func TestAfterOffer(t *testing.T) {
	for _, c := range []struct {
		name            string
		cancel, deleted bool
		want            Fate
	}{
		{"an offer that nobody took waits for a worker", false, false, FatePark},
		{"one that a person cancelled meanwhile ends", true, false, FateCancel},
		{"so does one whose agent was deleted", false, true, FateCancel},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := AfterOffer(c.cancel, c.deleted); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestTheQueueOfASpec(t *testing.T) {
	for _, c := range []struct {
		name string
		spec *ExecutorSpec
		want string
	}{
		{"a pull executor names its queue", &ExecutorSpec{Pull: &PullSpec{Queue: "gpu"}}, "gpu"},
		{"a command has none", &ExecutorSpec{Command: &CommandSpec{Argv: []string{"true"}}}, ""},
		{"no executor has none", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := c.spec.Queue(); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestAWorkersOutputIsBounded(t *testing.T) {
	for _, c := range []struct {
		name  string
		first int64
		sizes []int
		bytes int64
		keep  int
		mark  bool
	}{
		{"all of a small batch is kept", 1, []int{10, 20}, 0, 2, false},
		{"the last line of a run is kept", MaxRunLines, []int{1}, 0, 1, false},
		{"the one after it is not, and a mark stands in its place", MaxRunLines + 1, []int{1}, 0, 0, true},
		{"a batch across the bound is kept up to it", MaxRunLines - 1, []int{1, 1, 1}, 0, 2, true},
		{"so it is with bytes", 5, []int{3, 3}, MaxRunBytes - 4, 1, true},
		{"after the mark nothing is kept and no other mark made", 9, []int{1, 1}, MaxRunBytes + 1, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			keep, mark := BoundLog(c.first, c.sizes, c.bytes)
			if keep != c.keep || mark != c.mark {
				t.Errorf("keeps %d, mark %v; want %d, %v", keep, mark, c.keep, c.mark)
			}
		})
	}
}
