package domain

import (
	"encoding/json"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"rouse.dev/rouse/internal/xid"
)

func TestAChannelWantsWhatItAsksFor(t *testing.T) {
	some := NotificationWishes{InboxKinds: []InboxKind{InboxKindBudgetAlert, InboxKindNotificationFailed}}
	for _, c := range []struct {
		name   string
		wishes NotificationWishes
		kind   InboxKind
		about  string
		want   NotificationEvent
	}{
		{"a kind that it names", some, InboxKindBudgetAlert, "bud_1", NotificationEventInboxItem},
		{"a kind that it does not name", some, InboxKindAgentError, "run_1", ""},
		{"a failed run, to who asks for those", NotificationWishes{RunFailures: true}, InboxKindAgentError, "run_1", NotificationEventRunFailed},
		{"a failed run, once to who asks for both", NotificationWishes{RunFailures: true, InboxKinds: []InboxKind{InboxKindAgentError}}, InboxKindAgentError, "run_1", NotificationEventRunFailed},
		{"a failed run, as an item to who asks for items", NotificationWishes{InboxKinds: []InboxKind{InboxKindAgentError}}, InboxKindAgentError, "run_1", NotificationEventInboxItem},
		{"another channel that fails", some, InboxKindNotificationFailed, "nch_2", NotificationEventInboxItem},
		{"its own failure, which it could not deliver", some, InboxKindNotificationFailed, "nch_1", ""},
		{"an item about nothing", some, InboxKindBudgetAlert, "", NotificationEventInboxItem},
		{"verdicts alone", NotificationWishes{VerdictChanges: true}, InboxKindAgentError, "run_1", ""},
	} {
		if got, told := c.wishes.Wants(c.kind, "nch_1", xid.ID(c.about)); got != c.want || told != (c.want != "") {
			t.Errorf("%s: got %q, %v, want %q", c.name, got, told, c.want)
		}
	}
}

func TestWishesAskForSomething(t *testing.T) {
	if _, problems := (NotificationWishes{}).Check(); len(problems) != 1 || problems[0].Code != UserErrorCodeRequired {
		t.Errorf("a channel that tells of nothing: %v", problems)
	}
	got, problems := NotificationWishes{InboxKinds: []InboxKind{InboxKindFiresWait, InboxKindBudgetAlert, InboxKindFiresWait}}.Check()
	if len(problems) > 0 || len(got.InboxKinds) != 2 || got.InboxKinds[0] != InboxKindBudgetAlert {
		t.Errorf("kinds that are named twice: %v, %v", got, problems)
	}
	if got, problems := (NotificationWishes{VerdictChanges: true}).Check(); len(problems) > 0 || got.InboxKinds == nil {
		t.Errorf("verdicts alone: %v, %v", got, problems)
	}
}

