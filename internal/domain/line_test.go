package domain

import (
	"strings"
	"testing"
	"time"
)

// unprintable is what no name holds: what a terminal obeys, what breaks a line, what changes the order of what is shown.
var unprintable = map[string]string{
	"a line break": "\n", "a carriage return": "\r", "a tab": "\t", "an escape": "\x1b", "a bell": "\a", "NUL": "\x00", "delete": "\x7f",
	"a control of the second half": "\u009b", "a line separator": "\u2028", "a paragraph separator": "\u2029", "an override to the left": "\u202e",
	"an isolate": "\u2066", "a mark to the left": "\u200f", "an Arabic mark": "\u061c", "a byte order mark": "\ufeff",
}

func TestNamesAndTitlesAreOneLineOfPrintableText(t *testing.T) {
	settings := AgentSettings{Sessions: 1}
	for what, text := range unprintable {
		name := "Ada" + text + "Lovelace"
		settings.Name = name
		_, agent := settings.Check()
		_, _, routine := RoutineSettings{Name: name, CatchUpMax: 25}.Check(false)
		_, workflow := WorkflowPlan{Name: "Flow", Kind: WorkflowKindKanban, Steps: []StepPlan{{Name: name, State: TaskStateTodo}}}.Check()
		_, task := CheckTaskTexts(name, "", nil)
		_, project := CheckName(name, nil)
		for record, problems := range map[string][]FieldError{"agent": agent, "routine": routine, "workflow's step": workflow, "task": task, "project": project} {
			if len(problems) != 1 || problems[0].Code != UserErrorCodeInvalid || !strings.Contains(problems[0].Message, "one line of printable text") {
				t.Errorf("%s in the name of a %s: %v", what, record, problems)
			}
		}
	}
	for _, name := range []string{"Ada", "آدا", "עדה", "👩\u200d💻 on call", "🏴\U000e0067\U000e0062\U000e0065\U000e006e\U000e0067\U000e007f", "नमस्ते क्\u200dष", "a  b", "<b>&amp;", "O'Neill — “QA”"} {
		if got, problems := CheckName(name, nil); got != name || problems != nil {
			t.Errorf("%q is refused: %v", name, problems)
		}
	}
}

// Rows from before the rule can be changed in all else, and given another name.
func TestANameOlderThanTheRuleKeepsNoChangeFromBeingMade(t *testing.T) {
	const old = "Ada\tLovelace"
	for what, problems := range map[string][]FieldError{
		"agent": func() []FieldError {
			_, changed, problems := AgentSettings{Name: old, Sessions: 1}.Apply(AgentPatch{Name: To(old), Cooldown: To(time.Minute)}, AgentRoleWorker)
			if len(changed) != 1 {
				t.Errorf("changed: %v", changed)
			}
			return problems
		}(),
		"routine": func() []FieldError {
			_, problems := RoutineSettings{Name: old, AssigneeID: "agt_1", CatchUpMax: 25}.Apply(RoutinePatch{Description: To("x")}, false)
			return problems
		}(),
		"project": func() []FieldError { _, problems := ChangedName(old, Change[string]{}); return problems }(),
		"task":    func() []FieldError { _, _, problems := ChangedTaskTexts(old, "", To(old), To("x")); return problems }(),
	} {
		if len(problems) > 0 {
			t.Errorf("%s: %v", what, problems)
		}
	}
	if _, problems := ChangedName(old, To(old+" ")); len(problems) != 1 {
		t.Errorf("another name that breaks the rule: %v", problems)
	}
	if name, problems := ChangedName("Ada", To(" Grace ")); name != "Grace" || problems != nil {
		t.Errorf("a new name: %q %v", name, problems)
	}
}

func TestTitlesOfFiresAreOneLineOfPrintableText(t *testing.T) {
	for what, text := range unprintable {
		got := RenderTask("Scan", TaskTemplate{Title: "Scan {{x}}"}, map[string]string{"x": "a" + text + "b"}, SlotFire{})
		if !OneLine(got.Title) || !strings.HasPrefix(got.Title, "Scan a") {
			t.Errorf("%s: %q", what, got.Title)
		}
	}
}

func TestEscaped(t *testing.T) {
	for text, want := range map[string]string{
		"Ada": "Ada", "\x1b[31mred": `\x1b[31mred`, "a\tb\nc": `a\tb\nc`, "\u202eevil": `\u202eevil`, "\x7f": `\x7f`, "\u009b1m": `\u009b1m`, "é—👩\u200d💻": "é—👩\u200d💻",
	} {
		if got := Escaped(text, false); got != want {
			t.Errorf("%q is shown as %q, want %q", text, got, want)
		}
	}
	if got := Escaped("a\n\x1bb", true); got != "a\n\\x1bb" {
		t.Errorf("lines that are kept: %q", got)
	}
}
