package domain

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// maxNotice bounds what a template makes, in bytes of its texts.
const maxNotice = 64 << 10

// noticeNames are the values that a template may name.
var noticeNames = []string{"id", "event", "kind", "title", "body", "subjectId", "workspaceId", "workspaceName", "occurredAt"}

func (n Notice) values() map[string]string {
	return map[string]string{"id": n.ID.String(), "event": string(n.Event), "kind": string(n.Kind), "title": n.Title, "body": n.Body, "subjectId": n.SubjectID.String(),
		"workspaceId": n.WorkspaceID.String(), "workspaceName": n.WorkspaceName, "occurredAt": n.At.UTC().Format(time.RFC3339)}
}

// noticeData is what a webhook is told.
type noticeData struct {
	ID            string `json:"id"`
	Kind          string `json:"kind,omitempty"`
	Title         string `json:"title"`
	Body          string `json:"body"`
	SubjectID     string `json:"subjectId,omitempty"`
	WorkspaceID   string `json:"workspaceId"`
	WorkspaceName string `json:"workspaceName"`
}

func (n Notice) data() noticeData {
	return noticeData{n.ID.String(), string(n.Kind), n.Title, n.Body, n.SubjectID.String(), n.WorkspaceID.String(), n.WorkspaceName}
}

// eventType is the type of a webhook's payload, in the form that Standard Webhooks advise.
func (n Notice) eventType() string {
	return map[NotificationEvent]string{NotificationEventInboxItem: "inbox.item_made", NotificationEventRunFailed: "run.failed",
		NotificationEventVerdictChanged: "loop.verdict_changed", NotificationEventTest: "channel.tested"}[n.Event]
}

// WebhookBody is the payload of a signed webhook.
func (n Notice) WebhookBody() ([]byte, error) {
	return encodeNotice(struct {
		Type      string     `json:"type"`
		Timestamp string     `json:"timestamp"`
		Data      noticeData `json:"data"`
	}{n.eventType(), n.At.UTC().Format(time.RFC3339), n.data()})
}

// JSONBody is what is posted to an address that takes JSON: a template that was checked, or all that there is to say.
func (n Notice) JSONBody(template string) ([]byte, error) {
	if template == "" {
		return encodeNotice(n.data())
	}
	return renderNotice(template, n.values())
}

// SlackBody is what is posted to Slack, where three characters begin markup.
func (n Notice) SlackBody(template string) ([]byte, error) {
	values := n.values()
	for name, value := range values {
		values[name] = slackText.Replace(value)
	}
	if template == "" {
		template = `{"text": "*{{title}}*\n{{body}}"}`
	}
	return renderNotice(template, values)
}

var slackText = strings.NewReplacer("&", "&amp;", "<", "&lt;", ">", "&gt;")

// Mail is the subject and the text of a letter.
func (n Notice) Mail() (subject, text string) {
	subject = "[" + FirstRunes(onOneLine(n.WorkspaceName), 60) + "] " + FirstRunes(onOneLine(n.Title), MaxNotificationTitle)
	text = n.Title + "\n\n" + n.Body + "\n"
	if n.SubjectID != "" {
		text += "\nIt is about " + n.SubjectID.String() + "."
	}
	return subject, text + "\nRouse, workspace " + n.WorkspaceName + ", " + n.At.UTC().Format(time.RFC3339) + "\n"
}

// CheckNotificationTemplate says what is wrong with a template: it is JSON, and names what there is. nil: nothing.
func CheckNotificationTemplate(text string) *FieldError {
	if len(text) > maxTemplate {
		return &FieldError{Code: UserErrorCodeTooLong, Message: fmt.Sprintf("must be at most %d bytes", maxTemplate)}
	}
	if _, err := parseTemplate(text); err != nil {
		return &FieldError{Code: UserErrorCodeInvalid, Message: fmt.Sprintf("must be JSON, with what is filled in inside of its texts, e.g. {\"text\": \"{{title}}\"}: %v", err)}
	}
	for _, name := range Placeholders(text) {
		if !slices.Contains(noticeNames, name) {
			return &FieldError{Code: UserErrorCodeInvalid, Message: fmt.Sprintf("{{%s}} is not known: there are %s", FirstRunes(name, 64), strings.Join(noticeNames, ", "))}
		}
	}
	return nil
}

func parseTemplate(text string) (any, error) {
	d := json.NewDecoder(strings.NewReader(text))
	d.UseNumber()
	var tree any
	if err := d.Decode(&tree); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("something follows its end")
	}
	return tree, nil
}

// renderNotice fills values into the texts of a JSON template, so that no value can change its form. Texts are cut once they are
// longer than maxNotice together.
func renderNotice(template string, values map[string]string) ([]byte, error) {
	tree, err := parseTemplate(template)
	if err != nil {
		return nil, fmt.Errorf("read the template: %w", err)
	}
	left := maxNotice
	return encodeNotice(fillIn(tree, values, &left))
}

func fillIn(tree any, values map[string]string, left *int) any {
	switch tree := tree.(type) {
	case string:
		text := CutText(Render(tree, values, *left), *left, "")
		*left -= len(text)
		return text
	case []any:
		for i := range tree {
			tree[i] = fillIn(tree[i], values, left)
		}
	case map[string]any:
		for _, name := range sortedNames(tree) {
			tree[name] = fillIn(tree[name], values, left)
		}
	}
	return tree
}

func sortedNames(m map[string]any) []string {
	names := make([]string, 0, len(m))
	for name := range m {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// encodeNotice writes JSON as it is read by people, too.
func encodeNotice(value any) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(value); err != nil {
		return nil, fmt.Errorf("write the notification as JSON: %w", err)
	}
	return bytes.TrimSuffix(out.Bytes(), []byte("\n")), nil
}
