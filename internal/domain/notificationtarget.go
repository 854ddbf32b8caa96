package domain

// NotificationTarget is where a channel delivers: one member, by the channel's kind. Secrets are sealed for the channel
// (SealPlace) and never shown.
type NotificationTarget struct {
	Webhook *WebhookTarget `json:"webhook,omitempty"`
	Slack   *PostTarget    `json:"slack,omitempty"`
	JSON    *PostTarget    `json:"json,omitempty"`
	Email   *EmailTarget   `json:"email,omitempty"`
}

// WebhookTarget is an address whose owner verifies signatures.
type WebhookTarget struct {
	URL    string `json:"url"`
	Secret string `json:"secret"` // sealed
	Hint   string `json:"hint"`   // its last characters
}

// PostTarget is an address that is a secret itself: whoever knows it may post there.
type PostTarget struct {
	URL      string `json:"url"`  // sealed
	Host     string `json:"host"` // of the address, to be shown
	Template string `json:"template,omitempty"`
}

// EmailTarget is a mail server with who writes to whom.
type EmailTarget struct {
	Host     string       `json:"host"`
	Port     int          `json:"port"`
	Security SMTPSecurity `json:"security"`
	Username string       `json:"username,omitempty"`
	Password string       `json:"password,omitempty"` // sealed; "" without a username
	From     string       `json:"from"`
	To       []string     `json:"to"`
}

// Names of the secrets of a target, which they are sealed for.
const (
	NotificationSecret   = "secret"
	NotificationAddress  = "url"
	NotificationPassword = "password"
)

// Kind is the kind of channel that the target belongs to; "" of an empty one.
func (t NotificationTarget) Kind() NotificationChannelKind {
	switch {
	case t.Webhook != nil:
		return NotificationChannelKindWebhook
	case t.Slack != nil:
		return NotificationChannelKindSlack
	case t.JSON != nil:
		return NotificationChannelKindJSON
	case t.Email != nil:
		return NotificationChannelKindEmail
	}
	return ""
}

// EachSecret calls f with each sealed secret of the target, its name and where it stands.
func (t NotificationTarget) EachSecret(f func(name string, sealed *string)) {
	switch {
	case t.Webhook != nil:
		f(NotificationSecret, &t.Webhook.Secret)
	case t.Slack != nil:
		f(NotificationAddress, &t.Slack.URL)
	case t.JSON != nil:
		f(NotificationAddress, &t.JSON.URL)
	case t.Email != nil && t.Email.Password != "":
		f(NotificationPassword, &t.Email.Password)
	}
}

// KeepFrom gives a new target of a channel the secrets that its input left out, from the stored one; empty is left out. A
// password is kept for the same server and user alone: another server would be told it. problems are below "target".
func (t NotificationTarget) KeepFrom(stored NotificationTarget) (problems []FieldError) {
	if t.Kind() != stored.Kind() {
		return []FieldError{{Field: []string{"target"}, Code: UserErrorCodeInvalid, Message: "a channel stays of its kind, " + string(stored.Kind()) + ": make another channel"}}
	}
	switch {
	case t.Webhook != nil && t.Webhook.Secret == "":
		t.Webhook.Secret, t.Webhook.Hint = stored.Webhook.Secret, stored.Webhook.Hint
	case t.Slack != nil && t.Slack.URL == "":
		t.Slack.URL, t.Slack.Host = stored.Slack.URL, stored.Slack.Host
	case t.JSON != nil && t.JSON.URL == "":
		t.JSON.URL, t.JSON.Host = stored.JSON.URL, stored.JSON.Host
	case t.Email != nil && t.Email.Username != "" && t.Email.Password == "":
		if !t.Email.sameAccount(*stored.Email) {
			return []FieldError{{Field: []string{"target", "email", "password"}, Code: UserErrorCodeRequired, Message: "give the password again: the server, the port, the encryption or the user is another one, and a stored password is sent nowhere else"}}
		}
		t.Email.Password = stored.Email.Password
	}
	return nil
}

// sameAccount says whether both log in to the same server, as safely, as the same user.
func (e EmailTarget) sameAccount(o EmailTarget) bool {
	return e.Host == o.Host && e.Port == o.Port && e.Security == o.Security && e.Username == o.Username && o.Password != ""
}

// Clone is a target of its own.
func (t NotificationTarget) Clone() NotificationTarget {
	if t.Webhook != nil {
		t.Webhook = new(*t.Webhook)
	}
	if t.Slack != nil {
		t.Slack = new(*t.Slack)
	}
	if t.JSON != nil {
		t.JSON = new(*t.JSON)
	}
	if t.Email != nil {
		t.Email = new(*t.Email)
	}
	return t
}
