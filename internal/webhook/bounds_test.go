package webhook

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

func TestSlowBodiesOfOneWebhookLeaveRoomForAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPlaces()
		gone, leave := context.WithCancel(t.Context())
		var frees []func()
		for range bodiesEach {
			free, err := p.take(t.Context(), "slow")
			if err != nil {
				t.Fatal(err)
			}
			frees = append(frees, free)
		}
		waited := make(chan error)
		go func() { _, err := p.take(gone, "slow"); waited <- err }()
		synctest.Wait()
		free, err := p.take(t.Context(), "another")
		if err != nil {
			t.Fatal(err)
		}
		free()
		leave()
		if err := <-waited; err == nil {
			t.Error("one more than its share is read")
		}
		for i := range bodiesMost - bodiesEach {
			if _, err := p.take(t.Context(), xid.ID(strings.Repeat("x", 1+i/bodiesEach))); err != nil {
				t.Fatal(err)
			}
		}
		late := make(chan error)
		go func() { _, err := p.take(t.Context(), "late"); late <- err }()
		synctest.Wait()
		frees[0]()
		if err := <-late; err != nil {
			t.Error(err)
		}
		for _, free := range frees[1:] {
			free()
		}
	})
}

// What a trigger refuses for its rate is refused without the database for a second, whatever is sent.
func TestAWebhookOverItsRateAsksTheDatabaseOnceASecond(t *testing.T) {
	w := newWorld(t)
	h := New(w.store.Routines, w.box, nil, slog.New(slog.DiscardHandler))
	h.accepted.length, h.rejected.length = time.Hour, time.Hour // the test may be slow
	mux := http.NewServeMux()
	mux.Handle(Path, h)
	post := func(hook hook, header http.Header) int {
		r := httptest.NewRequest(http.MethodPost, hook.path, strings.NewReader("{}"))
		for name, values := range header {
			r.Header[name] = values
		}
		out := httptest.NewRecorder()
		mux.ServeHTTP(out, r)
		return out.Code
	}
	const secret = "0123456789abcdef"
	good := http.Header{"Authorization": {"Bearer " + secret}}
	hook := w.hook(domain.SigningModeBearer, secret, nil)
	for _, tt := range []struct {
		header http.Header
		status int
	}{{nil, http.StatusUnauthorized}, {good, http.StatusAccepted}} {
		for range domain.WebhookRateLimit {
			if status := post(hook, tt.header); status != tt.status {
				t.Fatalf("status %d, want %d", status, tt.status)
			}
		}
		if status := post(hook, tt.header); status != http.StatusTooManyRequests {
			t.Fatalf("one more than the rate is answered with %d", status)
		}
	}
	w.sql(`ALTER TABLE webhook_deliveries RENAME TO not_to_be_read`)
	for range 50 {
		for _, header := range []http.Header{nil, good} {
			if status := post(hook, header); status != http.StatusTooManyRequests {
				t.Fatalf("the database was asked: %d", status)
			}
		}
	}
	h.accepted, h.rejected = rests{}, rests{}
	if status := post(hook, nil); status != http.StatusServiceUnavailable {
		t.Errorf("and is not asked after the rest: %d", status)
	}
}

func TestACompressedBodyIsRefused(t *testing.T) {
	w := newWorld(t)
	hook := w.hook(domain.SigningModeNone, "", nil)
	for coding, want := range map[string]int{"gzip": http.StatusUnsupportedMediaType, "identity": http.StatusAccepted} {
		if status, a := w.post(hook.path, `{"branch":"main"}`, http.Header{"Content-Encoding": {coding}}); status != want {
			t.Errorf("%s: %d %+v", coding, status, a)
		}
	}
}

func TestATriggerRestsForASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := rests{length: restFor}
		if r.on("a") {
			t.Error("it rests before it was over its rate")
		}
		r.begin("a")
		if !r.on("a") || r.on("b") {
			t.Error("one rests, not another")
		}
		time.Sleep(restFor)
		if r.on("a") || len(r.until) != 0 {
			t.Error("it rests for ever")
		}
		for i := range 3 * restsMost {
			r.begin(xid.ID(time.Duration(i).String()))
		}
		if len(r.until) > restsMost {
			t.Errorf("%d are remembered", len(r.until))
		}
	})
}
