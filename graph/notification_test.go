package graph_test

import (
	"strings"
	"testing"

	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

const channelFields = `channel { id revision name kind enabled inboxKinds runFailures verdictChanges workspace { id }
  target { __typename ... on WebhookTarget { url secretHint } ... on SlackTarget { host template } ... on JsonTarget { host template } ... on EmailTarget { host port security username from to } } }
userErrors { code field message }`

type channelAnswer struct {
	Channel *struct {
		ID, Name, Kind                       string
		Revision                             int
		Enabled, RunFailures, VerdictChanges bool
		InboxKinds                           []string
		Workspace                            struct{ ID string }
		Target                               map[string]any
	}
	Secret     string
	Replayed   bool
	UserErrors userErrors
}

func (w *world) createChannel(input map[string]any) channelAnswer {
	w.t.Helper()
	var out struct{ CreateNotificationChannel channelAnswer }
	w.Do(w.t.Context(), `mutation($input: CreateNotificationChannelInput!) { createNotificationChannel(input: $input) { secret replayed `+channelFields+` } }`, map[string]any{"input": input}, &out)
	return out.CreateNotificationChannel
}

func (w *world) updateChannel(input map[string]any) channelAnswer {
	w.t.Helper()
	var out struct{ UpdateNotificationChannel channelAnswer }
	w.Do(w.t.Context(), `mutation($input: UpdateNotificationChannelInput!) { updateNotificationChannel(input: $input) { `+channelFields+` } }`, map[string]any{"input": input}, &out)
	return out.UpdateNotificationChannel
}

func (w *world) channelInput(name string, target map[string]any) map[string]any {
	return of("workspaceId", w.workspace, "name", name, "inboxKinds", []string{"BUDGET_ALERT"}, "target", target)
}

func TestChannelsOfEachKindAreMadeWithoutTheirSecrets(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	mail := of("host", "smtp.example.com", "username", "rouse", "password", "hunter2", "from", "rouse@example.com", "to", []string{"ann@example.com"})
	for name, c := range map[string]struct {
		target map[string]any
		kind   string
		shown  map[string]any
		secret bool
	}{
		"hook":  {of("webhook", of("url", "https://example.com/hook")), "WEBHOOK", of("url", "https://example.com/hook"), true},
		"own":   {of("webhook", of("url", "https://example.com/hook", "secret", "hunter2-hunter2-hunter2")), "WEBHOOK", of("secretHint", "ter2"), true},
		"slack": {of("slack", of("url", "https://hooks.slack.com/services/T0/B0/hunter2")), "SLACK", of("host", "hooks.slack.com", "template", nil), false},
		"json":  {of("json", of("url", "https://example.com/?key=hunter2", "template", `{"a": "{{title}}"}`)), "JSON", of("host", "example.com", "template", `{"a": "{{title}}"}`), false},
		"mail":  {of("email", mail), "EMAIL", of("host", "smtp.example.com", "port", 587.0, "security", "STARTTLS", "username", "rouse"), false},
	} {
		got := w.createChannel(w.channelInput(name, c.target))
		if got.Channel == nil || got.Channel.Kind != c.kind || (got.Secret != "") != c.secret || got.Channel.Workspace.ID != w.workspace || !got.Channel.Enabled {
			t.Fatalf("%s: %+v", name, got)
		}
		for field, want := range c.shown {
			if got.Channel.Target[field] != want {
				t.Errorf("%s: %s is %v, want %v", name, field, got.Channel.Target[field], want)
			}
		}
	}
	if stored := w.one(`SELECT string_agg(to_jsonb(c)::text, ' ') FROM notification_channels c`); strings.Contains(stored, "hunter2") || strings.Count(stored, "sealed for nch_") != 5 {
		t.Errorf("stored is %s", stored)
	}
}

func TestChannelsAreRefusedWithThePathsOfWhatIsWrong(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	hook := of("url", "https://example.com/hook")
	mail := func(more ...any) map[string]any {
		out := of("host", "smtp.example.com", "from", "rouse@example.com", "to", []string{"ann@example.com"})
		for name, value := range of(more...) {
			out[name] = value
		}
		return of("email", out)
	}
	for name, c := range map[string]struct{ input, want any }{
		"nothing to tell of":  {of("workspaceId", w.workspace, "name", "x", "target", of("webhook", hook)), "REQUIRED input.inboxKinds"},
		"no name":             {w.channelInput(" ", of("webhook", hook)), "REQUIRED input.name"},
		"a short secret":      {w.channelInput("x", of("webhook", of("url", "https://example.com", "secret", "short"))), "INVALID input.target.webhook.secret"},
		"a scheme":            {w.channelInput("x", of("webhook", of("url", "file:///etc/passwd"))), "INVALID input.target.webhook.url"},
		"no address":          {w.channelInput("x", of("slack", of())), "REQUIRED input.target.slack.url"},
		"a template":          {w.channelInput("x", of("json", of("url", "https://example.com", "template", `{"a": "{{nobody}}"}`))), "INVALID input.target.json.template"},
		"a port":              {w.channelInput("x", mail("port", 0)), "OUT_OF_RANGE input.target.email.port"},
		"nobody":              {w.channelInput("x", mail("to", []string{})), "OUT_OF_RANGE input.target.email.to"},
		"no password":         {w.channelInput("x", mail("username", "rouse")), "REQUIRED input.target.email.password"},
		"an open password":    {w.channelInput("x", mail("username", "rouse", "password", "p", "security", "NONE")), "INVALID input.target.email.security"},
		"a foreign workspace": {of("workspaceId", string(xid.New("wsp")), "name", "x", "runFailures", true, "target", of("webhook", hook)), "NOT_FOUND input.workspaceId"},
	} {
		got := w.createChannel(c.input.(map[string]any))
		if got.Channel != nil || got.UserErrors.String() != c.want || got.Secret != "" {
			t.Errorf("%s: got %v, want %v", name, got.UserErrors, c.want)
		}
	}
	made := w.createChannel(w.channelInput("Phone", of("webhook", hook)))
	if again := w.createChannel(w.channelInput("Phone", of("webhook", hook))); again.UserErrors.String() != "TAKEN input.name" {
		t.Errorf("a name twice: %v", again.UserErrors)
	}
	id := made.Channel.ID
	if got := w.updateChannel(of("channelId", id, "expectedRevision", 9, "name", "x")); got.UserErrors.String() != "CONFLICT input.expectedRevision" {
		t.Errorf("another revision: %v", got.UserErrors)
	}
	if got := w.updateChannel(of("channelId", id, "target", of("slack", of("url", "https://example.com")))); got.UserErrors.String() != "INVALID input.target" {
		t.Errorf("another kind: %v", got.UserErrors)
	}
	got := w.updateChannel(of("channelId", id, "inboxKinds", []string{"AGENT_ERROR", "AGENT_ERROR"}, "verdictChanges", true, "target", of("webhook", of("url", "https://b.example.com"))))
	if got.Channel == nil || got.Channel.Revision != 2 || len(got.Channel.InboxKinds) != 1 || !got.Channel.VerdictChanges || got.Channel.Target["url"] != "https://b.example.com" || got.Channel.Target["secretHint"] != made.Channel.Target["secretHint"] {
		t.Errorf("changed to %+v, %v", got.Channel, got.UserErrors)
	}
	stranger := w.As(auth.Principal{Kind: auth.KindToken, WorkspaceID: xid.ID(w.makeWorkspace("Other")), Scopes: []domain.TokenScope{domain.TokenScopeAdmin}})
	var foreign struct {
		UpdateNotificationChannel channelAnswer
	}
	stranger.Do(t.Context(), `mutation { updateNotificationChannel(input: {channelId: "`+id+`", name: "x"}) { `+channelFields+` } }`, nil, &foreign)
	if foreign.UpdateNotificationChannel.UserErrors.String() != "NOT_FOUND input.channelId" {
		t.Errorf("a foreign channel: %v", foreign.UpdateNotificationChannel.UserErrors)
	}
}

func TestATestIsLoggedAndAnItemIsAboutItsChannel(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	id := w.createChannel(w.channelInput("Phone", of("webhook", of("url", "https://refused.example.com")))).Channel.ID
	test := func() (out struct {
		TestNotificationChannel struct {
			Delivered  bool
			Status     *int
			Detail     *string
			UserErrors userErrors
		}
	}) {
		w.Do(t.Context(), `mutation { testNotificationChannel(input: {channelId: "`+id+`"}) { delivered status detail userErrors { code field message } } }`, nil, &out)
		return out
	}
	if got := test().TestNotificationChannel; got.Delivered || got.Status == nil || *got.Status != 500 || got.Detail == nil || *got.Detail != "the receiver answered 500" {
		t.Errorf("a refused test: %+v", got)
	}
	w.updateChannel(of("channelId", id, "target", of("webhook", of("url", "https://example.com"))))
	if got := test().TestNotificationChannel; !got.Delivered || got.Detail != nil {
		t.Errorf("a test that is taken: %+v", got)
	}
	w.sql(`INSERT INTO inbox_items (id, workspace_id, kind, title, body, subject_id) VALUES ('inb_1', $1, 'NOTIFICATION_FAILED', 'x', '', $2)`, w.workspace, id)
	var out struct {
		Workspace struct {
			NotificationChannels struct {
				TotalCount int
				Edges      []struct {
					Node struct {
						ID         string
						Deliveries struct {
							TotalCount int
							Edges      []struct {
								Node struct {
									Event, Title, Outcome string
									Attempt               int
									Status                *int
									Detail                *string
									NotificationID        *string
								}
							}
						}
					}
				}
			}
			Inbox struct {
				Edges []struct {
					Node struct {
						Kind    string
						Subject struct{ ID string }
					}
				}
			}
		}
		Node struct{ Name string }
	}
	w.Do(t.Context(), `query($w: ID!, $c: ID!) {
  workspace(id: $w) {
    notificationChannels { totalCount edges { node { id deliveries { totalCount edges { node { attemptedAt event title outcome attempt status detail notificationId took nextAttemptAt } } } } } }
    inbox { edges { node { kind subject { ... on NotificationChannel { id } } } } }
  }
  node(id: $c) { ... on NotificationChannel { name } }
}`, map[string]any{"w": w.workspace, "c": id}, &out)
	channels := out.Workspace.NotificationChannels
	if channels.TotalCount != 1 || channels.Edges[0].Node.ID != id || channels.Edges[0].Node.Deliveries.TotalCount != 2 || out.Node.Name != "Phone" || out.Workspace.Inbox.Edges[0].Node.Subject.ID != id {
		t.Fatalf("%+v", out)
	}
	log := channels.Edges[0].Node.Deliveries.Edges
	if newest, oldest := log[0].Node, log[1].Node; newest.Outcome != "DELIVERED" || newest.Event != "TEST" || newest.NotificationID != nil || oldest.Outcome != "GAVE_UP" || oldest.Detail == nil || *oldest.Status != 500 {
		t.Errorf("the log has %+v", log)
	}
	w.must("deleteNotificationChannel", "deletedChannelId", of("channelId", id))
	w.Do(t.Context(), `query($w: ID!, $c: ID!) { workspace(id: $w) { notificationChannels { totalCount } } node(id: $c) { ... on NotificationChannel { name } } }`, map[string]any{"w": w.workspace, "c": id}, &out)
	if out.Workspace.NotificationChannels.TotalCount != 0 {
		t.Errorf("a deleted channel is shown: %+v", out)
	}
}
