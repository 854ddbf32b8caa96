package domain

import (
	"testing"
	"time"
)

// History keeps what recognises repeated causes, so it is kept for a day at least, or for ever.
func TestHistoryIsKeptLongEnough(t *testing.T) {
	for name, c := range map[string]struct {
		r    Retention
		fine bool
	}{
		"all of it for ever":                           {Retention{}, true},
		"all of it for the shortest time":              {Retention{History: MinRetention, RoutineRuns: MinRetention}, true},
		"history for less":                             {Retention{History: MinRetention - time.Nanosecond, RoutineRuns: MinRetention}, false},
		"records of fires for less":                    {Retention{History: MinRetention, RoutineRuns: MinRetention - time.Nanosecond}, false},
		"records of fires for less, the rest for ever": {Retention{RoutineRuns: time.Hour}, false},
		"a time that is none":                          {Retention{History: -time.Hour}, false},
	} {
		if err := c.r.Validate(); (err == nil) != c.fine {
			t.Errorf("%s: %v", name, err)
		}
	}
	if got := (Retention{}).MutationKeys(); got != MutationKeyLives || got < 24*time.Hour {
		t.Errorf("keys of mutations are kept for %v", got)
	}
	sum := Removed{1, 2, 3, 4, 5, 6, 7, 8, 9}.Plus(Removed{10, 20, 30, 40, 50, 60, 70, 80, 90})
	if want := (Removed{11, 22, 33, 44, 55, 66, 77, 88, 99}); sum != want {
		t.Errorf("the sum is %+v, want %+v", sum, want)
	}
}
