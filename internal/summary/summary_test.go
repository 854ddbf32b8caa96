package summary

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func decisionsOf(n int) (list []Decision) {
	for i := range n {
		list = append(list, Decision{At: noon.AddDate(0, 0, -i), Text: fmt.Sprintf("Decision number %d.", i)})
	}
	return list
}

// cases are the inputs of the golden files.
func cases() map[string]Input {
	return map[string]Input{
		"empty": {},
		"full": {
			Focus: "# Not a title\n\nThe upstream pull requests of north.\nTwo wait for review.\nA third was merged.\nA fourth line is not shown.",
			Stats: Stats{OpenTasks: 5, FinishedRuns: 12, FailedRuns: 1, BudgetAlerts: 1}, NextAction: "Ask Ben\nabout the review.",
			Blockers:  []Blocker{{ID: "tsk_1", Title: "Deploy", Needs: "the key of the store", Since: noon.AddDate(0, 0, -2)}, {ID: "tsk_2", Title: "Write\nthe docs", Needs: Needs([]string{"Choose a\nname", "Ask " + strings.Repeat("all ", 40)}, 3)}},
			Decisions: decisionsOf(7),
		},
		"carried_on": {Previous: Build(Input{Focus: "The queue of north.", Stats: Stats{OpenTasks: 9}}), Stats: Stats{OpenTasks: 2}, Decisions: decisionsOf(1)},
	}
}

func TestGolden(t *testing.T) {
	for name, in := range cases() {
		t.Run(name, func(t *testing.T) {
			got, file := Build(in), filepath.Join("testdata", name+".golden")
			if *update {
				if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(file)
			if err != nil {
				t.Fatalf("%v: go test ./internal/summary -update writes it", err)
			}
			if got != string(want) {
				t.Errorf("differs from %s; got:\n%s", file, got)
			}
			if Build(in) != got {
				t.Error("C107: the same input gave other bytes")
			}
		})
	}
}

func TestNothingKnown(t *testing.T) {
	text := Build(Input{})
	for _, want := range []string{noFocus, "\nNone.\n", "\nNone recorded.\n", "\nContinue monitoring.\n"} {
		if !strings.Contains(text, want) {
			t.Errorf("C104: %q is missing in\n%s", want, text)
		}
	}
}

func TestNextAction(t *testing.T) {
	blocker := []Blocker{{ID: "tsk_1", Title: "x"}}
	for _, c := range []struct {
		name string
		in   Input
		want string
	}{
		{"what the run said goes first", Input{NextAction: "Call Ann.", Blockers: blocker}, "Call Ann."},
		{"C105 blockers", Input{Blockers: blocker, RunBefore: FateFailed}, "Resolve open blockers"},
		{"C105 the run before failed", Input{RunBefore: FateFailed, Stats: Stats{FailedRuns: 2}}, "Investigate the previous run failure"},
		{"C105 failed runs", Input{Stats: Stats{FailedRuns: 2, OpenTasks: 5}}, "Triage recent failed runs"},
		{"C105 open tasks", Input{Stats: Stats{OpenTasks: 5}}, "Review the open task queue"},
		{"C104 nothing", Input{}, "Continue monitoring."},
		{"a blank word of the run is none", Input{NextAction: " \n "}, "Continue monitoring."},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := NextAction(c.in); !strings.HasPrefix(got, c.want) {
				t.Errorf("got %q", got)
			}
		})
	}
}

func TestTheNewestFiveDecisionsAreShownNewestFirst(t *testing.T) {
	list := decisionsOf(7)
	list[0], list[6] = list[6], list[0]
	text := Build(Input{Decisions: list})
	at := -1
	for n := range 7 {
		i := strings.Index(text, fmt.Sprintf("Decision number %d.", n))
		if (i >= 0) != (n < 5) || i >= 0 && i < at {
			t.Errorf("C106: decision %d stands at %d, the one before at %d", n, i, at)
		}
		at = i
	}
}

func TestALongFocusFits(t *testing.T) {
	text := Build(Input{Focus: strings.Repeat("é", 9000), Decisions: decisionsOf(7)})
	if len(text) > MaxBytes || !utf8.ValidString(text) || !strings.Contains(text, actionTitle) {
		t.Errorf("C107: %d bytes", len(text))
	}
}

// Whatever comes in, the four sections come out, in their order and once each, within the bound; and the next summary
// finds them.
func TestAnyInputGivesFourSectionsWithinTheBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.OneOf(rapid.String(), rapid.Just("## Next action\nevil"), rapid.Just(strings.Repeat("x\n", 9000)), rapid.Just("a\x00\xff"))
		in := Input{Previous: text.Draw(t, "previous"), Focus: text.Draw(t, "focus"), NextAction: text.Draw(t, "action")}
		for range rapid.IntRange(0, 30).Draw(t, "n") {
			in.Blockers = append(in.Blockers, Blocker{ID: text.Draw(t, "id"), Title: text.Draw(t, "title"), Needs: text.Draw(t, "needs"), Since: noon})
			in.Decisions = append(in.Decisions, Decision{At: noon, Text: text.Draw(t, "decision")})
		}
		got := Build(in)
		if len(got) > MaxBytes || !utf8.ValidString(got) || strings.Contains(got, "\x00") {
			t.Fatalf("%d bytes", len(got))
		}
		at := -1
		for _, title := range []string{focusTitle, blockersTitle, decisionsTitle, actionTitle} {
			i := strings.Index("\n"+got, "\n"+title+"\n")
			if i <= at && at >= 0 || i < 0 || strings.Count("\n"+got, "\n"+title+"\n") != 1 || section(got, title) == "" {
				t.Fatalf("%s stands at %d, %d times, in\n%s", title, i, strings.Count(got, title), got)
			}
			at = i
		}
	})
}
