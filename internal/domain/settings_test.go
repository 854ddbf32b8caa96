package domain

import (
	"slices"
	"testing"
	"time"
)

func TestAPatchOfSettings(t *testing.T) {
	now := Settings{MaxRuns: new(4), LookbackHours: 24, Window: 5 * time.Second, TimeZone: "UTC", MaxHops: 25}
	known := func(zone string) bool { return zone == "UTC" || zone == "Europe/Lisbon" }
	for _, c := range []struct {
		name             string
		patch            SettingsPatch
		want             Settings
		changed, clamped []string
		problem          UserErrorCode
	}{
		{"nothing given changes nothing", SettingsPatch{}, now, nil, nil, ""},
		{"hours are clamped and said so", SettingsPatch{LookbackHours: To(5000)}, Settings{new(4), 720, 5 * time.Second, "UTC", 25}, []string{"recoveryLookbackHours"}, []string{"recoveryLookbackHours"}, ""},
		{"so are few hours and a long window", SettingsPatch{LookbackHours: To(0), Window: To(time.Hour)}, Settings{new(4), 1, time.Minute, "UTC", 25},
			[]string{"recoveryLookbackHours", "coalescingWindow"}, []string{"recoveryLookbackHours", "coalescingWindow"}, ""},
		{"a ceiling is lifted", SettingsPatch{MaxRuns: Change[int]{Set: true}}, Settings{nil, 24, 5 * time.Second, "UTC", 25}, []string{"maxConcurrentRuns"}, nil, ""},
		{"a ceiling of 0 is refused", SettingsPatch{MaxRuns: To(0)}, now, nil, nil, UserErrorCodeOutOfRange},
		{"chains may be longer", SettingsPatch{MaxHops: To(100)}, Settings{new(4), 24, 5 * time.Second, "UTC", 100}, []string{"maxHops"}, nil, ""},
		{"a cleared limit of chains is the default", SettingsPatch{MaxHops: Change[int]{Set: true}}, now, nil, nil, ""},
		{"chains without a first hop are refused", SettingsPatch{MaxHops: To(0)}, now, nil, nil, UserErrorCodeOutOfRange},
		{"chains without an end are refused", SettingsPatch{MaxHops: To(1001)}, now, nil, nil, UserErrorCodeOutOfRange},
		{"a zone that nobody knows is refused", SettingsPatch{TimeZone: To("Mars/Olympus")}, now, nil, nil, UserErrorCodeUnknownTimeZone},
		{"a zone", SettingsPatch{TimeZone: To("Europe/Lisbon")}, Settings{new(4), 24, 5 * time.Second, "Europe/Lisbon", 25}, []string{"defaultTimeZone"}, nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problems := now.Apply(c.patch, known)
			if c.problem != "" {
				if len(problems) != 1 || problems[0].Code != c.problem {
					t.Errorf("problems are %v, want %s", problems, c.problem)
				}
				return
			}
			n := got.Next
			if !sameValue(n.MaxRuns, c.want.MaxRuns) || n.LookbackHours != c.want.LookbackHours || n.Window != c.want.Window || n.TimeZone != c.want.TimeZone || n.MaxHops != c.want.MaxHops || len(problems) > 0 {
				t.Errorf("got %+v %v, want %+v", n, problems, c.want)
			}
			if !slices.Equal(got.Changed, c.changed) || !slices.Equal(got.Clamped, c.clamped) {
				t.Errorf("changed %v, clamped %v, want %v and %v", got.Changed, got.Clamped, c.changed, c.clamped)
			}
		})
	}
}
