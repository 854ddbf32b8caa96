package domain

import (
	"slices"
	"strings"
	"testing"
)

func TestEveryActivityCodeHasDetails(t *testing.T) {
	for _, code := range ActivityCode("").Values() {
		d := ActivityDetailsOf(ActivityCode(code))
		if len(d.Always) == 0 {
			t.Errorf("entries of %s need not have any detail", code)
		}
		all := append(slices.Clone(d.Always), d.Sometimes...)
		slices.Sort(all)
		if unique := slices.Compact(slices.Clone(all)); len(unique) != len(all) {
			t.Errorf("%s lists a member twice: %v", code, all)
		}
	}
	if n := len(ActivityCode("").Values()); n != len(activityDetails) {
		t.Errorf("%d codes, details of %d", n, len(activityDetails))
	}
}

func TestWhatIsWrongWithAnEntrysDetails(t *testing.T) {
	d := ActivityDetails{Always: []string{"agent", "reason"}, Sometimes: []string{"task_id"}}
	for members, want := range map[string]string{
		"agent,reason":         "",
		"agent,reason,task_id": "",
		"agent,task_id":        "reason is missing",
		"":                     "agent is missing; reason is missing; ",
		"agent,reason,secret":  "secret is not listed",
	} {
		got := strings.Join(d.Differ(strings.FieldsFunc(members, func(r rune) bool { return r == ',' })), "; ")
		if strings.Trim(got, "; ") != strings.Trim(want, "; ") {
			t.Errorf("of %q: %q, want %q", members, got, want)
		}
	}
}
