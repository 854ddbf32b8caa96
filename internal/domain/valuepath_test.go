package domain

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

const issueBody = `{"action":"opened","issue":{"title":"It \"breaks\"","number":7,"user":null,"labels":[{"name":"bug"},{"name":"p1"}]},"header.x-github-event":"spoofed"}`

func issueValues(t *testing.T) map[string]string {
	t.Helper()
	values, err := DeliveryValues([]byte(issueBody), "issues", map[string]string{"x-github-event": "issues", "user-agent": "hook"}, []string{"{{header.X-GitHub-Event}}"})
	if err != nil {
		t.Fatal(err)
	}
	return values
}

func TestPathsReachIntoABody(t *testing.T) {
	values := issueValues(t)
	for text, want := range map[string]string{
		"{{action}}":                      "opened",
		"{{issue.title}}":                 `It "breaks"`,
		"{{ issue.number }}":              "7",
		"{{issue.user}}":                  "null",
		"{{issue.labels.0.name}}":         "bug",
		"{{issue.labels.1}}":              `{"name":"p1"}`,
		"{{payload.issue.labels.1.name}}": "p1",
		"{{header.X-GitHub-Event}}":       "issues",
		"{{header.x-github-event}}":       "issues",
		"{{webhook.event}}":               "issues",
		"{{issue.labels.2.name}}":         "{{issue.labels.2.name}}",
		"{{issue.labels.01.name}}":        "{{issue.labels.01.name}}",
		"{{issue.labels.-1}}":             "{{issue.labels.-1}}",
		"{{issue.user.login}}":            "{{issue.user.login}}",
		"{{action.x}}":                    "{{action.x}}",
		"{{issue..title}}":                "{{issue..title}}",
		"{{issue.}}":                      "{{issue.}}",
		"{{header.User-Agent}}":           "{{header.User-Agent}}", // nobody named it when the delivery came
		"{{a.b.c.d.e.f.g.h.i.j.k}}":       "{{a.b.c.d.e.f.g.h.i.j.k}}",
	} {
		if got := Render(text, values, 1000); got != want {
			t.Errorf("%s is %q, want %q", text, got, want)
		}
	}
	if got := UnresolvedPaths(values, "{{issue.title}} {{issue.nope}} {{plain}}", "{{issue.nope}} {{header.X-None}}"); !slices.Equal(got, []string{"issue.nope", "header.X-None"}) {
		t.Errorf("paths without a value: %v", got)
	}
	if got := Undeclared(nil, &TaskTemplate{Title: "{{issue.title}} {{plain}}"}); !slices.Equal(got, []string{"plain"}) {
		t.Errorf("a path is declared: %v", got)
	}
}

// What names a header in a text is told, but nothing that proves a sender.
func TestNoProofIsAValue(t *testing.T) {
	names := NamedHeaders([]WebhookCondition{{Header: new("x-event-key")}}, "{{header.authorization}} {{header.X-Gitlab-Token}} {{header.X-Hub-Signature-256}} {{header.Cookie}} {{header.X-GitHub-Event}}")
	if !slices.Equal(names, []string{"X-Event-Key", "X-Github-Event"}) {
		t.Errorf("the headers are %v", names)
	}
}

func TestConditionsDecideWhatFires(t *testing.T) {
	values := issueValues(t)
	headers := map[string]string{"x-github-event": "issues", "user-agent": "GitHub-Hookshot/1"}
	for _, c := range []struct {
		name  string
		when  WebhookCondition
		holds bool
	}{
		{"a value among those named", WebhookCondition{Path: new("action"), In: []string{"opened", "reopened"}}, true},
		{"a value that is not among them", WebhookCondition{Path: new("action"), In: []string{"closed"}}, false},
		{"what is not there is among none", WebhookCondition{Path: new("nope"), In: []string{""}}, false},
		{"a number by its text", WebhookCondition{Path: new("issue.number"), In: []string{"7"}}, true},
		{"a value that is none of those", WebhookCondition{Path: new("action"), NotIn: []string{"closed"}}, true},
		{"a value that is one of those", WebhookCondition{Path: new("action"), NotIn: []string{"opened"}}, false},
		{"what is not there is none of those", WebhookCondition{Path: new("nope"), NotIn: []string{"x"}}, true},
		{"what is there", WebhookCondition{Path: new("issue.labels.0"), Exists: new(true)}, true},
		{"what is not there", WebhookCondition{Path: new("issue.labels.9"), Exists: new(true)}, false},
		{"what is there and must not be", WebhookCondition{Path: new("action"), Exists: new(false)}, false},
		{"a part that matches", WebhookCondition{Path: new("issue.title"), Matches: new("(?i)BREAKS")}, true},
		{"the whole that does not", WebhookCondition{Path: new("issue.title"), Matches: new("^breaks$")}, false},
		{"what is not there matches nothing", WebhookCondition{Path: new("nope"), Matches: new("")}, false},
		{"a header in any case", WebhookCondition{Header: new("X-GITHUB-event"), In: []string{"issues"}}, true},
		{"a header that no text names", WebhookCondition{Header: new("User-Agent"), Matches: new("^GitHub-")}, true},
		{"a header that is missing", WebhookCondition{Header: new("X-None"), Exists: new(true)}, false},
		{"what the sender calls the event", WebhookCondition{Path: new("webhook.event"), In: []string{"issues"}}, true},
	} {
		list := []WebhookCondition{c.when}
		if problems := CheckConditions(list); len(problems) > 0 {
			t.Errorf("%s: %v", c.name, problems)
		}
		why := FilterDelivery(list, ConditionValues(list, values, headers))
		if (why == "") != c.holds {
			t.Errorf("%s: %q", c.name, why)
		}
		if strings.Contains(why, "breaks") && c.when.Matches == nil {
			t.Errorf("%s tells a value: %s", c.name, why)
		}
	}
	all := []WebhookCondition{{Path: new("action"), Exists: new(true)}, {Path: new("action"), In: []string{"closed"}}}
	if why := FilterDelivery(all, values); !strings.HasPrefix(why, "condition 2 does not hold: action is none of closed") {
		t.Errorf("all must hold: %q", why)
	}
	if FilterDelivery(nil, values) != "" {
		t.Error("without a condition nothing fires")
	}
}

