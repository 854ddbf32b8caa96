package graph_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

type previewAnswer struct {
	PreviewFire struct {
		Rendered    struct{ Title, Description string }
		Disposition string
		UserErrors  userErrors
	}
}

// previewed is what previewFire answers to the input of a fire.
func (w *world) previewed(input map[string]any) previewAnswer {
	w.t.Helper()
	var out previewAnswer
	w.Do(w.t.Context(), `query($input: FireRoutineInput!) { previewFire(input: $input) { disposition userErrors { code message field } rendered { title description } } }`,
		map[string]any{"input": input}, &out)
	return out
}

// A template names its values as often as it likes: what is taken and what comes of it are bounded.
func TestADryRunOfATemplateIsBounded(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	render := func(input map[string]any) (shownPreview, int) {
		t.Helper()
		data, errs := w.Try(t.Context(), `query($in: RenderTemplateInput!) { renderTemplate(input: $in) { title description undeclared userErrors { code message field } } }`, map[string]any{"in": input})
		if len(errs) > 0 {
			t.Fatal(errs)
		}
		var out struct{ RenderTemplate shownPreview }
		decode(t, data, &out)
		return out.RenderTemplate, len(data)
	}
	many, _ := render(map[string]any{"title": "{{a}}", "description": strings.Repeat("{{a}}", 13_000), "values": map[string]any{"a": strings.Repeat("é", 15<<10)}})
	if len(many.Description) > 64<<10 || !strings.HasSuffix(many.Description, "makes it longer]") || many.Title != strings.Repeat("é", 200) || len(many.UserErrors) > 0 {
		t.Errorf("a value that is named 13,000 times: %d bytes, title %q, %v", len(many.Description), many.Title, many.UserErrors)
	}
	names := make([]string, 101)
	for i := range names {
		names[i] = fmt.Sprintf("{{v%d}}", i)
	}
	for _, c := range []struct {
		name  string
		input map[string]any
		want  string
	}{
		{"a long title", map[string]any{"title": strings.Repeat("x", 64<<10+1)}, "TOO_LONG input.title"},
		{"a long description", map[string]any{"title": "t", "description": strings.Repeat("x", 64<<10+1)}, "TOO_LONG input.description"},
		{"long values", map[string]any{"title": "t", "values": map[string]any{"a": strings.Repeat("x", 32<<10)}}, "TOO_LONG input.values"},
		{"many names", map[string]any{"title": "t", "description": strings.Join(names, "")}, "TOO_LONG input.variables"},
	} {
		if got, size := render(c.input); got.UserErrors.String() != c.want || size > 2000 {
			t.Errorf("%s: %s, an answer of %d bytes", c.name, got.UserErrors, size)
		}
	}
}

// The task of a fire obeys the rules of tasks, so that whatever may be done with a task may be done with it.
func TestTheTaskOfAHeavyFireIsATaskLikeAnyOther(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	r := w.routine(w.agent("Ada"), map[string]any{"name": "Nightly", "taskTemplate": map[string]any{"title": "{{t}}", "description": strings.Repeat("{{a}}", 4000)}})
	fire := map[string]any{"routineId": r.ID, "variables": map[string]any{"a": strings.Repeat("é", 15_000), "t": ""}}
	previewed := w.previewed(fire).PreviewFire
	if e := w.mutate("fireRoutine", "routineRun { id }", fire, nil); e != "" {
		t.Fatal(e)
	}
	task := *w.heavyFires(r.ID)[0].Task
	if task.Title != "Nightly" || len(task.Description) > 64<<10 || !strings.HasSuffix(task.Description, "makes it longer]") {
		t.Errorf("title %q, description of %d bytes", task.Title, len(task.Description))
	}
	if previewed.Rendered.Title != task.Title || previewed.Rendered.Description != task.Description {
		t.Errorf("the preview is another one: %q, %d bytes", previewed.Rendered.Title, len(previewed.Rendered.Description))
	}
	if e := w.mutate("updateTask", "task { id }", map[string]any{"taskId": task.ID, "title": task.Title, "description": task.Description, "requiresApproval": true}, nil); e != "" {
		t.Errorf("its own texts are refused: %s", e)
	}
}

