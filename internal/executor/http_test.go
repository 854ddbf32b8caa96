//go:build unix

package executor

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/outbound"
)

var loopback = outbound.Addresses{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// service is an agent service of a test.
func service(t *testing.T, answer http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	return server.URL
}

func callOf(url string) Request {
	return Request{RunID: "run_1", AgentID: "agt_1", WorkspaceID: "wsp_1", Attempt: 2, Prompt: "the prompt",
		Environment: []Variable{{"ROUSE_RUN_TOKEN", "rsr_secret"}, {"ROUSE_RUN_ID", "run_1"}},
		Spec:        domain.ExecutorSpec{HTTP: &domain.HTTPSpec{URL: url, Timeout: time.Minute}}}
}

func write(status int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

func TestTheLeaseIsPostedAndSigned(t *testing.T) {
	var body []byte
	var header http.Header
	url := service(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ = io.ReadAll(r.Body)
		header = r.Header
		write(200, `{"summary":"made it","session_id":"s1","usage":{"input_tokens":5,"output_tokens":1,"cost_usd":0.5}}`)(w, r)
	})
	req := callOf(url)
	req.ResumeSessionID, req.FullPrompt, req.Secret = "s0", "all of it", "topsecret"
	req.Headers = []Variable{{"Authorization", "Bearer x"}}
	h, sink := NewHTTP(loopback), &recorder{}
	h.now = func() time.Time { return time.Unix(1_700_000_000, 0) }
	result, err := h.Run(t.Context(), req, sink)
	if err != nil {
		t.Fatal(err)
	}
	type answer struct {
		summary, session, cost     any
		resumable, launched, fresh bool
	}
	got := answer{result.Object["summary"], result.SessionID, result.Usage.CostUSD, result.Resumable, result.Launched, result.Fresh}
	if want := (answer{"made it", "s1", "0.5", true, true, true}); got != want {
		t.Errorf("answered %+v, want %+v", got, want)
	}
	if !slices.Equal(sink.sessions, []string{"s0", "s1"}) {
		t.Errorf("sessions %v", sink.sessions)
	}
	var sent map[string]any
	if err := json.Unmarshal(body, &sent); err != nil {
		t.Fatal(err)
	}
	environment, _ := sent["environment"].(map[string]any)
	if sent["runId"] != "run_1" || sent["attempt"] != 2.0 || sent["leaseToken"] != "rsr_secret" || sent["prompt"] != "the prompt" ||
		sent["resumeSessionId"] != "s0" || sent["fullPrompt"] != "all of it" || sent["taskId"] != nil || environment["ROUSE_RUN_ID"] != "run_1" {
		t.Errorf("sent %s", body)
	}
	if header.Get("Authorization") != "Bearer x" || header.Get("X-Rouse-Timestamp") != "1700000000" ||
		header.Get("X-Rouse-Signature") != "sha256="+sign("topsecret", "1700000000", body) {
		t.Errorf("headers %v", header)
	}
}

func TestARedirectToAPrivateAddressIsNotFollowed(t *testing.T) {
	var reached atomic.Bool
	inner := service(t, func(http.ResponseWriter, *http.Request) { reached.Store(true) })
	outer := service(t, func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, inner, http.StatusTemporaryRedirect) })
	if _, err := NewHTTP(loopback).Run(t.Context(), callOf(outer), &recorder{}); err == nil || reached.Load() {
		t.Errorf("got %v, reached %v", err, reached.Load())
	}
}

func TestTheAddressThatIsDialledIsJudged(t *testing.T) {
	url := service(t, write(200, "{}"))
	_, port, err := net.SplitHostPort(strings.TrimPrefix(url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	for _, address := range []string{url, "http://localhost:" + port} {
		result, err := NewHTTP(nil).Run(t.Context(), callOf(address), &recorder{})
		if failure := failureOf(t, err); failure.Code != domain.RunErrorCodeLaunch || !strings.Contains(failure.Message, "--http-allow") || result.Launched {
			t.Errorf("%s: got %+v", address, failure)
		}
	}
}

func TestOnlyAConnectionThatCouldNotBeMadeIsTriedAgain(t *testing.T) {
	// Nobody listens at first.
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	if err := listener.Close(); err != nil {
		t.Fatal(err)
	}
	var calls atomic.Int32
	server := &http.Server{Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { calls.Add(1); write(200, `{"summary":"late"}`)(w, r) })}
	t.Cleanup(func() { _ = server.Close() })
	h, sink := NewHTTP(loopback), &recorder{}
	tries := 0
	h.pause = func(context.Context, time.Duration) { // a try has failed
		if tries++; tries < 2 {
			return
		}
		again, err := net.Listen("tcp", address)
		if err != nil {
			t.Error(err)
			return
		}
		go func() { _ = server.Serve(again) }() // Close ends it
	}
	result, err := h.Run(t.Context(), callOf("http://"+address), sink)
	if err != nil || result.Object["summary"] != "late" || calls.Load() != 1 {
		t.Fatalf("got %+v, %v after %d calls", result, err, calls.Load())
	}
	if !strings.Contains(sink.text(), "tried again") {
		t.Errorf("the log is %q", sink.text())
	}
	// A connection that breaks after the request was sent is not.
	calls.Store(0)
	url := service(t, func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		_, _ = io.Copy(io.Discard, r.Body)
		conn, _, err := w.(http.Hijacker).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		_ = conn.Close()
	})
	result, err = NewHTTP(loopback).Run(t.Context(), callOf(url), &recorder{})
	if failure := failureOf(t, err); calls.Load() != 1 || failure.Code != domain.RunErrorCodeCrash || !result.Launched {
		t.Errorf("got %+v after %d calls", failure, calls.Load())
	}
}