func TestConditionsThatCannotBeJudgedAreRefused(t *testing.T) {
	long := strings.Repeat("x", maxConditionText+1)
	for name, c := range map[string]struct {
		when WebhookCondition
		want string
	}{
		"nothing to look at":             {WebhookCondition{Exists: new(true)}, "INVALID when.0"},
		"two things to look at":          {WebhookCondition{Path: new("a"), Header: new("b"), Exists: new(true)}, "INVALID when.0"},
		"no test":                        {WebhookCondition{Path: new("a")}, "INVALID when.0"},
		"two tests":                      {WebhookCondition{Path: new("a"), Exists: new(true), In: []string{"x"}}, "INVALID when.0"},
		"no path":                        {WebhookCondition{Path: new("a..b"), Exists: new(true)}, "INVALID when.0.path"},
		"a path of eleven parts":         {WebhookCondition{Path: new("a.b.c.d.e.f.g.h.i.j.k"), Exists: new(true)}, "INVALID when.0.path"},
		"a header by a path":             {WebhookCondition{Path: new("header.X-A"), Exists: new(true)}, "INVALID when.0.path"},
		"no name of a header":            {WebhookCondition{Header: new("X A"), Exists: new(true)}, "INVALID when.0.header"},
		"a header that holds a proof":    {WebhookCondition{Header: new("authorization"), Exists: new(true)}, "INVALID when.0.header"},
		"no text to be among":            {WebhookCondition{Path: new("a"), In: []string{}}, "INVALID when.0.in"},
		"a text that is too long":        {WebhookCondition{Path: new("a"), NotIn: []string{long}}, "TOO_LONG when.0.notIn"},
		"no regular expression":          {WebhookCondition{Path: new("a"), Matches: new("(")}, "INVALID when.0.matches"},
		"a lookahead, which RE2 has not": {WebhookCondition{Path: new("a"), Matches: new("(?=a)")}, "INVALID when.0.matches"},
		"a long regular expression":      {WebhookCondition{Path: new("a"), Matches: new(long)}, "TOO_LONG when.0.matches"},
	} {
		var got []string
		for _, p := range CheckConditions([]WebhookCondition{c.when}) {
			got = append(got, string(p.Code)+" "+strings.Join(p.Field, "."))
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %v, want %s", name, got, c.want)
		}
	}
	if got := CheckConditions(make([]WebhookCondition, maxConditions+1)); len(got) != 1 || got[0].Code != UserErrorCodeTooLong {
		t.Errorf("too many: %v", got)
	}
}

func TestAPresetSaysHowADeliveryIsSigned(t *testing.T) {
	sound := TriggerSettings{Kind: TriggerKindWebhook, SigningMode: SigningModeHMACSHA256, ReplayWindow: DefaultReplayWindow, Preset: WebhookPresetGitHub}
	if got := CheckWebhook(sound); len(got) > 0 {
		t.Errorf("a sound one: %v", got)
	}
	bearer, timed, stripe := sound, sound, sound
	bearer.SigningMode, timed.RequireTimestamp = SigningModeBearer, true
	stripe.Preset, stripe.RequireTimestamp = WebhookPresetStripe, true
	if got := CheckWebhook(bearer); len(got) != 1 || got[0].Field[0] != "signingMode" {
		t.Errorf("a bearer: %v", got)
	}
	if got := CheckWebhook(timed); len(got) != 1 || got[0].Field[0] != "requireTimestamp" {
		t.Errorf("a timestamp that GitHub does not send: %v", got)
	}
	if got := CheckWebhook(stripe); len(got) > 0 {
		t.Errorf("a timestamp that Stripe sends: %v", got)
	}
}

// No text makes a path that panics, and a rendered text has no more than its bound.
func FuzzPaths(f *testing.F) {
	for _, text := range []string{"{{issue.title}}", "{{labels.0.name}}", "{{header.X-A}}", "{{a..b}}", "{{payload.issue.labels.1}}"} {
		f.Add(text, issueBody)
	}
	f.Fuzz(func(t *testing.T, text, body string) {
		values, err := DeliveryValues([]byte(body), "e", map[string]string{"x-a": "b"}, []string{text})
		if err != nil {
			return
		}
		before := maps.Clone(values)
		if got := Render(text, values, 500); len(got) > 510 {
			t.Errorf("%q has %d bytes", text, len(got))
		}
		UnresolvedPaths(values, text)
		if !maps.Equal(before, values) {
			t.Error("to render changes the values")
		}
	})
}

// A condition that is accepted can be judged, whatever comes.
func FuzzConditions(f *testing.F) {
	f.Add("issue.title", "(?i)break", issueBody)
	f.Add("labels.0", "^a*$", `{"labels":["aaaa"]}`)
	f.Fuzz(func(t *testing.T, path, pattern, body string) {
		list := []WebhookCondition{{Path: &path, Matches: &pattern}, {Header: &path, Exists: new(false)}}
		if len(CheckConditions(list)) > 0 {
			return
		}
		values, err := DeliveryValues([]byte(body), "", nil, nil)
		if err == nil {
			FilterDelivery(list, ConditionValues(list, values, nil))
		}
	})
}
