package domain

import (
	"slices"
	"strings"

	"rouse.dev/rouse/internal/xid"
)

// Bounds of a routine: its description in bytes, the rest in items.
const (
	maxDescription     = 64 << 10
	MaxRoutineTriggers = 50
	maxVariables       = 100
)

// RoutineSettings are what a person may set of a routine. A nil Template makes it lightweight.
type RoutineSettings struct {
	Name, Description string
	AssigneeID        xid.ID
	Policy            ConcurrencyPolicy
	CatchUp           CatchUpPolicy
	CatchUpMax        int
	Template          *TaskTemplate
	Variables         []RoutineVariable
}

// Check trims the name, clamps the cap, declares what the template uses, and says what is wrong with the settings.
// HasSchedule says whether the routine has a schedule trigger, also one that is switched off (SPEC S4.8). Clamped are the
// fields whose value was brought into its bounds, in the API's spelling (C42).
func (s RoutineSettings) Check(hasSchedule bool) (_ RoutineSettings, clamped []string, problems []FieldError) {
	problem := func(code UserErrorCode, message string, field ...string) {
		problems = append(problems, FieldError{Field: field, Code: code, Message: message})
	}
	s.Name, problems = CheckName(s.Name, problems)
	if len(s.Description) > maxDescription {
		problem(UserErrorCodeTooLong, "a description has at most 64 KiB", "description")
	}
	if t := s.Template; t != nil && strings.TrimSpace(t.Title) == "" {
		problem(UserErrorCodeRequired, "give the task a title", "taskTemplate", "title")
	}
	if t := s.Template; t != nil {
		for _, p := range t.tooLong() {
			problems = append(problems, p.Under("taskTemplate"))
		}
	}
	var wasClamped bool
	if s.CatchUpMax, wasClamped = ClampCatchUpMax(s.CatchUpMax); wasClamped {
		clamped = []string{"catchUpMax"}
	}
	s.Variables = Declared(s.Variables, s.Text())
	problems = append(problems, tooManyVariables(s.Variables)...)
	return s, clamped, append(problems, CheckVariables(s.Variables, hasSchedule)...)
}

// CheckTemplate says of a template and its declarations, before anything is rendered, what is longer than a routine's may
// be.
func CheckTemplate(declared []RoutineVariable, t TaskTemplate) []FieldError {
	return append(t.tooLong(), tooManyVariables(Declared(declared, &t))...)
}

func (t TaskTemplate) tooLong() (problems []FieldError) {
	for _, text := range []struct{ field, text string }{{"title", t.Title}, {"description", t.Description}} {
		if len(text.text) > maxDescription {
			problems = append(problems, FieldError{Field: []string{text.field}, Code: UserErrorCodeTooLong,
				Message: "title and description of a template have at most 64 KiB each: shorten it, or let a variable name where the agent finds the rest"})
		}
	}
	return problems
}

// tooManyVariables counts declarations, those included that saving a text adds.
func tooManyVariables(declared []RoutineVariable) []FieldError {
	if len(declared) <= maxVariables {
		return nil
	}
	return []FieldError{{Field: []string{"variables"}, Code: UserErrorCodeTooLong,
		Message: "a routine has at most 100 variables, those included that its text uses and nobody declared"}}
}

// Text is what {{variables}} are put into: the template, or a lightweight routine's description, which becomes the prompt.
func (s RoutineSettings) Text() *TaskTemplate { return RoutineText(s.Template, s.Description) }

// RoutineText is the text of a routine's fires: its template or, of a lightweight one, its description.
func RoutineText(template *TaskTemplate, description string) *TaskTemplate {
	if template != nil {
		return template
	}
	return &TaskTemplate{Description: description}
}

// RoutinePatch is a change of a routine. A field that is not Set stays. A field that is Set to nil gets its default, or
// no value where it may have none. Name and assignee cannot be cleared.
type RoutinePatch struct {
	Name, Description Change[string]
	AssigneeID        Change[xid.ID]
	Policy            Change[ConcurrencyPolicy]
	CatchUp           Change[CatchUpPolicy]
	CatchUpMax        Change[int]
	Template          Change[TaskTemplate]
	Variables         Change[[]RoutineVariable]
}

// RoutineChange is what a patch comes to.
type RoutineChange struct {
	Next             RoutineSettings
	Changed, Clamped []string // in the API's spelling
}

// Apply gives the settings after the change and what is wrong with them.
func (s RoutineSettings) Apply(p RoutinePatch, hasSchedule bool) (RoutineChange, []FieldError) {
	next := RoutineSettings{
		Name:        p.Name.Or(s.Name, ""),
		Description: p.Description.Or(s.Description, ""),
		AssigneeID:  p.AssigneeID.Or(s.AssigneeID, ""),
		Policy:      p.Policy.Or(s.Policy, ConcurrencyPolicyCoalesceIfActive),
		CatchUp:     p.CatchUp.Or(s.CatchUp, CatchUpPolicyEnqueueMissedWithCap),
		CatchUpMax:  p.CatchUpMax.Or(s.CatchUpMax, DefaultCatchUpMax),
		Template:    p.Template.OrNil(s.Template),
		Variables:   p.Variables.Or(s.Variables, nil),
	}
	next, clamped, problems := next.Check(hasSchedule)
	if next.Name == s.Name { // it may be older than the rules
		problems = withoutField(problems, "name")
	}
	if next.AssigneeID == "" {
		problems = append(problems, FieldError{Field: []string{"assigneeId"}, Code: UserErrorCodeRequired, Message: "a routine wakes an agent: name one"})
	}
	d := differences{}
	d.add("name", next.Name != s.Name)
	d.add("description", next.Description != s.Description)
	d.add("assigneeId", next.AssigneeID != s.AssigneeID)
	d.add("concurrencyPolicy", next.Policy != s.Policy)
	d.add("catchUpPolicy", next.CatchUp != s.CatchUp)
	d.add("catchUpMax", next.CatchUpMax != s.CatchUpMax)
	d.add("taskTemplate", !sameValue(next.Template, s.Template))
	d.add("variables", !slices.EqualFunc(next.Variables, s.Variables, RoutineVariable.same))
	return RoutineChange{Next: next, Changed: d, Clamped: clamped}, problems
}

func (v RoutineVariable) same(other RoutineVariable) bool {
	return v.Name == other.Name && v.Type == other.Type && v.Required == other.Required && sameValue(v.Default, other.Default) &&
		slices.Equal(v.Options, other.Options)
}

// To says whether a change of status changes anything, or why it is refused. ACTIVE and PAUSED change into each other
// and into ARCHIVED, which is final (SPEC S4.1).
func (s RoutineStatus) To(next RoutineStatus) (changes bool, problems []FieldError) {
	if s == RoutineStatusArchived && next != RoutineStatusArchived {
		return false, []FieldError{{Field: []string{"routineId"}, Code: UserErrorCodeInvalidState,
			Message: "the routine is archived, and that is for good: make a new one"}}
	}
	return s != next, nil
}
