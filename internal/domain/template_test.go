package domain

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"
)

func text(s string) *string { return &s }

// SPEC S4.8: {{name}}, and a name without any value.
func TestRender(t *testing.T) {
	builtIns := BuiltIns(time.Date(2026, 4, 25, 14, 30, 0, 0, time.UTC), time.UTC)
	for _, c := range []struct{ name, template, want string }{
		{"C18 a value and a built-in", "{{name}} Scan - {{date}}", "Security Scan - 2026-04-25"},
		{"C19 an unknown name stays", "{{date}} - {{unknown}}", "2026-04-25 - {{unknown}}"},
		{"blanks inside the braces", "{{ name }}", "Security"},
		{"a value is not looked at again", "{{nested}}", "{{name}}"},
		{"single braces are text", "{name} {{}} {{1x}} {{a b}}", "{name} {{}} {{1x}} {{a b}}"},
		{"three braces", "{{{name}}}", "{Security}"},
		{"an empty value", "[{{empty}}]", "[]"},
	} {
		resolved, problems := ResolveVariables(nil, map[string]string{"name": "Security", "nested": "{{name}}", "empty": ""}, builtIns)
		if got := Render(c.template, VariableValues(resolved), 100); got != c.want || len(problems) != 0 {
			t.Errorf("%s: %q %v", c.name, got, problems)
		}
	}
}

// SPEC S4.8: titles are cut at 200 characters.
func TestRenderTaskCutsTheTitle(t *testing.T) { // C54
	long := strings.Repeat("ä", 300)
	got := RenderTask("Scan", TaskTemplate{Title: "{{x}}", Description: "{{x}}", RequiresApproval: true}, map[string]string{"x": long}, SlotFire{})
	if utf8.RuneCountInString(got.Title) != MaxTaskTitle || !utf8.ValidString(got.Title) || got.Description != long || !got.RequiresApproval {
		t.Errorf("title of %d characters, description of %d", utf8.RuneCountInString(got.Title), utf8.RuneCountInString(got.Description))
	}
	if got := RenderTask("Scan", TaskTemplate{Title: "a\r\nb\n"}, nil, SlotFire{}); got.Title != "a b" {
		t.Errorf("title %q", got.Title)
	}
}

// What a fire makes is a task like any other: createTask would take its texts as they are.
func TestTheTaskOfAFireObeysTheRulesOfTasks(t *testing.T) {
	missed := Missed{Ticks: 3, Since: time.Date(2026, 4, 25, 9, 0, 0, 0, time.UTC)}
	const cut, told = "[… cut at 64 KiB: what is filled in makes it longer]", "\n\nYou missed 3 ticks since 2026-04-25T09:00:00Z."
	whole := strings.Repeat("é", 32<<10)
	for _, c := range []struct {
		name, title, description, value string
		missed                          Missed
		wantTitle, wantEnd              string
	}{
		{"short texts", "Scan {{v}}", "of {{v}}", "main", Missed{}, "Scan main", "of main"},
		{"a title that comes out empty is the routine's name", "{{v}}", "", "", Missed{}, "Nightly", ""},
		{"and so is one of blanks", " {{v}}\n", "", " \t\r\n", Missed{}, "Nightly", ""},
		{"a cut that leaves blanks at the end", "{{v}}", "", strings.Repeat("a", 199) + " b", Missed{}, strings.Repeat("a", 199), ""},
		{"a long title", "{{v}}{{v}}", "", strings.Repeat("é", 150), Missed{}, strings.Repeat("é", 200), ""},
		{"a title of a megabyte", strings.Repeat("{{v}}", 1000), "", strings.Repeat("é", 500), Missed{}, strings.Repeat("é", 200), ""},
		{"NUL and broken UTF-8", "a\x00{{v}}", "\xff{{v}}", "b\x00", Missed{}, "a\uFFFDb\uFFFD", "\uFFFDb\uFFFD"},
		{"a description that just fits", "t", "{{v}}", whole, Missed{}, "t", "éé"},
		{"a description that does not", "t", "{{v}}.", whole, Missed{}, "t", cut},
		{"values that are named many times", "t", strings.Repeat("{{v}}", 4000), strings.Repeat("é", 15<<10), Missed{}, "t", cut},
		{"missed slots", "t", "{{v}}", "x", missed, "t", "x" + told},
		{"missed slots of a description that just fits", "t", "{{v}}", whole, missed, "t", cut + told},
	} {
		task := RenderTask("Nightly", TaskTemplate{Title: c.title, Description: c.description}, map[string]string{"v": c.value}, SlotFire{Missed: c.missed})
		if title, problems := CheckTaskTexts(task.Title, task.Description, nil); len(problems) > 0 || title != task.Title {
			t.Errorf("%s: createTask would not take %q: %v", c.name, task.Title, problems)
		}
		if task.Title != c.wantTitle || !strings.HasSuffix(task.Description, c.wantEnd) || StorableText(task.Description) != task.Description {
			t.Errorf("%s: title %q, description of %d bytes", c.name, task.Title, len(task.Description))
		}
	}
}

