package domain

import (
	"cmp"
	"fmt"
	"net/mail"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"rouse.dev/rouse/internal/xid"
)

// Bounds of notification channels. A workspace's are few, because each cause is noted for each of them.
const (
	MaxNotificationChannels = 20
	MaxNotificationTitle    = 300      // characters
	MaxNotificationBody     = 4000     // characters
	maxTemplate             = 16 << 10 // bytes
	maxAddress              = 2048     // bytes
	maxRecipients           = 20
	maxMailField            = 320 // characters of an address or a user
	maxPassword             = 1024
)

// NotificationWishes are what a channel tells of.
type NotificationWishes struct {
	InboxKinds     []InboxKind
	RunFailures    bool
	VerdictChanges bool
}

// Wants says whether a channel is told of an event, and as what: a run that failed for good comes into the inbox, too, and is told
// once. about is the record that the item concerns; a channel is not told that it fails itself. (The store's notices and this rule
// are compared in a test of the store.)
func (w NotificationWishes) Wants(kind InboxKind, self, about xid.ID) (NotificationEvent, bool) {
	switch {
	case self == about && about != "":
		return "", false
	case kind == InboxKindAgentError && w.RunFailures:
		return NotificationEventRunFailed, true
	case slices.Contains(w.InboxKinds, kind):
		return NotificationEventInboxItem, true
	}
	return "", false
}

// Check refuses wishes that ask for nothing, and gives each kind once.
func (w NotificationWishes) Check() (NotificationWishes, []FieldError) {
	if len(w.InboxKinds) == 0 && !w.RunFailures && !w.VerdictChanges {
		return w, []FieldError{{Field: []string{"inboxKinds"}, Code: UserErrorCodeRequired, Message: "the channel would tell of nothing: name kinds of inbox items, or set runFailures or verdictChanges"}}
	}
	kinds := slices.Clone(w.InboxKinds)
	slices.Sort(kinds)
	w.InboxKinds = append([]InboxKind{}, slices.Compact(kinds)...)
	return w, nil
}

// CheckNotificationAddress says what is wrong with an address that is posted to; secret is one that is not shown.
func CheckNotificationAddress(text string, secret bool) *FieldError {
	u, err := url.Parse(text)
	switch {
	case text == "":
		return &FieldError{Code: UserErrorCodeRequired, Message: "name the address, e.g. https://hooks.example.com/rouse"}
	case len(text) > maxAddress:
		return &FieldError{Code: UserErrorCodeTooLong, Message: fmt.Sprintf("must be at most %d bytes", maxAddress)}
	case err != nil || !isVisible(text) || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.Opaque != "" || u.Fragment != "":
		return &FieldError{Code: UserErrorCodeInvalid, Message: "must be an http or https address, e.g. https://hooks.example.com/rouse"}
	case strings.HasSuffix(u.Host, ":") || u.Port() != "" && !isPortNumber(u.Port()):
		return &FieldError{Code: UserErrorCodeInvalid, Message: "must name a port from 1 to 65535 after the host's colon, or leave both out"}
	case u.User != nil && !secret:
		return &FieldError{Code: UserErrorCodeInvalid, Message: "must hold no user and password, which everybody would see: the signature proves who sends"}
	}
	return nil
}

func isPortNumber(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return err == nil && n > 0
}

// AddressHost is the host of an address that was checked, to be shown.
func AddressHost(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	return u.Host
}

