package domain

import (
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// VariableOrigin is where the value of a template variable came from.
//
//rouse:enum
type VariableOrigin string

const (
	VariableOriginBuiltIn  VariableOrigin = "BUILT_IN" // date, datetime
	VariableOriginDefault  VariableOrigin = "DEFAULT"  // declared default
	VariableOriginProvided VariableOrigin = "PROVIDED" // given
	VariableOriginMissing  VariableOrigin = "MISSING"  // none
)

// The built-in variables.
const (
	builtInDate     = "date"
	builtInDatetime = "datetime"
)

func isBuiltIn(name string) bool { return name == builtInDate || name == builtInDatetime }

// BuiltIns gives the values of the built-in variables: date as 2006-01-02, datetime as RFC 3339 to the second. They are
// those of the slot in the trigger's zone; a fire without a slot has its own instant.
func BuiltIns(slot time.Time, zone *time.Location) map[string]string {
	local := slot.In(zone)
	return map[string]string{builtInDate: local.Format(time.DateOnly), builtInDatetime: local.Format(time.RFC3339)}
}

// ResolvedVariable is one variable of a fire and where its value came from; Value is "" when Origin is MISSING.
type ResolvedVariable struct {
	Name   string
	Value  string
	Origin VariableOrigin
}

// ResolveVariables settles every variable of a fire; later wins: built-ins, defaults, provided (SPEC S4.8). The result
// holds built-ins, then the declared in their order, then what else was provided, by name. Every provided value and
// default of a declared variable must fit its type, and a required one must have a value; problems are at
// ["variables", name].
func ResolveVariables(declared []RoutineVariable, provided, builtIns map[string]string) ([]ResolvedVariable, []FieldError) {
	var resolved []ResolvedVariable
	var problems []FieldError
	seen := map[string]bool{}
	add := func(v RoutineVariable) {
		r, problem := resolve(v, provided, builtIns)
		if problem != nil {
			problems = append(problems, problem.Under("variables", v.Name))
		}
		resolved, seen[v.Name] = append(resolved, r), true
	}
	isDeclared := func(name string) bool {
		return slices.ContainsFunc(declared, func(v RoutineVariable) bool { return v.Name == name })
	}
	for _, name := range slices.Sorted(maps.Keys(builtIns)) {
		if !isDeclared(name) {
			add(RoutineVariable{Name: name, Type: VariableTypeText})
		}
	}
	for _, v := range declared {
		add(v)
	}
	for _, name := range slices.Sorted(maps.Keys(provided)) {
		if !seen[name] {
			add(RoutineVariable{Name: name, Type: VariableTypeText})
		}
	}
	return resolved, problems
}

// resolve settles one variable.
func resolve(v RoutineVariable, provided, builtIns map[string]string) (ResolvedVariable, *FieldError) {
	r := ResolvedVariable{Name: v.Name, Origin: VariableOriginMissing}
	if value, ok := builtIns[v.Name]; ok {
		r.Value, r.Origin = value, VariableOriginBuiltIn
	}
	if v.Default != nil {
		r.Value, r.Origin = *v.Default, VariableOriginDefault
	}
	if value, ok := provided[v.Name]; ok {
		r.Value, r.Origin = value, VariableOriginProvided
	}
	if v.Required && (r.Origin == VariableOriginMissing || r.Value == "") {
		return r, &FieldError{Code: UserErrorCodeUnresolvedVariable, Message: fmt.Sprintf("variable %q is required: give it a value", v.Name)}
	}
	if r.Origin == VariableOriginMissing || r.Origin == VariableOriginBuiltIn {
		return r, nil
	}
	return r, v.check(r.Value)
}

// VariableValues is the values to render with: every resolved variable that has one.
func VariableValues(resolved []ResolvedVariable) map[string]string {
	values := make(map[string]string, len(resolved))
	for _, r := range resolved {
		if r.Origin != VariableOriginMissing {
			values[r.Name] = r.Value
		}
	}
	return values
}

// decimal is a NUMBER: digits, with a sign, fraction and exponent if need be.
var decimal = regexp.MustCompile(`^[+-]?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?$`)

// check says what is wrong with a value of the variable's type; nil: nothing.
func (v RoutineVariable) check(value string) *FieldError {
	wants := ""
	switch {
	case v.Type == VariableTypeNumber && !decimal.MatchString(value):
		wants = "a number such as 3 or 2.5"
	case v.Type == VariableTypeBoolean && value != "true" && value != "false":
		wants = "true or false"
	case v.Type == VariableTypeSelect && !slices.Contains(v.Options, value):
		wants = "one of " + Brief(strings.Join(v.Options, ", "), maxEcho)
	default:
		return nil
	}
	return &FieldError{
		Code:    UserErrorCodeInvalid,
		Message: fmt.Sprintf("variable %q is a %s: use %s, not %q", v.Name, v.Type, wants, shorten(value)),
	}
}

// shorten keeps a value that somebody sent from filling a message.
func shorten(value string) string { return ClipText(value, 40) }

// variableName is what a placeholder can name.
var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_-]{0,63}$`)

// CheckVariables says what is wrong with the declarations of a routine, at ["variables", index, member]. A routine with
// a schedule cannot have a required variable without default, since nobody is there to give it; run this when either
// comes second (SPEC S4.8).
func CheckVariables(declared []RoutineVariable, hasSchedule bool) []FieldError {
	var problems []FieldError
	seen := map[string]bool{}
	for i, v := range declared {
		for _, problem := range v.problems(hasSchedule, seen[v.Name]) {
			problems = append(problems, problem.Under("variables", strconv.Itoa(i)))
		}
		seen[v.Name] = true
	}
	return problems
}

func (v RoutineVariable) problems(hasSchedule, taken bool) []FieldError {
	var problems []FieldError
	add := func(member string, code UserErrorCode, message string) {
		problems = append(problems, FieldError{Field: []string{member}, Code: code, Message: message})
	}
	if !variableName.MatchString(v.Name) {
		add("name", UserErrorCodeInvalid, fmt.Sprintf("%q is no variable name: use letters, digits, _ and -, "+
			"not beginning with a digit or -, 64 at most", shorten(v.Name)))
	}
	if taken {
		add("name", UserErrorCodeTaken, fmt.Sprintf("variable %q is declared twice: remove one", v.Name))
	}
	if v.Type == VariableTypeSelect {
		problems = append(problems, v.optionProblems()...)
	}
	if v.Type != VariableTypeSelect && len(v.Options) > 0 {
		add("options", UserErrorCodeInvalid, fmt.Sprintf("variable %q is a %s: only a SELECT has options", v.Name, v.Type))
	}
	if v.Default != nil {
		if problem := v.check(*v.Default); problem != nil {
			problems = append(problems, problem.Under("default"))
		}
	}
	if hasSchedule && v.Required && (v.Default == nil || *v.Default == "") {
		add("default", UserErrorCodeRequired, fmt.Sprintf("variable %q is required and has no default, "+
			"but a schedule fires without anybody to give it: add a default, or make it optional", v.Name))
	}
	return problems
}

// Bounds of the choices of a SELECT.
const (
	maxOptions     = 200
	maxOptionRunes = 200
)

// optionProblems says what is wrong with the choices of a SELECT: there is at least one, and each is a text of its own.
func (v RoutineVariable) optionProblems() []FieldError {
	field := []string{"options"}
	switch n := len(v.Options); {
	case n == 0:
		return []FieldError{{Field: field, Code: UserErrorCodeRequired, Message: fmt.Sprintf("variable %q is a SELECT: give its options", v.Name)}}
	case n > maxOptions:
		return []FieldError{{Field: field, Code: UserErrorCodeTooLong, Message: fmt.Sprintf("variable %q has %d options: give %d at most", v.Name, n, maxOptions)}}
	}
	var problems []FieldError
	seen := map[string]bool{}
	for i, option := range v.Options {
		at := []string{"options", strconv.Itoa(i)}
		switch {
		case strings.TrimSpace(option) == "":
			problems = append(problems, FieldError{Field: at, Code: UserErrorCodeInvalid, Message: "an option is a text that can be seen: remove this one, and make the variable optional if it may be left out"})
		case utf8.RuneCountInString(option) > maxOptionRunes:
			problems = append(problems, FieldError{Field: at, Code: UserErrorCodeTooLong, Message: fmt.Sprintf("an option has %d characters at most", maxOptionRunes)})
		case seen[option]:
			problems = append(problems, FieldError{Field: at, Code: UserErrorCodeTaken, Message: fmt.Sprintf("the option %q is there twice: remove one", option)})
		}
		seen[option] = true
	}
	return problems
}
