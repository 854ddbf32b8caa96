package domain

import (
	"testing"
	"time"
)

func TestLaunchWindow(t *testing.T) {
	now := time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)
	limit := &LaunchLimit{Count: 2, Per: time.Hour}
	ago := func(d time.Duration, launches int) LaunchWindow {
		return LaunchWindow{Limit: limit, Since: now.Add(-d), Launches: launches}
	}
	for _, c := range []struct {
		name     string
		window   LaunchWindow
		full     bool
		until    time.Time
		launches int // after one more
	}{
		{"a window that has not begun begins with the launch", LaunchWindow{Limit: limit}, false, time.Time{}, 1},
		{"one with room takes one more", ago(time.Minute, 1), false, time.Time{}, 2},
		{"a full one is full until it is over", ago(time.Minute, 2), true, now.Add(59 * time.Minute), 3},
		{"one that is over by now has none", ago(time.Hour, 2), false, time.Time{}, 1},
		{"one that has a moment left is not over", ago(time.Hour-time.Nanosecond, 2), true, now.Add(time.Nanosecond), 3},
		{"a limit that was lowered meanwhile is full", ago(time.Minute, 9), true, now.Add(59 * time.Minute), 10},
		{"without a limit none is full", LaunchWindow{Since: now.Add(-time.Minute), Launches: 1000}, false, time.Time{}, 1001},
	} {
		w := c.window.At(now)
		until, full := w.Full()
		if full != c.full || !until.Equal(c.until) {
			t.Errorf("%s: full %t until %v, want %t until %v", c.name, full, until, c.full, c.until)
		}
		if next := w.Launch(now); next.Launches != c.launches || next.Since.IsZero() {
			t.Errorf("%s: after one more %+v, want %d", c.name, next, c.launches)
		}
	}
}

func TestLaunchLimitBounds(t *testing.T) {
	for _, c := range []struct {
		name     string
		limit    LaunchLimit
		problems int
	}{
		{"the least", LaunchLimit{1, time.Second}, 0}, {"the most", LaunchLimit{100_000, 168 * time.Hour}, 0},
		{"none at all is refused, because null says that", LaunchLimit{0, time.Hour}, 1}, {"too many", LaunchLimit{100_001, time.Hour}, 1},
		{"too short and too long", LaunchLimit{1, time.Second - 1}, 1}, {"too long", LaunchLimit{1, 168*time.Hour + 1}, 1}, {"both wrong", LaunchLimit{}, 2},
	} {
		if got := c.limit.problems(); len(got) != c.problems {
			t.Errorf("%s: %v, want %d problems", c.name, got, c.problems)
		}
	}
}

func TestUnattended(t *testing.T) {
	for _, c := range []struct {
		name    string
		hops    int
		webhook bool
		want    bool
	}{
		{"a person's, or a schedule's", 0, false, false}, {"a webhook's", 0, true, true}, {"a run's", 1, false, true}, {"a webhook's that a run called", 1, true, true},
	} {
		if got := Unattended(c.hops, c.webhook); got != c.want {
			t.Errorf("%s wake: %t, want %t", c.name, got, c.want)
		}
	}
}

func TestWhatWasFoundOfALoop(t *testing.T) {
	limit := LaunchLimit{60, time.Hour}
	for _, c := range []struct {
		name string
		loop LaunchLoop
		want string
	}{
		{"an agent that calls its own webhook", LaunchLoop{Source: WakeupSourceRoutine, Routine: "x", Own: true, Times: 60, Span: 8 * time.Minute}, "`{agent}` woke itself by webhook `x` 60 times in 8 min"},
		{"a webhook that others call", LaunchLoop{Source: WakeupSourceRoutine, Routine: "x", Times: 60, Span: 90 * time.Minute}, "`{agent}` was woken by webhook `x` 60 times in 1 h 30 min"},
		{"agents that answer each other", LaunchLoop{Source: WakeupSourceComment, Own: true, Times: 58, Span: 20 * time.Second}, "`{agent}` woke itself by comments 58 times in 20 s"},
		{"its own wish", LaunchLoop{Source: WakeupSourceSelf, Times: 60, Span: 25 * time.Hour}, "`{agent}` woke itself by its own wish 60 times in 1 d 1 h"},
		{"at once", LaunchLoop{Source: WakeupSourceAgentError, Times: 2, Span: time.Millisecond}, "`{agent}` was woken by other agents' failures 2 times in less than a second"},
		{"nothing that is left to see", LaunchLoop{Source: WakeupSourceComment}, "`{agent}` was launched as often as it may be"},
	} {
		c.loop.Limit = limit
		if title, body := c.loop.Text(); title != c.want || body == "" {
			t.Errorf("%s: %q, want %q", c.name, title, c.want)
		}
	}
	for source := range loopCauses {
		if loopCauses[source] == "" {
			t.Errorf("%s has no words", source)
		}
	}
	if got := len(loopCauses); got != len(WakeupSource("").Values()) {
		t.Errorf("%d sources have words, want all %d", got, len(WakeupSource("").Values()))
	}
}
