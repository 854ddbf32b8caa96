package main

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"

	"rouse.dev/rouse/internal/pgtest"
)

// serviceVariable makes the test program an agent service, whose secret it holds.
const serviceVariable = "ROUSE_TEST_SERVICE_SECRET"

// serveAgent is an agent service in a process of its own. It prints its address, and ends with its input.
func serveAgent(secret string) int {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	fmt.Println("http://" + listener.Addr().String())
	var served sync.Map // session to the runs that it served
	server := &http.Server{ReadHeaderTimeout: patience, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		mac := hmac.New(sha256.New, []byte(secret))
		_, _ = fmt.Fprintf(mac, "%s.%s", r.Header.Get("X-Rouse-Timestamp"), body) // a hash takes everything
		var lease serviceLease
		switch {
		case err != nil || json.Unmarshal(body, &lease) != nil:
			http.Error(w, "no lease", http.StatusBadRequest)
		case r.Header.Get("X-Rouse-Signature") != "sha256="+hex.EncodeToString(mac.Sum(nil)):
			http.Error(w, "bad signature", http.StatusForbidden)
		case r.URL.Path == "/remote": // the test reports
			fmt.Println("called " + string(body))
			w.WriteHeader(http.StatusAccepted)
		case r.URL.Path == "/sessions":
			lease.remember(w, &served)
		case r.URL.Path == "/later":
			w.WriteHeader(http.StatusAccepted)
			go lease.work()
		default:
			_ = json.NewEncoder(w).Encode(map[string]any{ // whoever asked may be gone
				"summary":    fmt.Sprintf("attempt %d with a token: %v, key %s", lease.Attempt, strings.HasPrefix(lease.LeaseToken, "rsr_"), r.Header.Get("X-Key")),
				"session_id": "far-away", "usage": map[string]any{"input_tokens": 11},
			})
		}
	})}
	go func() { _ = server.Serve(listener) }() // the process ends with its input
	_, _ = io.Copy(io.Discard, os.Stdin)
	return 0
}

// serviceLease is what the service is given.
type serviceLease struct {
	RunID, LeaseToken, Prompt, ResumeSessionID, FullPrompt string
	Attempt                                                int
	Environment                                            map[string]string
}

// remember answers in the session to resume, or in a new one when that has served two runs.
func (l serviceLease) remember(w http.ResponseWriter, served *sync.Map) {
	session, prompt := l.ResumeSessionID, l.Prompt
	if n, known := served.Load(session); !known || n == 2 {
		session, prompt = "s-"+l.RunID, cmp.Or(l.FullPrompt, l.Prompt)
	}
	n, _ := served.LoadOrStore(session, 0)
	served.Store(session, n.(int)+1)
	kind := "delta"
	if strings.Contains(prompt, aboutItself) {
		kind = "full"
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"summary": kind + " prompt in " + session, "session_id": session}) // whoever asked may be gone
}

// work reports to the API, as an agent that takes its time.
func (l serviceLease) work() {
	l.report(`mutation($lease: RunLeaseInput!) { r: reportRunProgress(input: {lease: $lease, firstSequence: 1, lines: [{text: "from far away"}]}) { acceptedThrough } }`, l)
	l.succeed("done later", l)
}

func (l serviceLease) succeed(summary string, as serviceLease) string {
	return l.report(`mutation($lease: RunLeaseInput!) { r: reportRunSucceeded(input: {lease: $lease, result: {summary: "`+summary+`"}, usage: {inputTokens: 5}}) { run { id } userErrors { code } } }`, as)
}

// report sends one report for a lease to the API that this one names, and returns the answer.
func (l serviceLease) report(query string, as serviceLease) string {
	lease := map[string]any{"runId": as.RunID, "attempt": as.Attempt, "leaseToken": as.LeaseToken}
	body, err := json.Marshal(map[string]any{"query": query, "variables": map[string]any{"lease": lease}})
	if err != nil {
		return err.Error()
	}
	request, err := http.NewRequest(http.MethodPost, l.Environment["ROUSE_API_URL"], bytes.NewReader(body))
	if err != nil {
		return err.Error()
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Authorization", "Bearer "+as.LeaseToken)
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err.Error()
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close() // it was only read
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// startService starts an agent service and returns its address.
func startService(t *testing.T, secret string) string {
	t.Helper()
	url, _ := startRemote(t, secret)
	return url
}

// startRemote is startService whose calls of /remote are passed on, so that the test reports in its stead.
func startRemote(t *testing.T, secret string) (url string, calls <-chan serviceLease) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), serviceVariable+"="+secret)
	cmd.Stderr = os.Stderr
	stdin, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	lines.Buffer(nil, 1<<20)
	if !lines.Scan() {
		t.Fatalf("the service: %v", lines.Err())
	}
	url = strings.TrimSpace(lines.Text())
	called, done := make(chan serviceLease, 100), make(chan struct{})
	go func() {
		defer close(done)
		for lines.Scan() {
			var l serviceLease
			if json.Unmarshal([]byte(strings.TrimPrefix(lines.Text(), "called ")), &l) == nil {
				called <- l
			}
		}
	}()
	t.Cleanup(func() {
		_ = stdin.Close() // which ends it
		<-done
		if err := cmd.Wait(); err != nil {
			t.Errorf("the service: %v", err)
		}
	})
	return url, called
}

// TestAgentService runs an agent that is a service in another process.
func TestAgentService(t *testing.T) {
	t.Parallel()
	const secret = "a secret of the service"
	url := startService(t, secret)
	service := func(path, secret string) map[string]any {
		return map[string]any{"http": map[string]any{"url": url + path, "secret": secret,
			"headers": []any{map[string]any{"name": "X-Key", "value": "hunter2hunter2"}}}}
	}
	j := newJourney(start(t, pgtest.Installed(t), nil, "--http-allow", "127.0.0.0/8", "--drain", "1s"))

	view := j.end(j.wake(j.agent("service", service("/run", secret))))
	if view.Status != "FINISHED" || view.Summary != "attempt 1 with a token: true, key ***" || view.SessionID != "far-away" {
		t.Errorf("%+v", view)
	}

	view = j.end(j.wake(j.agent("wrong secret", service("/run", "another secret, too long"))))
	if view.Status != "FAILED" || !strings.Contains(view.Attempts[0].Error.Message, "403 Forbidden: bad signature") {
		t.Errorf("%+v", view)
	}

	view = j.end(j.wake(j.agent("later", service("/later", secret))))
	if view.Status != "FINISHED" || view.Summary != "done later" || view.attempts() != "SUCCEEDED" || !slices.Equal(view.lines(), []string{"from far away"}) {
		t.Errorf("%+v", view)
	}
}

// TestAgentServiceOnAnAddressThatIsNotAllowed is refused before anything is sent.
func TestAgentServiceOnAnAddressThatIsNotAllowed(t *testing.T) {
	t.Parallel()
	j := newJourney(start(t, pgtest.Installed(t), nil, "--drain", "1s"))
	run := j.wake(j.agent("inside", map[string]any{"http": map[string]any{"url": "http://localhost:9/", "timeout": "PT30S"}}))
	eventually(t, "the run waits for its retry", patience, func() bool { return j.run(run).RetryCount == 1 })
	if view := j.run(run); view.Attempts[0].Error.Code != "LAUNCH" || !strings.Contains(view.Attempts[0].Error.Message, "--http-allow") {
		t.Errorf("%+v", view)
	}
}
