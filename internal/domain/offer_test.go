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
		name    string
		numbers []int64
		sizes   []int
		bytes   int64
		keep    int
		mark    bool
	}{
		{"all of a small batch is kept", []int64{1, 2}, []int{10, 20}, 0, 2, false},
		{"the last line of an attempt is kept", []int64{MaxRunLines / 2}, []int{1}, 0, 1, false},
		{"the one after it is not, and a mark stands in its place", []int64{MaxRunLines/2 + 1}, []int{1}, 0, 0, true},
		{"a batch across the bound is kept up to it", []int64{MaxRunLines/2 - 1, MaxRunLines / 2, MaxRunLines/2 + 1}, []int{1, 1, 1}, 0, 2, true},
		{"so is one of which lines are stored already", []int64{MaxRunLines/2 - 7, MaxRunLines / 2, MaxRunLines/2 + 1}, []int{1, 1, 1}, 0, 2, true},
		{"so it is with bytes", []int64{5, 6}, []int{3, 3}, MaxRunBytes/2 - 4, 1, true},
		{"a batch of which all is stored makes no mark", nil, nil, MaxRunBytes / 2, 0, false},
		{"after the mark nothing is kept and no other mark made", []int64{9, 10}, []int{1, 1}, LogCut, 0, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			keep, mark := AttemptLog(0, 0).BoundLog(c.numbers, c.sizes, c.bytes)
			if keep != c.keep || mark != c.mark {
				t.Errorf("keeps %d, mark %v; want %d, %v", keep, mark, c.keep, c.mark)
			}
		})
	}
}

// TestARunsOutputIsBoundedWhateverItsAttempts is SPEC S7.6: bounded per run.
func TestARunsOutputIsBoundedWhateverItsAttempts(t *testing.T) {
	var lines, bytes int64
	for attempt := 1; attempt <= 100; attempt++ {
		a := AttemptLog(lines, bytes)
		if attempt <= 5 && (a.Lines < 1000 || a.Bytes < 400<<10) {
			t.Errorf("attempt %d may keep %d lines and %d bytes after attempts that kept all they could", attempt, a.Lines, a.Bytes)
		}
		if lines += a.Lines; a.Lines > 0 {
			bytes += a.Bytes
		}
	}
	if lines > MaxRunLines || bytes > MaxRunBytes {
		t.Errorf("a run keeps %d lines and %d bytes", lines, bytes)
	}
}