// A text of 64 KiB names a value of 64 KiB thousands of times; what is made of it is bounded before it is made.
func TestRenderStopsAtItsLimit(t *testing.T) {
	text, values := strings.Repeat("{{v}}", 13_000), map[string]string{"v": strings.Repeat("é", 32<<10)}
	for _, limit := range []int{0, 1, 7, 1000, 64 << 10} {
		got := Render(text, values, limit)
		if len(got) <= limit || len(got) > limit+utf8.UTFMax || !utf8.ValidString(got) {
			t.Errorf("at most %d bytes: got %d, valid %v", limit, len(got), utf8.ValidString(got))
		}
	}
	if got := Render("a{{v}}", map[string]string{"v": "é"}, 3); got != "aé" {
		t.Errorf("a text that fits is %q", got)
	}
	allocated := testing.AllocsPerRun(5, func() { Render(text, values, 1000) })
	if allocated > 20 {
		t.Errorf("%v allocations for 1000 bytes: it goes on after the limit", allocated)
	}
}

func TestAChangeOfATaskIsHeldToTheTextsThatItGives(t *testing.T) {
	long := strings.Repeat("x", 64<<10+1)
	for _, c := range []struct {
		name               string
		title, description Change[string]
		wantTitle          string
		want               []string
	}{
		{"nothing", Change[string]{}, Change[string]{}, "", nil},
		{"a title", To(" new "), Change[string]{}, "new", nil},
		{"an empty title", To(" "), Change[string]{}, "", []string{"title REQUIRED"}},
		{"a cleared title", Change[string]{Set: true}, Change[string]{}, "", []string{"title REQUIRED"}},
		{"a long title", To(strings.Repeat("é", 201)), Change[string]{}, strings.Repeat("é", 201), []string{"title TOO_LONG"}},
		{"a description", Change[string]{}, To("short"), "", nil},
		{"a cleared description", Change[string]{}, Change[string]{Set: true}, "", nil},
		{"a long description", Change[string]{}, To(long + "y"), "", []string{"description TOO_LONG"}},
	} {
		title, description, problems := ChangedTaskTexts("", long, c.title, c.description)
		var got []string
		for _, p := range problems {
			got = append(got, p.Field[0]+" "+string(p.Code))
		}
		if title != c.wantTitle || description != c.description.Or(long, "") || !slices.Equal(got, c.want) {
			t.Errorf("%s: title %q, description of %d bytes, %v", c.name, title, len(description), got)
		}
	}
}

// SPEC S4.8: a template that uses {{new}} declares it.
func TestDeclared(t *testing.T) {
	template := &TaskTemplate{Title: "{{new}} {{date}} {{known}}", Description: "{{other}} {{new}} {{datetime}}"}
	given := []RoutineVariable{{Name: "known", Type: VariableTypeNumber, Required: true}}
	got := Declared(given, template)
	var names []string
	for _, v := range got {
		names = append(names, v.Name)
	}
	if !slices.Equal(names, []string{"known", "new", "other"}) || got[0].Type != VariableTypeNumber || got[1].Type != VariableTypeText || got[1].Required {
		t.Errorf("got %+v", got)
	}
	if len(given) != 1 || len(Declared(given, nil)) != 1 {
		t.Error("changes what it was given, or declares for no template")
	}
}

