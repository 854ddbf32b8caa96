package telemetry

import (
	"bytes"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.opentelemetry.io/otel"

	"rouse.dev/rouse/internal/store"
)

// A collector that is away is told of once, and once that it is back, however many batches it did not take; and each line
// is one of the log.
func TestAnOutageOfTheCollectorIsToldOnceAndInTheLog(t *testing.T) {
	var away atomic.Bool
	collector := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if away.Load() {
			w.WriteHeader(http.StatusBadRequest) // which is not tried again
		}
	}))
	defer collector.Close()
	t.Setenv(endpointVariable, collector.URL)
	var text bytes.Buffer
	log := slog.New(slog.NewJSONHandler(&text, nil))
	traces, err := Start(t.Context(), "v1", log)
	if err != nil {
		t.Fatal(err)
	}
	send := func() {
		t.Helper()
		at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
		traces.Trace(store.Span{Name: "cause", CausationID: "cau_1", ID: "cau_1", Began: at, Ended: at})
		if err := traces.provider.ForceFlush(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	send()
	away.Store(true)
	send()
	send()
	send()
	away.Store(false)
	send()
	otel.Handle(errors.New("a word of the library"))
	otel.Handle(errors.New("a word of the library"))
	if err := traces.Stop(t.Context()); err != nil {
		t.Fatal(err)
	}
	var said []string
	for line := range strings.SplitSeq(strings.TrimSpace(text.String()), "\n") {
		var entry struct {
			Msg  string
			Lost int `json:"lost_spans"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Errorf("no line of the log: %s", line)
		}
		if entry.Msg == "traces are sent again" && entry.Lost != 3 {
			t.Errorf("%d spans are said to be lost, want 3", entry.Lost)
		}
		said = append(said, entry.Msg)
	}
	want := "traces are lost: the collector does not take them; runs go on, and it is told when it does again, traces are sent again, a complaint of OpenTelemetry"
	if got := strings.Join(said, ", "); got != want {
		t.Errorf("the log says\n%s\nwant\n%s", got, want)
	}
}