func TestAddressesOfChannels(t *testing.T) {
	for _, c := range []struct {
		name, address string
		secret        bool
		want          UserErrorCode
	}{
		{"https", "https://hooks.example.com/services/T0/B0/x", true, ""},
		{"http, which the guard judges", "http://127.0.0.1:9000/x", false, ""},
		{"none", "", false, UserErrorCodeRequired},
		{"another scheme", "ftp://example.com", false, UserErrorCodeInvalid},
		{"no host", "https:///x", false, UserErrorCodeInvalid},
		{"no address", "://", false, UserErrorCodeInvalid},
		{"a blank", "https://example.com/a b", false, UserErrorCodeInvalid},
		{"a fragment", "https://example.com/#a", false, UserErrorCodeInvalid},
		{"a port that cannot be", "https://example.com:70000/", false, UserErrorCodeInvalid},
		{"a port that is missing", "https://example.com:/", false, UserErrorCodeInvalid},
		{"a password that is shown", "https://a:b@example.com/", false, UserErrorCodeInvalid},
		{"a password that is not shown", "https://a:b@example.com/", true, ""},
		{"too long", "https://example.com/" + strings.Repeat("x", 2048), true, UserErrorCodeTooLong},
	} {
		problem, got := CheckNotificationAddress(c.address, c.secret), UserErrorCode("")
		if problem != nil {
			got = problem.Code
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestMailTargets(t *testing.T) {
	good := EmailTarget{Host: "smtp.example.com", Port: 587, Security: SMTPSecurityStartTLS, Username: "rouse", From: "Rouse <rouse@example.com>", To: []string{"ann@example.com"}}
	with := func(change func(*EmailTarget)) EmailTarget { e := good; change(&e); return e }
	for _, c := range []struct {
		name, password string
		target         EmailTarget
		field          string
	}{
		{"as it should be", "p", good, ""},
		{"an address of IPv6", "p", with(func(e *EmailTarget) { e.Host = "2001:db8::1" }), ""},
		{"no encryption and nobody's password", "", with(func(e *EmailTarget) { e.Security, e.Username = SMTPSecurityNone, "" }), ""},
		{"no host", "p", with(func(e *EmailTarget) { e.Host = "" }), "host"},
		{"a host with a port", "p", with(func(e *EmailTarget) { e.Host = "smtp.example.com:25" }), "host"},
		{"a port that cannot be", "p", with(func(e *EmailTarget) { e.Port = 0 }), "port"},
		{"a password in the open", "p", with(func(e *EmailTarget) { e.Security = SMTPSecurityNone }), "security"},
		{"a password of nobody", "p", with(func(e *EmailTarget) { e.Username = "" }), "username"},
		{"a user of two lines", "p", with(func(e *EmailTarget) { e.Username = "a\r\nb" }), "username"},
		{"a password of two lines", "p\nq", good, "password"},
		{"a sender of two lines", "p", with(func(e *EmailTarget) { e.From = "a@example.com\r\nBcc: b@example.com" }), "from"},
		{"a sender that is none", "p", with(func(e *EmailTarget) { e.From = "rouse" }), "from"},
		{"nobody to write to", "p", with(func(e *EmailTarget) { e.To = nil }), "to"},
		{"too many to write to", "p", with(func(e *EmailTarget) { e.To = make([]string, 21) }), "to"},
		{"two in one", "p", with(func(e *EmailTarget) { e.To = []string{"a@example.com, b@example.com"} }), "to.0"},
	} {
		var got []string
		for _, p := range c.target.Check(c.password) {
			got = append(got, strings.Join(p.Field, "."))
		}
		if strings.Join(got, " ") != c.field {
			t.Errorf("%s: got %v, want %q", c.name, got, c.field)
		}
	}
}

func TestSecretsOfATargetAreKept(t *testing.T) {
	mail := func(host, user, password string) NotificationTarget {
		return NotificationTarget{Email: &EmailTarget{Host: host, Port: 587, Security: SMTPSecurityTLS, Username: user, Password: password}}
	}
	hook := func(secret string) NotificationTarget {
		return NotificationTarget{Webhook: &WebhookTarget{URL: "https://a", Secret: secret}}
	}
	slack := func(url string) NotificationTarget {
		return NotificationTarget{Slack: &PostTarget{URL: url, Host: url}}
	}
	for _, c := range []struct {
		name         string
		new, stored  NotificationTarget
		want, refuse string
	}{
		{"a secret that is left out", hook(""), hook("old"), "old", ""},
		{"a secret that is given", hook("new"), hook("old"), "new", ""},
		{"an address that is left out", slack(""), slack("old"), "old", ""},
		{"a JSON address that is left out", NotificationTarget{JSON: &PostTarget{}}, NotificationTarget{JSON: &PostTarget{URL: "old"}}, "old", ""},
		{"a password for the same account", mail("a", "u", ""), mail("a", "u", "old"), "old", ""},
		{"a password for another server", mail("b", "u", ""), mail("a", "u", "old"), "", "target.email.password"},
		{"a password for another user", mail("a", "v", ""), mail("a", "u", "old"), "", "target.email.password"},
		{"a user where there was none", mail("a", "u", ""), mail("a", "", ""), "", "target.email.password"},
		{"no user any more", mail("b", "", ""), mail("a", "u", "old"), "", ""},
		{"another kind", hook("new"), slack("old"), "new", "target"},
	} {
		refused := ""
		for _, p := range c.new.KeepFrom(c.stored) {
			refused = strings.Join(p.Field, ".")
		}
		got := ""
		c.new.EachSecret(func(_ string, sealed *string) { got = *sealed })
		if got != c.want || refused != c.refuse {
			t.Errorf("%s: got %q, refused %q, want %q, %q", c.name, got, refused, c.want, c.refuse)
		}
	}
}

func TestACloneOfATargetIsItsOwn(t *testing.T) {
	for _, target := range []NotificationTarget{{Webhook: &WebhookTarget{Secret: "s"}}, {Slack: &PostTarget{URL: "s"}}, {JSON: &PostTarget{URL: "s"}}, {Email: &EmailTarget{Password: "s"}}} {
		clone := target.Clone()
		clone.EachSecret(func(_ string, sealed *string) { *sealed = "opened" })
		target.EachSecret(func(_ string, sealed *string) {
			if *sealed != "s" {
				t.Errorf("%s: the stored target was changed", target.Kind())
			}
		})
	}
}

var notice = Notice{ID: "ntf_1", Event: NotificationEventInboxItem, Kind: InboxKindBudgetAlert, WorkspaceID: "wsp_1", WorkspaceName: "A & B", SubjectID: "bud_1",
	Title: `The budget "x" is <80 percent>`, Body: "Two\nlines", At: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)}

func TestBodiesOfNotices(t *testing.T) {
	body := func(b []byte, err error) string {
		if err != nil {
			t.Error(err)
		}
		return string(b)
	}
	for _, c := range []struct{ name, got, want string }{
		{"a webhook", body(notice.WebhookBody()), `{"type":"inbox.item_made","timestamp":"2026-01-02T03:04:05Z","data":{"id":"ntf_1","kind":"BUDGET_ALERT","title":"The budget \"x\" is <80 percent>","body":"Two\nlines","subjectId":"bud_1","workspaceId":"wsp_1","workspaceName":"A & B"}}`},
		{"JSON without a template", body(notice.JSONBody("")), `{"id":"ntf_1","kind":"BUDGET_ALERT","title":"The budget \"x\" is <80 percent>","body":"Two\nlines","subjectId":"bud_1","workspaceId":"wsp_1","workspaceName":"A & B"}`},
		{"JSON by a template: no value changes its form, numbers stay", body(notice.JSONBody(`{"n": 1.50, "list": ["{{ title }}", true, null], "{{title}}": "{{event}} {{occurredAt}}"}`)),
			`{"list":["The budget \"x\" is <80 percent>",true,null],"n":1.50,"{{title}}":"INBOX_ITEM 2026-01-02T03:04:05Z"}`},
		{"Slack", body(notice.SlackBody("")), `{"text":"*The budget \"x\" is &lt;80 percent&gt;*\nTwo\nlines"}`},
		{"Slack by a template", body(notice.SlackBody(`{"text": "{{workspaceName}}"}`)), `{"text":"A &amp; B"}`},
	} {
		if c.got != c.want {
			t.Errorf("%s:\ngot  %s\nwant %s", c.name, c.got, c.want)
		}
	}
	for event, want := range map[NotificationEvent]string{NotificationEventRunFailed: "run.failed", NotificationEventVerdictChanged: "loop.verdict_changed", NotificationEventTest: "channel.tested"} {
		n := notice
		n.Event = event
		if got := body(n.WebhookBody()); !strings.Contains(got, `"type":"`+want+`"`) {
			t.Errorf("%s: %s", event, got)
		}
	}
}

func TestALetterIsOneSubjectAndAText(t *testing.T) {
	n := notice
	n.Title, n.WorkspaceName = "One\r\nBcc: ann@example.com", strings.Repeat("w", 100)
	subject, text := n.Mail()
	if strings.ContainsAny(subject, "\r\n") || !strings.HasPrefix(subject, "["+strings.Repeat("w", 60)+"] One") {
		t.Errorf("the subject is %q", subject)
	}
	if !strings.Contains(text, "Two\nlines") || !strings.Contains(text, "bud_1") || !strings.Contains(text, "2026-01-02") {
		t.Errorf("the text is %q", text)
	}
}

func TestTemplatesAreChecked(t *testing.T) {
	for _, c := range []struct {
		name, template string
		want           UserErrorCode
	}{
		{"all names", `{"a": "{{id}}{{event}}{{kind}}{{title}}{{body}}{{subjectId}}{{workspaceId}}{{workspaceName}}{{occurredAt}}"}`, ""},
		{"a text alone", `"{{title}}"`, ""},
		{"no JSON", `{{title}}`, UserErrorCodeInvalid},
		{"two of it", `{} {}`, UserErrorCodeInvalid},
		{"a rest", `{} x`, UserErrorCodeInvalid},
		{"a name that is not known", `{"text": "{{name}}"}`, UserErrorCodeInvalid},
		{"nothing", ``, UserErrorCodeInvalid},
		{"too long", `"` + strings.Repeat("x", 16<<10) + `"`, UserErrorCodeTooLong},
	} {
		problem, got := CheckNotificationTemplate(c.template), UserErrorCode("")
		if problem != nil {
			got = problem.Code
		}
		if got != c.want {
			t.Errorf("%s: got %q, want %q", c.name, got, c.want)
		}
	}
}

func TestWhatATemplateMakesIsBounded(t *testing.T) {
	n := notice
	n.Body = strings.Repeat("ä", 4000)
	body, err := n.JSONBody(`["` + strings.Repeat("{{body}}", 1500) + `", "{{body}}", "{{title}}"]`)
	if err != nil || len(body) > maxNotice+100 || !utf8.Valid(body) {
		t.Errorf("%d bytes, %v", len(body), err)
	}
}

// A template that was taken makes JSON of the same form, whatever it is filled with, within its bound.
func FuzzNotificationTemplate(f *testing.F) {
	f.Add(`{"text": "*{{title}}*\n{{body}}"}`, `"}, {"`, "{{title}}")
	f.Add(`["{{id}}", 1e400, {"a": {"b": "{{ kind }}"}}]`, "\x00\xff", "<!channel>")
	f.Add(`"{{body}}{{body}}"`, "", strings.Repeat("é", 100))
	f.Fuzz(func(t *testing.T, template, title, body string) {
		if CheckNotificationTemplate(template) != nil {
			return
		}
		n := Notice{ID: "ntf_1", Title: StorableText(title), Body: StorableText(body), At: time.Unix(0, 0)}
		for _, make := range []func(string) ([]byte, error){n.JSONBody, n.SlackBody} {
			out, err := make(template)
			if err != nil || !json.Valid(out) {
				t.Fatalf("%q makes %q: %v", template, out, err)
			}
			if kindOfJSON(out) != kindOfJSON([]byte(template)) {
				t.Errorf("%q makes another form: %q", template, out)
			}
		}
	})
}

func kindOfJSON(text []byte) byte {
	text = []byte(strings.TrimSpace(string(text)))
	switch text[0] {
	case '{', '[', '"':
		return text[0]
	}
	return '0'
}

func TestVerdictNotices(t *testing.T) {
	for _, now := range loopVerdictValues {
		title, body := VerdictNotice("Shop\nfloor", LoopVerdictUnknown, now)
		if strings.Contains(title, "\n") || !strings.Contains(title, string(now)) || utf8.RuneCountInString(title) > MaxNotificationTitle || verdictMeans[now] == "" || !strings.HasPrefix(body, verdictMeans[now]) {
			t.Errorf("%s: %q, %q", now, title, body)
		}
	}
}
