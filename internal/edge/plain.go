package edge

import (
	"regexp"
	"strings"
)

// goWords are Go's names of what JSON and GraphQL call otherwise. A text comes last where several kinds look like one to
// the library that complains.
var goWords = map[string]string{
	"[]interface {}": "a list", "slice": "a list",
	"map[string]interface {}": "an object", "map": "an object", "struct": "an object",
	"json.Number": "a number", "int": "a number", "int32": "a number", "int64": "a number", "float32": "a number", "float64": "a number",
	"bool": "true or false", "<nil>": "null",
	"string": "a text",
}

// wanted is what a type's values are, by the name that the library's complaint gives it.
var wanted = map[string]string{
	"string": "a text in quotes", "bool": "true or false", "float": "a number", "map": "an object",
	"int": "a whole number", "int32": "a whole number", "int64": "a whole number",
}

var (
	isNotPattern  = regexp.MustCompile(`^([^\s"]+(?: \{\})?) is not an? (\w+)$`)
	cannotPattern = regexp.MustCompile(`^cannot use (\w+) as (\w+)$`)
	mustPattern   = regexp.MustCompile(`^must be an? (\w+), not an? (\w+)$`)
	numberPattern = regexp.MustCompile(`^(?:strconv\.Parse\w+: parsing .*: (?:invalid syntax|value out of range)|cannot use value \S+ as (?:Int|Float))$`)
)

// plain says in the words of the API what gqlgen, gqlparser and entgql say in those of Go. Other messages pass as they are.
func plain(message string) string {
	if strings.HasPrefix(message, "cannot decode cursor:") {
		return "this is not a cursor: send one that this list gave (a cursor of its edges, or endCursor), or none to begin at the start"
	}
	if numberPattern.MatchString(message) {
		return "cannot use this as a number: send digits, for an Int without a fraction and of 64 bits at most"
	}
	if message == "enums must be ints or strings" {
		return "send one of the enum's values as a text in quotes"
	}
	if m := isNotPattern.FindStringSubmatch(message); m != nil && goWords[m[1]] != "" && wanted[m[2]] != "" {
		return "send " + wanted[m[2]] + ", not " + goWords[m[1]]
	}
	if m := cannotPattern.FindStringSubmatch(message); m != nil && goWords[m[1]] != "" {
		if m[1] == "string" { // numbers in variables look like texts here
			return "cannot use this value as " + m[2]
		}
		return "cannot use " + goWords[m[1]] + " as " + m[2]
	}
	if m := mustPattern.FindStringSubmatch(message); m != nil && goWords[m[2]] != "" {
		if m[2] == "string" {
			return "send an object of type " + m[1]
		}
		return "send an object of type " + m[1] + ", not " + goWords[m[2]]
	}
	return message
}
