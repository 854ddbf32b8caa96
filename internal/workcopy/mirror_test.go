package workcopy

import (
	"testing"
	"time"
)

func TestAMirrorGoesWhenNothingIsLostWithIt(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	long, lately := now.Add(-MirrorKeep), now.Add(-MirrorKeep+time.Second)
	for name, c := range map[string]struct {
		mirror Mirror
		goes   bool
	}{
		"nobody has used it for long":                      {Mirror{UsedAt: long}, true},
		"it was used lately":                               {Mirror{UsedAt: lately}, false},
		"a working copy is of it, however old":             {Mirror{UsedAt: long.Add(-time.Hour), Copies: 1}, false},
		"it has a branch that somebody may have worked on": {Mirror{UsedAt: long, Branches: true}, false},
		"its clock is ahead":                               {Mirror{UsedAt: now.Add(time.Hour)}, false},
	} {
		if got := c.mirror.Goes(now); got != c.goes {
			t.Errorf("%s: goes %t", name, got)
		}
	}
}