// Check says what is wrong with a mail server and its letters. password is what was given, before it was sealed.
func (e EmailTarget) Check(password string) (problems []FieldError) {
	add := func(field string, code UserErrorCode, message string) {
		problems = append(problems, FieldError{Field: []string{field}, Code: code, Message: message})
	}
	if e.Host == "" || len(e.Host) > 253 || !isVisible(e.Host) || strings.ContainsAny(e.Host, "/@:[]") && !isIPv6(e.Host) {
		add("host", UserErrorCodeInvalid, "must be the name or address of a mail server, e.g. smtp.example.com")
	}
	if e.Port < 1 || e.Port > 65535 {
		add("port", UserErrorCodeOutOfRange, fmt.Sprintf("must be from 1 to 65535, not %d", e.Port))
	}
	if utf8.RuneCountInString(e.Username) > maxMailField || strings.ContainsFunc(e.Username, isControl) {
		add("username", UserErrorCodeInvalid, fmt.Sprintf("must be one line of at most %d characters", maxMailField))
	}
	if len(password) > maxPassword || strings.ContainsFunc(password, isControl) {
		add("password", UserErrorCodeInvalid, fmt.Sprintf("must be one line of at most %d bytes", maxPassword))
	}
	switch {
	case password != "" && e.Username == "":
		add("username", UserErrorCodeRequired, "a password needs the user whose it is")
	case e.Username != "" && e.Security == SMTPSecurityNone:
		add("security", UserErrorCodeInvalid, "a password is not sent without encryption: use STARTTLS or TLS, or leave the user out")
	}
	if !isMailbox(e.From) {
		add("from", UserErrorCodeInvalid, "must be one mail address, e.g. rouse@example.com or Rouse <rouse@example.com>")
	}
	if len(e.To) < 1 || len(e.To) > maxRecipients {
		add("to", UserErrorCodeOutOfRange, fmt.Sprintf("must be 1 to %d mail addresses", maxRecipients))
		return problems
	}
	for i, to := range e.To {
		if !isMailbox(to) {
			problems = append(problems, FieldError{Field: []string{"to", strconv.Itoa(i)}, Code: UserErrorCodeInvalid, Message: "must be one mail address, e.g. ann@example.com"})
		}
	}
	return problems
}

func isControl(r rune) bool { return r < ' ' || r == 0x7f }

func isIPv6(host string) bool {
	return !strings.ContainsAny(host, "/@[]") && strings.Count(host, ":") > 1
}

func isMailbox(text string) bool {
	_, err := mail.ParseAddress(text)
	return err == nil && utf8.RuneCountInString(text) <= maxMailField && !strings.ContainsFunc(text, isControl)
}

// VerdictNotice says that the verdict on a workspace's loop is another one.
func VerdictNotice(workspace string, before, now LoopVerdict) (title, body string) {
	title = fmt.Sprintf("The loop of workspace %s is %s, it was %s", FirstRunes(onOneLine(workspace), 200), now, before)
	return title, cmp.Or(verdictMeans[now], string(now)) + " The evidence is under loopLiveness of the workspace."
}

var verdictMeans = map[LoopVerdict]string{
	LoopVerdictUnknown:  "The scheduler has not been activated.",
	LoopVerdictDead:     "A trigger that is due did not fire.",
	LoopVerdictHeld:     "A person holds the workspace, and nothing of it is started.",
	LoopVerdictDegraded: "Runs are stuck, or succeed without a session, or fires wait for one without work.",
	LoopVerdictNotArmed: "No enabled schedule would wake an agent.",
	LoopVerdictHealthy:  "Schedules fire, and what they wake is worked on.",
}

// Notice is one thing to tell, as a channel tells it.
type Notice struct {
	ID            xid.ID // of the notification; of a test, of its delivery
	Event         NotificationEvent
	Kind          InboxKind // of an inbox item; "" without one
	WorkspaceID   xid.ID
	WorkspaceName string
	SubjectID     xid.ID // what it is about; "" for the loop
	Title, Body   string
	At            time.Time // when it happened
}

// TestNotice is what a test of a channel tells.
func TestNotice(id, workspaceID xid.ID, workspace, channel string, at time.Time) Notice {
	return Notice{ID: id, Event: NotificationEventTest, WorkspaceID: workspaceID, WorkspaceName: workspace, At: at,
		Title: "A test of the notification channel " + FirstRunes(onOneLine(channel), 200), Body: "Somebody tests whether this channel delivers. Nothing happened."}
}
