package domain

import (
	"fmt"
	"net/textproto"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// WebhookCondition is a condition on a delivery: what its path or its header has, and one test of it.
type WebhookCondition struct {
	Path    *string  `json:"path,omitempty"`
	Header  *string  `json:"header,omitempty"`
	In      []string `json:"in,omitempty"`
	NotIn   []string `json:"not_in,omitempty"`
	Exists  *bool    `json:"exists,omitempty"`
	Matches *string  `json:"matches,omitempty"`
}

// Bounds of a webhook's conditions. Texts are in characters.
const (
	maxConditions     = 20
	maxConditionTexts = 100
	maxConditionText  = 200
	maxHeaderName     = 64
)

// conditionPath is a path of a condition: what a placeholder may name, plain names included.
var conditionPath = regexp.MustCompile(`^` + namePattern + `$`)

var headerName = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// CheckConditions says what is wrong with a webhook's conditions, at ["when", index, member].
func CheckConditions(list []WebhookCondition) (problems []FieldError) {
	if len(list) > maxConditions {
		return []FieldError{{Field: []string{"when"}, Code: UserErrorCodeTooLong, Message: fmt.Sprintf("a webhook has at most %d conditions", maxConditions)}}
	}
	for i, c := range list {
		for _, p := range c.problems() {
			problems = append(problems, p.Under("when", strconv.Itoa(i)))
		}
	}
	return problems
}

func (c WebhookCondition) problems() (problems []FieldError) {
	add := func(code UserErrorCode, member, format string, args ...any) {
		p := FieldError{Code: code, Message: fmt.Sprintf(format, args...)}
		if member != "" {
			p.Field = []string{member}
		}
		problems = append(problems, p)
	}
	if (c.Path == nil) == (c.Header == nil) {
		add(UserErrorCodeInvalid, "", "a condition looks at one thing: set path or header, and not both")
	}
	if c.Path != nil && (!conditionPath.MatchString(*c.Path) || strings.Count(*c.Path, ".") >= maxPathParts) {
		add(UserErrorCodeInvalid, "path", "%q is no path: use names and numbers with dots between them, such as issue.state or labels.0.name, %d parts at most", shorten(*c.Path), maxPathParts)
	}
	if c.Path != nil && HeaderOfPath(*c.Path) != "" {
		add(UserErrorCodeInvalid, "path", "a header is named by header, without the word before it")
	}
	if c.Header != nil {
		switch {
		case len(*c.Header) > maxHeaderName || !headerName.MatchString(*c.Header):
			add(UserErrorCodeInvalid, "header", "%q is no name of a header: use letters, digits and -, %d at most", shorten(*c.Header), maxHeaderName)
		case IsProofHeader(*c.Header):
			add(UserErrorCodeInvalid, "header", "%s holds a proof, which no condition may look at", textproto.CanonicalMIMEHeaderKey(*c.Header))
		}
	}
	tests := 0
	for _, set := range []bool{c.In != nil, c.NotIn != nil, c.Exists != nil, c.Matches != nil} {
		if set {
			tests++
		}
	}
	if tests != 1 {
		add(UserErrorCodeInvalid, "", "a condition has one test: set one of in, notIn, exists and matches")
	}
	for member, texts := range map[string][]string{"in": c.In, "notIn": c.NotIn} {
		if texts != nil && (len(texts) == 0 || len(texts) > maxConditionTexts) {
			add(UserErrorCodeInvalid, member, "give 1 to %d texts", maxConditionTexts)
		}
		if slices.ContainsFunc(texts, func(text string) bool { return utf8.RuneCountInString(text) > maxConditionText }) {
			add(UserErrorCodeTooLong, member, "a text has at most %d characters", maxConditionText)
		}
	}
	if c.Matches != nil {
		if _, err := regexp.Compile(*c.Matches); err != nil {
			add(UserErrorCodeInvalid, "matches", "%q is no regular expression of RE2: %s", shorten(*c.Matches), shorten(err.Error()))
		} else if utf8.RuneCountInString(*c.Matches) > maxConditionText {
			add(UserErrorCodeTooLong, "matches", "a regular expression has at most %d characters", maxConditionText)
		}
	}
	return problems
}

// FilterDelivery says which condition keeps a delivery with these values from firing, for the operator; "": none does.
func FilterDelivery(list []WebhookCondition, values map[string]string) string {
	reader := newValueReader(values)
	for i, c := range list {
		if name := c.name(); !c.holds(reader.at(name)) {
			return fmt.Sprintf("condition %d does not hold: %s %s", i+1, name, c.test())
		}
	}
	return ""
}

// name is what a condition looks at, as the values of a delivery call it.
func (c WebhookCondition) name() string {
	if c.Header != nil {
		return HeaderVariable(*c.Header)
	}
	if c.Path != nil {
		return *c.Path
	}
	return ""
}

func (c WebhookCondition) holds(value string, there bool) bool {
	switch {
	case c.In != nil:
		return there && slices.Contains(c.In, value)
	case c.NotIn != nil:
		return !there || !slices.Contains(c.NotIn, value)
	case c.Exists != nil:
		return there == *c.Exists
	case c.Matches != nil:
		pattern, err := regexp.Compile(*c.Matches)
		return err == nil && there && pattern.MatchString(value)
	}
	return false
}

// test is a condition's test in words. It says nothing of the delivery's value.
func (c WebhookCondition) test() string {
	switch {
	case c.In != nil:
		return "is none of " + Brief(strings.Join(c.In, ", "), maxEcho)
	case c.NotIn != nil:
		return "is one of " + Brief(strings.Join(c.NotIn, ", "), maxEcho)
	case c.Exists != nil && *c.Exists:
		return "is not there"
	case c.Exists != nil:
		return "is there"
	case c.Matches != nil:
		return "does not match " + Brief(*c.Matches, maxEcho)
	}
	return "has no test"
}