func TestARequestThatWasWrittenHasLaunchedHoweverSoonItBreaks(t *testing.T) {
	for range 100 { // both have come when they are looked at
		wrote, replies, launched := make(chan struct{}, 1), make(chan reply, 1), false
		wrote <- struct{}{}
		replies <- reply{err: io.EOF}
		if r := awaitReply(wrote, replies, func() { launched = true }); r.err == nil || !launched {
			t.Fatalf("launched: %v, error %v", launched, r.err)
		}
	}
}

func TestAnAcceptedRunIsLeftToItsService(t *testing.T) {
	url := service(t, write(202, `{"session_id":"far","summary":"not yet"}`))
	req, sink := callOf(url), &recorder{}
	grace := 7 * time.Second
	req.Spec.HTTP.Grace = &grace
	result, err := NewHTTP(loopback).Run(t.Context(), req, sink)
	if err != nil || result.Accepted == nil {
		t.Fatalf("it was not accepted: %+v, %v", result, err)
	}
	if result.SessionID != "far" || !result.Resumable {
		t.Errorf("its session is %q, resumable %t", result.SessionID, result.Resumable)
	}
	if result.Object != nil || len(sink.lines) > 0 {
		t.Errorf("there is a result before the report: %v, %v", result.Object, sink.lines)
	}
	if a := result.Accepted; a.Time != time.Minute || a.Grace != grace || a.Left > a.Time || a.Left < a.Time/2 {
		t.Errorf("it has %+v", a)
	}
}

func TestAServiceThatDoesNotAnswerInTimeHasTimedOut(t *testing.T) {
	left := make(chan struct{})
	url := service(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		<-r.Context().Done()
		close(left)
	})
	req := callOf(url)
	req.Spec.HTTP.Timeout = 200 * time.Millisecond
	_, err := NewHTTP(loopback).Run(t.Context(), req, &recorder{})
	if failure := failureOf(t, err); failure.Code != domain.RunErrorCodeTimeout {
		t.Errorf("got %+v", failure)
	}
	<-left
}

func TestACancelEndsTheCall(t *testing.T) {
	asked, left := errors.New("somebody asked"), make(chan struct{})
	ctx, cancel := context.WithCancelCause(t.Context())
	url := service(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		cancel(asked)
		<-r.Context().Done()
		close(left)
	})
	_, err := NewHTTP(loopback).Run(ctx, callOf(url), &recorder{})
	if !errors.Is(err, asked) {
		t.Fatalf("got %v", err)
	}
	<-left
}

func TestSecretsOfAServiceAreMasked(t *testing.T) {
	req := callOf(service(t, func(w http.ResponseWriter, r *http.Request) {
		write(500, "bad key "+r.Header.Get("Authorization"))(w, r)
	}))
	req.Headers, req.Mask = []Variable{{"Authorization", "hunter2"}}, func(s string) string { return strings.ReplaceAll(s, "hunter2", "***") }
	_, err := NewHTTP(loopback).Run(t.Context(), req, &recorder{})
	if failure := failureOf(t, err); !strings.Contains(failure.Message, "bad key ***") {
		t.Errorf("got %+v", failure)
	}
}

func TestEncryptionIsKnownWhereTheAddressIsJudged(t *testing.T) {
	server := httptest.NewTLSServer(write(200, `{"summary":"made it"}`))
	t.Cleanup(server.Close)
	plain := service(t, write(200, `{"summary":"made it"}`))
	for url, want := range map[string]bool{server.URL: true, plain: false} {
		h := NewHTTP(loopback)
		transport := h.client.Transport.(*http.Transport)
		transport.TLSClientConfig = server.Client().Transport.(*http.Transport).TLSClientConfig
		dialled := 0
		dial := transport.DialContext
		transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
			dialled++
			if outbound.IsEncrypted(ctx) != want {
				t.Errorf("%s is judged as encrypted: %v", url, !want)
			}
			return dial(ctx, network, address)
		}
		if result, err := h.Run(t.Context(), callOf(url), &recorder{}); err != nil || result.Object["summary"] != "made it" || dialled != 1 {
			t.Errorf("%s: got %+v, %v after %d connections", url, result, err, dialled)
		}
	}
	_, err := NewHTTP(loopback).Run(t.Context(), callOf(server.URL), &recorder{})
	if failure := failureOf(t, err); failure.Code != domain.RunErrorCodeLaunch || !strings.Contains(failure.Message, "certificate") {
		t.Errorf("a certificate that nobody knows: %+v", failure)
	}
}