// SPEC S4.8: later wins: built-ins, defaults, provided.
func TestResolveVariables(t *testing.T) {
	builtIns := BuiltIns(time.Date(2026, 4, 25, 14, 30, 0, 0, time.UTC), time.UTC)
	declared := []RoutineVariable{
		{Name: "env", Type: VariableTypeSelect, Default: text("staging"), Options: []string{"staging", "production"}},
		{Name: "date", Type: VariableTypeText, Default: text("custom-date")},
		{Name: "note", Type: VariableTypeText},
	}
	got, problems := ResolveVariables(declared, map[string]string{"env": "production", "extra": "val"}, builtIns) // C20
	want := []ResolvedVariable{
		{"datetime", "2026-04-25T14:30:00Z", VariableOriginBuiltIn},
		{"env", "production", VariableOriginProvided},
		{"date", "custom-date", VariableOriginDefault},
		{"note", "", VariableOriginMissing},
		{"extra", "val", VariableOriginProvided},
	}
	if !slices.Equal(got, want) || len(problems) != 0 {
		t.Errorf("got %+v, %v", got, problems)
	}
	if _, ok := VariableValues(got)["note"]; ok {
		t.Error("a missing variable has a value")
	}
}

// SPEC S4.8: date and datetime of the slot, in the trigger's zone.
func TestBuiltInsAreOfTheTriggersZone(t *testing.T) {
	zone, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	got := BuiltIns(time.Date(2026, 4, 25, 22, 0, 0, 0, time.UTC), zone)
	if got["date"] != "2026-04-26" || got["datetime"] != "2026-04-26T07:00:00+09:00" {
		t.Errorf("got %v", got)
	}
}

// SPEC S4.8: types, required and options are enforced.
func TestVariableTypesAreEnforced(t *testing.T) {
	number, flag := RoutineVariable{Name: "v", Type: VariableTypeNumber}, RoutineVariable{Name: "v", Type: VariableTypeBoolean}
	choice := RoutineVariable{Name: "v", Type: VariableTypeSelect, Options: []string{"a", "b"}}
	needed := RoutineVariable{Name: "v", Type: VariableTypeText, Required: true}
	for _, c := range []struct {
		name     string
		variable RoutineVariable
		provided map[string]string
		want     UserErrorCode
	}{
		{"a whole number", number, map[string]string{"v": "42"}, ""},
		{"a fraction with exponent", number, map[string]string{"v": "-2.5e3"}, ""},
		{"no number", number, map[string]string{"v": "many"}, UserErrorCodeInvalid},
		{"an empty number", number, map[string]string{"v": ""}, UserErrorCodeInvalid},
		{"a hexadecimal number", number, map[string]string{"v": "0x10"}, UserErrorCodeInvalid},
		{"not a number at all", number, map[string]string{"v": "NaN"}, UserErrorCodeInvalid},
		{"true", flag, map[string]string{"v": "true"}, ""},
		{"yes", flag, map[string]string{"v": "yes"}, UserErrorCodeInvalid},
		{"an option", choice, map[string]string{"v": "b"}, ""},
		{"no option", choice, map[string]string{"v": "c"}, UserErrorCodeInvalid},
		{"optional and not given", choice, nil, ""},
		{"required and given", needed, map[string]string{"v": "x"}, ""},
		{"required and not given", needed, nil, UserErrorCodeUnresolvedVariable},
		{"required and empty", needed, map[string]string{"v": ""}, UserErrorCodeUnresolvedVariable},
		{"a default that no longer fits", RoutineVariable{Name: "v", Type: VariableTypeNumber, Default: text("x")}, nil, UserErrorCodeInvalid},
	} {
		_, problems := ResolveVariables([]RoutineVariable{c.variable}, c.provided, nil)
		var got UserErrorCode
		if len(problems) > 0 {
			got = problems[0].Code
			if !slices.Equal(problems[0].Field, []string{"variables", "v"}) {
				t.Errorf("%s: at %v", c.name, problems[0].Field)
			}
		}
		if got != c.want {
			t.Errorf("%s: %v", c.name, problems)
		}
	}
}

