package domain

import (
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"
)

// maxEcho is how many characters of what a caller sent a message repeats.
const maxEcho = 200

// longQuote is a quotation in a message, as %q writes it, that is longer than one needs to recognise what one sent.
var longQuote = regexp.MustCompile(`"(?:[^"\\]|\\.){81,}"`)

// Brief shortens a message: a quotation to 80 characters, the whole to most.
func Brief(message string, most int) string {
	message = longQuote.ReplaceAllStringFunc(message, func(quote string) string {
		return strings.TrimRight(string([]rune(quote)[:80]), `\`) + `…"`
	})
	if utf8.RuneCountInString(message) <= most {
		return message
	}
	return string([]rune(message)[:most]) + "…"
}

// maxMessage bounds the message of a problem. It is longer than what may be repeated of the input: the rest is ours.
const maxMessage = 1000

// briefly shortens problems where they need it.
func briefly(problems []FieldError) []FieldError {
	for i, p := range problems {
		if message := Brief(p.Message, maxMessage); message != p.Message {
			problems = slices.Clone(problems)
			problems[i].Message = message
		}
		for j, name := range p.Field {
			if short := Brief(name, maxEcho); short != name {
				problems = slices.Clone(problems)
				problems[i].Field = slices.Clone(problems[i].Field)
				problems[i].Field[j] = short
			}
		}
	}
	return problems
}
