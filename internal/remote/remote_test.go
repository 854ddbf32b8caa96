//go:build unix

package remote

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/secret"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

func TestLengthsOfTime(t *testing.T) {
	for text, want := range map[string]time.Duration{
		"PT0S": 0, "PT60S": time.Minute, "PT30M": 30 * time.Minute, "PT1H30M": 90 * time.Minute, "P1D": 24 * time.Hour,
		"PT0.25S": 250 * time.Millisecond, "P1DT2H3M4.5S": 26*time.Hour + 3*time.Minute + 4500*time.Millisecond,
	} {
		if got, err := parseDuration(text); err != nil || got != want {
			t.Errorf("%s is %s, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "P", "60", "-PT1S", "PT1X", "P1Y"} {
		if got, err := parseDuration(text); err == nil {
			t.Errorf("%q is %s", text, got)
		}
	}
}

func FuzzParseDuration(f *testing.F) {
	f.Add("P1DT2H3M4.5S")
	f.Add("PT")
	f.Fuzz(func(t *testing.T, text string) {
		if d, err := parseDuration(text); err == nil && (d < 0 || !strings.HasPrefix(text, "P")) {
			t.Errorf("%q is %s", text, d)
		}
	})
}

func TestWhatTheServerAnswersIsTold(t *testing.T) {
	for name, c := range map[string]struct {
		status  int
		body    string
		passing bool
		refused bool
	}{
		"data":                                     {200, `{"data":{"x":1}}`, false, false},
		"a gateway whose server is away":           {502, `<html>`, true, false},
		"a server that has trouble":                {200, `{"errors":[{"message":"m","extensions":{"code":"INTERNAL"}}]}`, true, false},
		"a server that is busy":                    {503, `{"errors":[{"message":"m","extensions":{"code":"UNAVAILABLE"}}]}`, true, false},
		"a token that is not known":                {401, `{"errors":[{"message":"m","extensions":{"code":"UNAUTHENTICATED"}}]}`, false, true},
		"something else that listens at this port": {200, `hello`, false, true},
	} {
		err := decodeAnswer(c.status, []byte(c.body), &struct{ X int }{})
		_, passing := errors.AsType[net.Error](err)
		_, refused := errors.AsType[*Refused](err)
		if passing != c.passing || refused != c.refused || (err == nil) == (c.passing || c.refused) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := (userErrors{{Code: "STALE_LEASE"}}).err(); !errors.Is(err, store.ErrFenced) {
		t.Errorf("a stale lease is %v", err)
	}
}

func TestAnAddressOfAServer(t *testing.T) {
	for address, want := range map[string]string{
		"http://127.0.0.1:8080": "http://127.0.0.1:8080/graphql", "https://rouse.example.org/": "https://rouse.example.org/graphql",
		"https://example.org/rouse/graphql": "https://example.org/rouse/graphql", "127.0.0.1:8080": "", "ftp://x": "", "": "",
	} {
		c, err := NewClient(address, secret.String{})
		if (err == nil) != (want != "") || err == nil && c.endpoint != want {
			t.Errorf("%q: %v", address, err)
		}
	}
}

func TestAResultFitsIntoARequest(t *testing.T) {
	small := map[string]any{"summary": "s", "n": 1}
	if got := fitting(small); got["n"] != 1 {
		t.Errorf("a small result became %v", got)
	}
	got := fitting(map[string]any{"summary": strings.Repeat("s", 1<<20), "session_id": "s-1", "rest": strings.Repeat("r", 1<<20)})
	encoded, err := json.Marshal(got)
	if err != nil || len(encoded) > maxResult || got["session_id"] != "s-1" || got["rest"] != nil || !strings.Contains(got["summary"].(string), "cut") {
		t.Errorf("%d bytes, %v", len(encoded), err)
	}
	if got := fitting(map[string]any{"rest": strings.Repeat("r", 1<<20)}); domain.ResultSummary(got) == "" {
		t.Errorf("a long result without a summary became %v", got)
	}
}

func TestUseIsToldAsTheAPIWantsIt(t *testing.T) {
	if got := usageInput(&store.Usage{InputTokens: 3, CostUSD: "0.0123456789"}); got["costUsd"] != "0.012346" || got["inputTokens"] != int64(3) {
		t.Errorf("got %v", got)
	}
	for _, c := range []struct {
		name   string
		said   store.Usage
		tokens int64
		cost   string
		told   bool // that something could not be read
		unread bool // the cost
	}{
		{"the most tokens", store.Usage{InputTokens: 1<<31 - 1, OutputTokens: 1<<31 - 1, CostUSD: "1"}, 1<<31 - 1, "1", false, false},
		{"more than an Int of the API has", store.Usage{InputTokens: 1 << 31, OutputTokens: 1 << 62, CostUSD: "1"}, 1<<31 - 1, "1", true, false},
		{"fewer than none", store.Usage{InputTokens: -1, OutputTokens: -1 << 62, CostUSD: "-1"}, 0, "0", true, true},
		{"a cost that rounds to ten digits", store.Usage{CostUSD: "999999999.9999999"}, 0, "999999999.999999", false, false},
		{"the highest cost", store.Usage{CostUSD: "999999999.99"}, 0, "999999999.99", false, false},
		{"a cost that is none", store.Usage{CostUSD: "NaN"}, 0, "0", true, true},
		{"a cost that the executor could not read", store.Usage{CostUnread: true, Unread: "cost is no number"}, 0, "0", true, true},
		{"a cost that is unknown", store.Usage{}, 0, "0", false, false},
	} {
		got := usageInput(&c.said)
		_, told := got["unread"]
		if got["inputTokens"] != c.tokens || got["outputTokens"] != c.tokens || got["costUsd"] != c.cost || told != c.told || (got["costUnread"] == true) != c.unread {
			t.Errorf("%s: %v", c.name, got)
		}
	}
	if usageInput(nil) != nil {
		t.Error("nothing said became something")
	}
}

// api is a server that keeps what it was sent.
func api(t *testing.T, answer string) (*Store, *[]string) {
	t.Helper()
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		got = append(got, string(body))
		if r.Header.Get("Authorization") != "Bearer rse_secret" {
			t.Errorf("called with %q", r.Header)
		}
		if _, err := fmt.Fprint(w, answer); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	c, err := NewClient(server.URL, secret.NewString("rse_secret"))
	if err != nil {
		t.Fatal(err)
	}
	j, err := openJournal(filepath.Join(t.TempDir(), "live"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = j.close() })
	return &Store{client: c, self: "wrk_1", journal: j, held: map[store.Attempt]*lease{}}, &got
}

func TestLongOutputIsSentInParts(t *testing.T) {
	s, got := api(t, `{"data":{"answer":{"userErrors":[]}}}`)
	var lines []store.LogLine
	for i := range 60 {
		lines = append(lines, store.LogLine{Seq: int64(i + 1), Stream: domain.LogStreamStdout, Text: strings.Repeat("\x01", 8<<10), At: time.Now()})
	}
	if err := s.AppendLog(context.Background(), store.Attempt{RunID: "run_1", Number: 1}, lines); err != nil {
		t.Fatal(err)
	}
	sent := 0
	for _, body := range *got {
		if len(body) > 256<<10 {
			t.Errorf("a request of %d bytes", len(body))
		}
		if want := fmt.Sprintf(`"firstSequence":%d,`, sent+1); !strings.Contains(body, want) {
			t.Errorf("%s is missing", want)
		}
		sent += strings.Count(body, `"stream"`)
	}
	if sent != 60 {
		t.Errorf("%d lines were sent", sent)
	}
}

func TestALostLeaseIsFencedAndTheOthersAreNot(t *testing.T) {
	s, _ := api(t, `{"data":{"a0":{"expiresAt":"2026-01-01T00:00:00Z","cancelRequested":true,"userErrors":[]},
		"a1":{"expiresAt":null,"cancelRequested":false,"userErrors":[{"code":"STALE_LEASE","message":"m"}]}}}`)
	states, err := s.Heartbeat(context.Background(), []store.Attempt{{RunID: "run_1", Number: 1}, {RunID: "run_2", Number: 3}}, 0)
	if err != nil || len(states) != 2 || states[0].Lost || !states[0].CancelRequested || !states[1].Lost {
		t.Errorf("%+v, %v", states, err)
	}
}

func TestOneWorkerUsesAFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "live")
	first, err := openJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := openJournal(dir); err == nil || !strings.Contains(err.Error(), "another worker uses the folder") {
		t.Errorf("a second worker: %v", err)
	}
	a := store.Attempt{RunID: xid.New("run"), Number: 1}
	if err := errors.Join(first.note(a, store.ProcessGroup{Host: "elsewhere", BootID: "x", PGID: 99}), first.close()); err != nil {
		t.Fatal(err)
	}
	next, err := openJournal(dir)
	if err != nil {
		t.Fatal(err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.json")); len(left) != 0 {
		t.Errorf("%v is left", left)
	}
	if err := next.close(); err != nil {
		t.Error(err)
	}
}

// FuzzDecodeAnswer: whatever answers, the worker knows whether to try again, to give up, or what it was told.
func FuzzDecodeAnswer(f *testing.F) {
	for _, text := range []string{"", "{}", `{"data": {"x": 1}}`, `{"data": null}`, `{"errors": [{"message": "no", "extensions": {"code": "UNAVAILABLE"}}]}`, `{"errors": [{}]}`, "<html>"} {
		f.Add(200, []byte(text))
		f.Add(502, []byte(text))
	}
	f.Fuzz(func(t *testing.T, status int, text []byte) {
		var out struct{ X *int }
		err := decodeAnswer(status, text, &out)
		var a answer
		refused, later := new(Refused), new(unavailable)
		switch {
		case json.Unmarshal(text, &a) != nil || len(a.Errors) > 0:
			if !errors.As(err, &refused) && !errors.As(err, &later) {
				t.Errorf("%d %q gives %v", status, text, err)
			}
		case err != nil && json.Unmarshal(a.Data, &out) == nil:
			t.Errorf("%d %q gives %v", status, text, err)
		}
	})
}

// A server of an earlier release refuses words that it does not know. It gets the report without them, so that the end of the run is
// not lost.
func TestAReportToAServerThatIsOlder(t *testing.T) {
	more := map[string]any{"message": "no", "code": domain.RunErrorCodeAuth, "permanent": true, "evidence": "x", "retryAfter": "PT1S",
		"usage": usageInput(&store.Usage{InputTokens: 3, CostUSD: "1", SessionTokens: true, SessionCost: true})}
	for message, want := range map[string]bool{
		`Field "sessionTokens" is not defined by type "RunUsageInput".`:   true,
		`Value "AUTH" does not exist in "RunErrorCode" enum.`:             true,
		`Field "evidence" is not defined by type "ReportRunFailedInput".`: true,
		"the token may not report":                                        false,
	} {
		older, refused := forOlder(more, &Refused{Message: message})
		if refused != want {
			t.Errorf("%s: %t", message, refused)
		}
		if !want {
			continue
		}
		expected := map[string]any{"message": "no", "code": domain.RunErrorCodeOther, "permanent": true, "usage": map[string]any{"inputTokens": int64(3), "outputTokens": int64(0), "costUsd": "1"}}
		if !reflect.DeepEqual(older, expected) {
			t.Errorf("%s: %v, want %v", message, older, expected)
		}
	}
	if usage := more["usage"].(map[string]any); usage["sessionTokens"] != true || usage["sessionCost"] != true {
		t.Errorf("the report of a newer server lacks %v", usage)
	}
	if _, refused := forOlder(more, errors.New("evidence")); refused {
		t.Error("a connection that broke is taken for a refusal")
	}
}
