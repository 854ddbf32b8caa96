package domain

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/xid"
)

// SPEC S4.1: a routine's fields.
func TestAPatchOfARoutine(t *testing.T) {
	now := RoutineSettings{Name: "Daily", Description: "Look at {{branch}}.", AssigneeID: "agt_1", Policy: ConcurrencyPolicySkipIfActive,
		CatchUp: CatchUpPolicySkipMissed, CatchUpMax: 5, Variables: []RoutineVariable{{Name: "branch", Type: VariableTypeText}}}
	for _, c := range []struct {
		name     string
		patch    RoutinePatch
		schedule bool
		want     func(*RoutineSettings)
		changed  []string
		problem  UserErrorCode
	}{
		{"nothing given changes nothing", RoutinePatch{}, true, nil, nil, ""},
		{"the same value is no change", RoutinePatch{Name: To(" Daily "), CatchUpMax: To(5)}, true, nil, nil, ""},
		{"a text that uses a new name declares it", RoutinePatch{Description: To("{{branch}} of {{repo}}")}, true, func(s *RoutineSettings) {
			s.Description = "{{branch}} of {{repo}}"
			s.Variables = append(slices.Clone(s.Variables), RoutineVariable{Name: "repo", Type: VariableTypeText})
		}, []string{"description", "variables"}, ""},
		{"declarations that are cleared come back where they are used", RoutinePatch{Variables: Clear[[]RoutineVariable]()}, true, nil, nil, ""},
		{"a template makes it heavy, and its names are declared", RoutinePatch{Template: To(TaskTemplate{Title: "Review {{area}}"})}, false, func(s *RoutineSettings) {
			s.Template = &TaskTemplate{Title: "Review {{area}}"}
			s.Variables = append(slices.Clone(s.Variables), RoutineVariable{Name: "area", Type: VariableTypeText})
		}, []string{"taskTemplate", "variables"}, ""},
		{"what is cleared gets its default", RoutinePatch{Policy: Clear[ConcurrencyPolicy](), CatchUp: Clear[CatchUpPolicy](), CatchUpMax: Clear[int]()}, true, func(s *RoutineSettings) {
			s.Policy, s.CatchUp, s.CatchUpMax = ConcurrencyPolicyCoalesceIfActive, CatchUpPolicyEnqueueMissedWithCap, 25
		}, []string{"concurrencyPolicy", "catchUpPolicy", "catchUpMax"}, ""},
		{"a cap outside its bounds is clamped", RoutinePatch{CatchUpMax: To(5000)}, true, func(s *RoutineSettings) { s.CatchUpMax = 1000 }, []string{"catchUpMax"}, ""},
		{"a required variable without default excludes a schedule", RoutinePatch{Variables: To([]RoutineVariable{{Name: "branch", Type: VariableTypeText, Required: true}})}, true, nil, nil, UserErrorCodeRequired},
		{"without a schedule it may be required", RoutinePatch{Variables: To([]RoutineVariable{{Name: "branch", Type: VariableTypeText, Required: true}})}, false, func(s *RoutineSettings) {
			s.Variables = []RoutineVariable{{Name: "branch", Type: VariableTypeText, Required: true}}
		}, []string{"variables"}, ""},
		{"a name cannot be cleared", RoutinePatch{Name: Clear[string]()}, true, nil, nil, UserErrorCodeRequired},
		{"an assignee cannot be cleared", RoutinePatch{AssigneeID: Clear[xid.ID]()}, true, nil, nil, UserErrorCodeRequired},
		{"a task needs a title", RoutinePatch{Template: To(TaskTemplate{Title: " "})}, true, nil, nil, UserErrorCodeRequired},
		{"a text declares no more than a routine may have", RoutinePatch{Description: To(names(101))}, true, nil, nil, UserErrorCodeTooLong},
		{"65 KiB of a title are too long", RoutinePatch{Template: To(TaskTemplate{Title: strings.Repeat("x", 65<<10)})}, true, nil, nil, UserErrorCodeTooLong},
		{"65 KiB of text are too long", RoutinePatch{Description: To(strings.Repeat("x", 65<<10))}, true, nil, nil, UserErrorCodeTooLong},
	} {
		t.Run(c.name, func(t *testing.T) {
			change, problems := now.Apply(c.patch, c.schedule)
			if c.problem != "" {
				if len(problems) != 1 || problems[0].Code != c.problem {
					t.Errorf("problems are %v, want %s", problems, c.problem)
				}
				return
			}
			want := now
			if c.want != nil {
				c.want(&want)
			}
			next := change.Next
			if next.Name != want.Name || next.Description != want.Description || next.Policy != want.Policy || next.CatchUp != want.CatchUp ||
				next.CatchUpMax != want.CatchUpMax || !sameValue(next.Template, want.Template) || !slices.EqualFunc(next.Variables, want.Variables, RoutineVariable.same) || len(problems) > 0 {
				t.Errorf("got %+v %v, want %+v", next, problems, want)
			}
			if !slices.Equal(change.Changed, c.changed) {
				t.Errorf("changed are %v, want %v", change.Changed, c.changed)
			}
		})
	}
}

// names is a text that uses n variables.
func names(n int) string {
	var text strings.Builder
	for i := range n {
		fmt.Fprintf(&text, "{{v%d}}", i)
	}
	return text.String()
}

// SPEC S4.1: ACTIVE, PAUSED, and ARCHIVED for good.
func TestAnArchivedRoutineStaysSo(t *testing.T) {
	for _, c := range []struct {
		from, to         RoutineStatus
		changes, refused bool
	}{
		{RoutineStatusActive, RoutineStatusPaused, true, false},
		{RoutineStatusActive, RoutineStatusActive, false, false},
		{RoutineStatusPaused, RoutineStatusActive, true, false},
		{RoutineStatusPaused, RoutineStatusArchived, true, false},
		{RoutineStatusArchived, RoutineStatusArchived, false, false},
		{RoutineStatusArchived, RoutineStatusActive, false, true},
		{RoutineStatusArchived, RoutineStatusPaused, false, true},
	} {
		changes, problems := c.from.To(c.to)
		if changes != c.changes || len(problems) > 0 != c.refused {
			t.Errorf("%s to %s: %v %v", c.from, c.to, changes, problems)
		}
	}
}
