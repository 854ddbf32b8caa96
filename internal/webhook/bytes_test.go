package webhook

import (
	"bytes"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
)

// Anybody may send any bytes. What no text of the database can hold is none of ours, and no failure of the server.
func TestNoBytesOfACallerAreAFailureOfTheServer(t *testing.T) {
	w := newWorld(t)
	var log bytes.Buffer
	mux := http.NewServeMux()
	mux.Handle(Path, New(w.store.Routines, w.box, nil, slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))))
	open := w.hook(domain.SigningModeNone, "", nil).path
	bearer := w.hook(domain.SigningModeBearer, "0123456789abcdef", nil).path
	signed := w.hook(domain.SigningModeHMACSHA256, "0123456789abcdef", nil).path
	for _, c := range []struct {
		name, path, body string
		header           http.Header
		want             int
	}{
		{"NUL for an id", "/api/routine-triggers/%00/fire", "", nil, 404},
		{"broken UTF-8 for an id", "/api/routine-triggers/%ff/fire", "", nil, 404},
		{"NUL behind an id", strings.Replace(open, "/fire", "%00/fire", 1), "", nil, 404},
		{"a long id", "/api/routine-triggers/" + strings.Repeat("a", 5000) + "/fire", "", nil, 404},
		{"an id of another's form", "/api/routine-triggers/" + strings.Repeat("a", 32) + "/fire", "", nil, 404},
		{"NUL and broken UTF-8 in a body", open, "{\"a\\u0000\":\"b\\u0000\",\"\xff\":\"\xfe\",\"\\ud800\":1}", nil, 202},
		{"in a body that is no object", open, "\x00\xff", nil, 400},
		{"in the names of a delivery", open, "{}", http.Header{"Idempotency-Key": {"a\x00\xff"}, "Webhook-Id": {"\xff"}, "X-Github-Delivery": {"\x00"}}, 202},
		{"in the name of another delivery", open, "{}", http.Header{"Webhook-Id": {"\xff"}}, 202},
		{"in a bearer secret", bearer, "{}", http.Header{"Authorization": {"Bearer \x00\xff"}}, 401},
		{"in a signature", signed, "{}", http.Header{"X-Hub-Signature-256": {"sha256=\x00\xff"}}, 401},
		{"in a timestamped signature", signed, "{}", http.Header{"X-Rouse-Signature": {"\xff"}, "X-Rouse-Timestamp": {"\x00"}}, 401},
		{"in a signature of Standard Webhooks", signed, "{}", http.Header{"Webhook-Signature": {"v1,\xff"}, "Webhook-Id": {"\x00"}, "Webhook-Timestamp": {"\xff"}}, 401},
	} {
		r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, c.path, strings.NewReader(c.body))
		for name, values := range c.header {
			r.Header[name] = values
		}
		answer := httptest.NewRecorder()
		mux.ServeHTTP(answer, r)
		if answer.Code != c.want || log.Len() > 0 {
			t.Errorf("%s: %d %s, want %d; the log says %s", c.name, answer.Code, answer.Body, c.want, log.String())
		}
		log.Reset()
	}
}

// A body of 100 KB that a template names is more than a task's description holds.
func TestALongBodyMakesATaskThatIsCut(t *testing.T) {
	w := newWorld(t)
	h := w.hook(domain.SigningModeNone, "", func(r *store.CreateRoutine) {
		r.TaskTemplate = &domain.TaskTemplate{Title: "{{title}}", Description: "{{payload}}{{payload}}"}
	})
	body := `{"title":"","text":"` + strings.Repeat("é", 50_000) + `"}`
	status, a := w.post(h.path, body, nil)
	if status != 202 || a.Disposition != string(domain.RoutineRunStatusTaskCreated) {
		t.Fatalf("%d %+v", status, a)
	}
	if n := w.count(`SELECT count(*) FROM tasks t JOIN routines r ON t.title = r.name WHERE octet_length(t.description) <= 65536 AND t.description LIKE '%makes it longer]'`); n != 1 {
		t.Errorf("%d tasks have the routine's name and a description that was cut", n)
	}
}
