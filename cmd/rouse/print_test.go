package main

import (
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/server"
)

// A name from before names were held to one line, and what an agent's program says, do not reach the terminal as they are.
func TestFindingsDoNotDriveTheTerminal(t *testing.T) {
	got := lineOf(server.Finding{Subject: "agent \"\x1b]0;owned\a\"", Check: domain.Check{Name: "launch", Detail: "it said\n\x1b[2Jgone\u202e", Hint: "look at\x07 it"}})
	if want := "FAIL agent \"\\x1b]0;owned\\a\": launch: it said\n     \\x1b[2Jgone\\u202e\n     → look at\\a it\n"; got != want {
		t.Errorf("got  %q\nwant %q", got, want)
	}
	if strings.ContainsAny(got, "\x1b\a") {
		t.Errorf("%q", got)
	}
}
