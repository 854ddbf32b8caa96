package domain

import (
	"fmt"
	"time"
)

// Bounds of a workspace's settings (SPEC S2).
const (
	DefaultLookbackHours = 24
	minLookbackHours     = 1
	maxLookbackHours     = 720
	DefaultWindow        = 5 * time.Second
	maxWindow            = time.Minute
	maxCeiling           = 1000
	DefaultTimeZone      = "UTC"
)

// Settings are what a person may set of a workspace. MaxRuns nil means no ceiling.
type Settings struct {
	MaxRuns       *int
	LookbackHours int
	Window        time.Duration
	TimeZone      string
	MaxHops       int // how often in a row wakes may cause wakes
}

// SettingsPatch is a change of settings. What is cleared gets its default.
type SettingsPatch struct {
	MaxRuns       Change[int]
	LookbackHours Change[int]
	Window        Change[time.Duration]
	TimeZone      Change[string]
	MaxHops       Change[int]
}

// SettingsChange is what a patch comes to: the settings after it, the fields that became different and those whose value
// was clamped, in the API's spelling.
type SettingsChange struct {
	Next             Settings
	Changed, Clamped []string
}

// Apply clamps hours and window into their bounds, and refuses a ceiling outside of its bounds. A ceiling of 0 is not
// clamped to 1, because that would start runs that somebody wanted to stop. knownZone says whether a name is an IANA
// zone.
func (s Settings) Apply(p SettingsPatch, knownZone func(string) bool) (SettingsChange, []FieldError) {
	next := Settings{
		MaxRuns:       p.MaxRuns.OrNil(s.MaxRuns),
		LookbackHours: p.LookbackHours.Or(s.LookbackHours, DefaultLookbackHours),
		Window:        p.Window.Or(s.Window, DefaultWindow),
		TimeZone:      p.TimeZone.Or(s.TimeZone, DefaultTimeZone),
		MaxHops:       p.MaxHops.Or(s.MaxHops, DefaultMaxHops),
	}
	var clamped, changed differences
	hours, window := min(max(next.LookbackHours, minLookbackHours), maxLookbackHours), min(max(next.Window, 0), maxWindow)
	clamped.add("recoveryLookbackHours", hours != next.LookbackHours)
	clamped.add("coalescingWindow", window != next.Window)
	next.LookbackHours, next.Window = hours, window
	changed.add("maxConcurrentRuns", !sameValue(next.MaxRuns, s.MaxRuns))
	changed.add("recoveryLookbackHours", next.LookbackHours != s.LookbackHours)
	changed.add("coalescingWindow", next.Window != s.Window)
	changed.add("defaultTimeZone", next.TimeZone != s.TimeZone)
	changed.add("maxHops", next.MaxHops != s.MaxHops)
	return SettingsChange{Next: next, Changed: changed, Clamped: clamped}, next.problems(knownZone)
}

func (s Settings) problems(knownZone func(string) bool) (problems []FieldError) {
	if s.MaxRuns != nil && (*s.MaxRuns < 1 || *s.MaxRuns > maxCeiling) {
		problems = append(problems, FieldError{Field: []string{"maxConcurrentRuns"}, Code: UserErrorCodeOutOfRange,
			Message: "a ceiling is 1 to 1000 live runs; null means none; to hold an agent, pause it"})
	}
	if s.MaxHops < 1 || s.MaxHops > mostHops {
		problems = append(problems, FieldError{Field: []string{"maxHops"}, Code: UserErrorCodeOutOfRange,
			Message: "wakes may cause wakes 1 to 1000 times in a row; null means 25"})
	}
	if !knownZone(s.TimeZone) {
		problems = append(problems, FieldError{Field: []string{"defaultTimeZone"}, Code: UserErrorCodeUnknownTimeZone,
			Message: fmt.Sprintf("%q is not a time zone; use an IANA name such as Europe/Lisbon", s.TimeZone)})
	}
	return problems
}