// SPEC S4.8: a required variable without default and a schedule exclude each other.
func TestCheckVariables(t *testing.T) {
	for _, c := range []struct {
		name     string
		declared []RoutineVariable
		schedule bool
		want     []string // path and code
	}{
		{"good", []RoutineVariable{{Name: "a-b_1", Type: VariableTypeText}, {Name: "c", Type: VariableTypeSelect, Options: []string{"x"}, Default: text("x")}}, true, nil},
		{"a bad name", []RoutineVariable{{Name: "1 x", Type: VariableTypeText}}, false, []string{"variables.0.name INVALID"}},
		{"twice", []RoutineVariable{{Name: "x", Type: VariableTypeText}, {Name: "x", Type: VariableTypeText}}, false, []string{"variables.1.name TAKEN"}},
		{"a SELECT without options", []RoutineVariable{{Name: "x", Type: VariableTypeSelect}}, false, []string{"variables.0.options REQUIRED"}},
		{"options of a TEXT", []RoutineVariable{{Name: "x", Type: VariableTypeText, Options: []string{"a"}}}, false, []string{"variables.0.options INVALID"}},
		{"a default that does not fit", []RoutineVariable{{Name: "x", Type: VariableTypeNumber, Default: text("y")}}, false, []string{"variables.0.default INVALID"}},
		{"required without default, by hand", []RoutineVariable{{Name: "x", Type: VariableTypeText, Required: true}}, false, nil},
		{"required without default, on a schedule", []RoutineVariable{{Name: "x", Type: VariableTypeText, Required: true}}, true, []string{"variables.0.default REQUIRED"}},
	} {
		var got []string
		for _, p := range CheckVariables(c.declared, c.schedule) {
			got = append(got, strings.Join(p.Field, ".")+" "+string(p.Code))
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// SPEC S4.8: webhook bodies.
func TestWebhookValues(t *testing.T) {
	body := ` {"branch":"release/2.0","n":42,"b":true,"o":{ "a": 1 },"z":null,"big":12345678901234567890.5,"bad":"a\u0000b","payload":"theirs"} `
	got, err := WebhookValues([]byte(body)) // C21
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"branch": "release/2.0", "n": "42", "b": "true", "o": `{"a":1}`, "z": "null",
		"big": "12345678901234567890.5", "bad": "a\uFFFDb", "payload": body} {
		if got[name] != want {
			t.Errorf("%s: %q", name, got[name])
		}
	}
	for _, refused := range []string{`[1,2]`, `not json`, `null`, `"text"`, `{} {}`, `{"a":`} { // C22
		var problem *UserError
		if _, err := WebhookValues([]byte(refused)); !errors.As(err, &problem) {
			t.Errorf("%s: %v", refused, err)
		}
	}
	for _, empty := range []string{"", " \n"} {
		if got, err := WebhookValues([]byte(empty)); err != nil || len(got) != 0 {
			t.Errorf("%q: %v, %v", empty, got, err)
		}
	}
}

func TestProvidedValues(t *testing.T) {
	got, err := ProvidedValues(map[string]any{"s": "<a>", "n": 2.5, "o": map[string]any{"k": "<b>"}, "z": nil})
	if err != nil || got["s"] != "<a>" || got["n"] != "2.5" || got["o"] != `{"k":"<b>"}` || got["z"] != "null" {
		t.Errorf("got %v, %v", got, err)
	}
}

func FuzzWebhookValues(f *testing.F) {
	for _, body := range []string{"", "{}", `{"a":1}`, `{"a":"\u0000"}`, "[1]", `{"a":{"b":[1,2,"\ud800"]}}`, "\xff"} {
		f.Add([]byte(body))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		values, err := WebhookValues(body)
		if err != nil {
			return
		}
		for name, value := range values {
			if !utf8.ValidString(name+value) || strings.Contains(name+value, "\x00") {
				t.Fatalf("%q: %q cannot be stored", name, value)
			}
		}
	})
}

func FuzzRender(f *testing.F) {
	f.Add("{{a}} {{ b }} {{{a}}", "{{b}}")
	f.Fuzz(func(t *testing.T, template, value string) {
		if Render(template, nil, len(template)) != template {
			t.Fatalf("%q changes without values", template)
		}
		task := RenderTask("name", TaskTemplate{Title: template, Description: template}, map[string]string{"a": value}, SlotFire{})
		if title, problems := CheckTaskTexts(task.Title, task.Description, nil); len(problems) > 0 || title != task.Title {
			t.Fatalf("%q: %v", task.Title, problems)
		}
	})
}

func TestUserErrorsSayWhereAndWhat(t *testing.T) {
	err := AsUserError([]FieldError{{Code: UserErrorCodeInvalid, Message: "bad"}, FieldError{Field: []string{"cron"}, Code: UserErrorCodeInvalid, Message: "worse"}.Under("trigger")})
	if err == nil || err.Error() != "bad; trigger.cron: worse" {
		t.Errorf("got %v", err)
	}
	if AsUserError(nil) != nil {
		t.Error("no problems are an error")
	}
}

func TestTheTextOfAFireIsKeptWholeOrSaysThatItIsCut(t *testing.T) {
	whole := strings.Repeat("é", 32<<10)
	if got := FireText(whole, nil); got != whole {
		t.Errorf("a description of 64 KiB was cut to %d bytes", len(got))
	}
	got := FireText(whole+"{{v}}", map[string]string{"v": "more"})
	if len(got) > 64<<10 || !strings.HasSuffix(got, "[… cut at 64 KiB: what is filled in makes it longer]") || !utf8.ValidString(got) {
		t.Errorf("%d bytes, valid %v", len(got), utf8.ValidString(got))
	}
}

// S4.9: the sample body is one that the routine takes, whatever its variables are.
func TestASampleBodyGivesEachVariableAValueThatItTakes(t *testing.T) {
	text := func(s string) *string { return &s }
	declared := []RoutineVariable{
		{Name: "branch", Type: VariableTypeText, Required: true},
		{Name: "quoted", Type: VariableTypeText, Default: text("it's \"so\" <&> $HOME `x` \\ %s\n")},
		{Name: "n", Type: VariableTypeNumber, Required: true}, {Name: "half", Type: VariableTypeNumber, Default: text("0.5")},
		{Name: "plus", Type: VariableTypeNumber, Default: text("+7")}, {Name: "zeros", Type: VariableTypeNumber, Default: text("007")},
		{Name: "dry", Type: VariableTypeBoolean, Required: true}, {Name: "wet", Type: VariableTypeBoolean, Default: text("false")},
		{Name: "env", Type: VariableTypeSelect, Required: true, Options: []string{"the 'test' one", "production"}},
	}
	body := SampleBody(declared)
	values, err := WebhookValues([]byte(body))
	if err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	resolved, problems := ResolveVariables(declared, values, nil)
	if len(problems) > 0 {
		t.Errorf("%s: %v", body, problems)
	}
	got := VariableValues(resolved)
	for name, want := range map[string]string{"branch": "value", "quoted": *declared[1].Default, "n": "1", "half": "0.5", "plus": "+7", "zeros": "007", "dry": "true", "wet": "false", "env": "the 'test' one"} {
		if got[name] != want {
			t.Errorf("%s is %q, want %q", name, got[name], want)
		}
	}
	if got := SampleBody(nil); got != "{}" {
		t.Errorf("without variables it is %s", got)
	}
}