// A task whose texts broke the rules before there were any can be changed in whatever else it has.
func TestAChangeOfATaskIsNotRefusedForWhatItLeavesAlone(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	task := w.newTask("Build", nil).Task.ID
	w.sql(`UPDATE tasks SET title = '', description = repeat('x', 100000) WHERE id = $1`, task)
	for _, c := range []struct {
		change map[string]any
		want   string
	}{
		{map[string]any{"requiresApproval": true}, ""},
		{map[string]any{"title": ""}, "REQUIRED input.title"},
		{map[string]any{"title": "Build again"}, ""},
		{map[string]any{"description": strings.Repeat("y", 64<<10+1)}, "TOO_LONG input.description"},
		{map[string]any{"description": "short"}, ""},
	} {
		c.change["taskId"] = task
		if e := w.mutate("updateTask", "task { id }", c.change, nil); e != c.want {
			t.Errorf("%.100v: %q", c.change, e)
		}
	}
}

// What fireRoutine refuses, its preview refuses in the same words.
func TestAPreviewRefusesWhatTheFireWould(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.agent("Ada")
	r, other := w.routine(ada, map[string]any{"description": "{{note}}"}), w.routine(ada, map[string]any{"triggers": []any{scheduled("* * * * *", "UTC")}})
	for name, more := range map[string]map[string]any{
		"values of more than 32 KiB": {"variables": map[string]any{"note": strings.Repeat("x", 32<<10)}},
		"NUL in a value":             {"variables": map[string]any{"note": "a\x00b"}},
		"NUL in a name":              {"variables": map[string]any{"a\x00": "b"}},
		"another routine's trigger":  {"triggerId": other.Triggers[0].ID},
		"an absent routine":          {"routineId": "rtn_01arz3ndektsv4rrffq69g5fav"},
	} {
		input := map[string]any{"routineId": r.ID}
		for k, v := range more {
			input[k] = v
		}
		refused := w.mutate("fireRoutine", "routineRun { id }", input, nil)
		if got := w.previewed(input).PreviewFire.UserErrors.String(); got != refused || got == "" {
			text, _ := json.Marshal(more)
			t.Errorf("%s: the preview says %q, the fire %q of %.80s", name, got, refused, text)
		}
	}
}

// A fire that names a trigger of another routine, of this workspace or not, is refused, and its preview learns nothing of
// that trigger.
func TestAPreviewBorrowsNoZoneFromAnothersTrigger(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	ada := w.agent("Ada")
	r := w.routine(ada, map[string]any{"description": "{{datetime}}", "triggers": []any{scheduled("* * * * *", "Asia/Tokyo")}})
	near := w.routine(ada, map[string]any{"triggers": []any{scheduled("* * * * *", "Asia/Kathmandu")}})
	home := w.workspace
	w.workspace = w.makeWorkspace("Elsewhere")
	far := w.routine(w.agent("Eve"), map[string]any{"triggers": []any{scheduled("* * * * *", "Pacific/Chatham")}})
	w.workspace = home
	for trigger, want := range map[string]string{r.Triggers[0].ID: "+09:00", near.Triggers[0].ID: "Z", far.Triggers[0].ID: "Z"} {
		got := w.previewed(map[string]any{"routineId": r.ID, "triggerId": trigger}).PreviewFire
		if !strings.HasSuffix(got.Rendered.Description, want) || (want == "Z") != (got.UserErrors.String() == "NOT_FOUND input.triggerId") {
			t.Errorf("rendered %q, want the zone %s: %s", got.Rendered.Description, want, got.UserErrors)
		}
	}
}

// A preview whose times would leave what an instant can be ends before, and the inputs take no such instant.
func TestAPreviewEndsWithYear9999(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var out struct {
		NextFireTimes struct {
			Times      []string
			UserErrors userErrors
		}
	}
	for from, want := range map[string]string{
		"9999-12-31T23:57:30Z": "9999-12-31T23:58:00.000Z 9999-12-31T23:59:00.000Z", "9999-12-31T23:59:59Z": "", "0001-01-01T00:00:00Z": "0001-01-01T00:01:00.000Z 0001-01-01T00:02:00.000Z 0001-01-01T00:03:00.000Z",
	} {
		w.Do(t.Context(), `query($f: DateTime) { nextFireTimes(cron: "* * * * *", from: $f, n: 3) { times userErrors { code } } }`, map[string]any{"f": from}, &out)
		if got := strings.Join(out.NextFireTimes.Times, " "); got != want || len(out.NextFireTimes.UserErrors) > 0 {
			t.Errorf("from %s: %s, want %s", from, got, want)
		}
	}
	for _, from := range []string{"10000-01-01T00:00:00Z", "9999-12-31T23:59:59-01:00", "0000-12-31T23:59:59Z", "-0001-01-01T00:00:00Z"} {
		if _, errs := w.Try(t.Context(), `query($f: DateTime) { nextFireTimes(cron: "* * * * *", from: $f) { times } }`, map[string]any{"f": from}); len(errs) == 0 {
			t.Errorf("%s is taken", from)
		}
	}
}
