package prompt

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
)

func TestAFiresValuesAreToldOnce(t *testing.T) {
	long := strings.Repeat("long ", 20)
	for name, c := range map[string]struct {
		values map[string]string
		text   string
		want   string
	}{
		"nothing":                              {nil, "Look.", ""},
		"short values, whatever the text says": {map[string]string{"branch": "main", "n": "3"}, "Build main.", `{"branch":"main","n":"3"}`},
		"a long value that the text tells":     {map[string]string{"notes": long, "n": "3"}, "Read " + long, `{"n":"3"}`},
		"a long value that it does not tell":   {map[string]string{"n": long}, "Read.", `{"n":"` + strings.TrimSpace(long) + ` "}`},
		"a body by its members":                {map[string]string{"payload": `{"a": {"b": [1, 2]}, "c": "<x>"}`, "a": `{"b":[1,2]}`, "c": "<x>"}, "Look.", `{"a":{"b":[1,2]},"c":"<x>"}`},
		"a body that the text tells whole":     {map[string]string{"payload": `{"a": "b"}`, "a": "b", "depth": "3"}, `Read {"a": "b"}`, `{"depth":"3"}`},
		"a payload that is no body":            {map[string]string{"payload": "the parcel", "a": "b"}, "Look.", `{"a":"b","payload":"the parcel"}`},
		"a payload whose members are not here": {map[string]string{"payload": `{"x": 1}`, "a": "b"}, "Look.", `{"a":"b","payload":{"x":1}}`},
		"an empty body":                        {map[string]string{"payload": `{}`}, "Look.", ""},
	} {
		want := ""
		if c.want != "" {
			want = "> " + c.want
		}
		if got := variables(c.values, c.text)(maxVariables); got != want {
			t.Errorf("%s: %s, want %s", name, got, want)
		}
	}
}

// A webhook's body of 23 KB made a prompt of 50 KB: it was told whole, and each of its members beside it.
func TestAWebhooksBodyIsBounded(t *testing.T) {
	commits := make([]map[string]any, 60)
	for i := range commits {
		commits[i] = map[string]any{"id": fmt.Sprintf("%040d", i), "message": strings.Repeat("words and \"more\" words ", 12), "author": "ben"}
	}
	body, err := json.Marshal(map[string]any{"ref": "refs/heads/main", "commits": commits, "last": commits[0]})
	if err != nil {
		t.Fatal(err)
	}
	values, err := domain.WebhookValues(body)
	if err != nil {
		t.Fatal(err)
	}
	prompt := func(values map[string]string) string {
		return Build(withWakes(base(), Wake{Source: domain.WakeupSourceRoutine, Routine: "Push", Text: "Look at what was pushed.",
			Payload: &domain.RoutinePayload{RoutineID: "rtn_1", TriggerID: "trg_1", Variables: values}})).Text
	}
	bare, got := prompt(nil), prompt(values)
	t.Logf("a body of %d bytes makes a prompt of %d, without it of %d", len(body), len(got), len(bare))
	if grown := len(got) - len(bare); len(body) < 20<<10 || grown > maxVariables+headRoom {
		t.Errorf("a body of %d bytes takes %d", len(body), grown)
	}
	for _, want := range []string{`"ref":"refs/heads/main"`, `"last":{"author":"ben"`, "Variables, cut where they are long; the run's wakeup request has them whole:"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing in\n%.3000s", want, got)
		}
	}
	if strings.Contains(got, `"payload"`) {
		t.Error("the whole body stands beside its members")
	}
}

func TestAColleagueIsToldByTheFirstSentence(t *testing.T) {
	for text, want := range map[string]string{
		"":                                   "",
		"# Role\n\n## More\n":                "",
		"# Role\n\n- Writes notes. And more": "Writes notes.",
		"Reads v1.2 files":                   "Reads v1.2 files",
		strings.Repeat("é", 150):             strings.Repeat("é", maxAbout) + "…",
		"one\nline":                          "one",
	} {
		if got := firstSentence(text); got != want {
			t.Errorf("%.40q: %q, want %q", text, got, want)
		}
	}
}

// Outcomes share their room; where there is none for a word of each, tasks are named alone.
func TestOutcomesAreBounded(t *testing.T) {
	long := strings.Repeat("x", 10<<10)
	several := func(n int) (tasks []TaskRef, list []Outcome) {
		for i := range n {
			o := Outcome{AgentID: fmt.Sprintf("agt_%d", i), Text: long}
			tasks, list = append(tasks, TaskRef{ID: "tsk", Outcome: &o}), append(list, o)
		}
		return tasks, list
	}
	for _, c := range []struct{ n, limit, told int }{{1, 64 << 10, 1}, {10, 64 << 10, 10}, {10, 8 << 10, 0}, {0, 64 << 10, 0}} {
		tasks, list := several(c.n)
		for name, got := range map[string]string{"tasks": ended(tasks, c.limit), "agents": outcomes(list, c.limit)} {
			if told := strings.Count(got, "> x"); told != c.told || len(got) > min(c.limit, c.n*(maxOutcome+headRoom)) {
				t.Errorf("%d %s in %d bytes: %d are quoted, in %d bytes, want %d", c.n, name, c.limit, told, len(got), c.told)
			}
		}
	}
}
