//go:build unix

package executor

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"crypto/tls"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"strconv"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// Bounds of a call of an agent service.
const (
	httpTries       = 4                      // connections that are tried before the request was sent
	httpPause       = 500 * time.Millisecond // before the second try; it doubles
	httpConnect     = 10 * time.Second       // for one connection, TLS included
	httpHeaderBytes = 64 << 10               // of the answer
	httpErrorBytes  = 2 << 10                // of an answer that is an error, for the message
)

// ErrReported is the cause of the failure of an attempt whose end the agent reported to the API itself: there is nothing
// left to report.
var ErrReported = errors.New("the agent has reported the end of the run itself")

// HTTP runs an agent that is a service elsewhere: one POST with the run's lease, answered with the result, or with 202 and
// reports through the API later (SPEC S7.1).
type HTTP struct {
	allow  Addresses
	client *http.Client
	now    func() time.Time
	pause  func(context.Context, time.Duration) // before a connection is tried again
}

// NewHTTP makes the executor. Other addresses than public ones are called only where allow has them.
func NewHTTP(allow Addresses) *HTTP {
	transport := &http.Transport{
		DialContext:            allow.dial,
		TLSHandshakeTimeout:    httpConnect,
		MaxResponseHeaderBytes: httpHeaderBytes,
		DisableKeepAlives:      true, // a request is never sent again on another connection behind our back
		DisableCompression:     true, // what is read is what is bounded
		ForceAttemptHTTP2:      true,
		Proxy:                  nil, // a proxy would dial addresses that nobody checks
	}
	return &HTTP{allow: allow, now: time.Now, pause: pause, client: &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}
}

// lease is the body of the POST. Its first three members go back with each report, as the API's RunLeaseInput.
type lease struct {
	RunID           xid.ID            `json:"runId"`
	Attempt         int               `json:"attempt"`
	LeaseToken      string            `json:"leaseToken"`
	AgentID         xid.ID            `json:"agentId"`
	WorkspaceID     xid.ID            `json:"workspaceId"`
	TaskID          *xid.ID           `json:"taskId"`
	Prompt          string            `json:"prompt"`
	ResumeSessionID *string           `json:"resumeSessionId"`
	FullPrompt      *string           `json:"fullPrompt"` // for a new session, should that one be gone
	Environment     map[string]string `json:"environment"`
	Test            bool              `json:"test,omitempty"` // there is no such run; whatever is answered is not kept
}

// Run calls the service and returns when it has answered, or, after a 202, when the run was ended through the API or the
// time is up. Only a connection that could not be made is tried again.
func (h *HTTP) Run(ctx context.Context, req Request, sink Sink) (Result, error) {
	if ctx.Err() != nil {
		return Result{ExitCode: -1}, endedFromOutside(ctx)
	}
	if req.Spec.HTTP == nil {
		return Result{ExitCode: -1}, permanentLaunch("the executor is not an agent service: set url")
	}
	result, failure := h.run(ctx, req, sink)
	if failure != nil {
		failure.Message = req.told(failure.Message)
		return result, failure
	}
	return result, nil
}

func (h *HTTP) run(ctx context.Context, req Request, sink Sink) (Result, *Failure) {
	c := &httpCall{req: req, sink: sink, out: newOutput(req, sink), result: Result{ExitCode: -1}}
	body, err := json.Marshal(leaseOf(req))
	if err != nil {
		return c.result, permanentLaunch("the run cannot be written as JSON: %v", err)
	}
	bounds := limits{timeout: req.Spec.HTTP.Timeout}
	call, cancel := context.WithTimeout(ctx, bounds.wait())
	defer cancel()
	answer, err := h.post(call, c, body)
	if err == nil {
		err = c.read(answer)
	}
	if err == nil && c.accepted {
		err = c.awaitReport(call)
	} else {
		c.tell()
	}
	c.result.Tail = c.out.tailText()
	return c.result, c.judge(ctx, call.Err() != nil, err, bounds)
}

func leaseOf(req Request) lease {
	l := lease{RunID: req.RunID, Attempt: req.Attempt, AgentID: req.AgentID, WorkspaceID: req.WorkspaceID, Prompt: req.Prompt, Environment: map[string]string{}, Test: req.Test}
	for _, v := range req.Environment {
		l.Environment[v.Name] = v.Value
	}
	l.LeaseToken = l.Environment["ROUSE_RUN_TOKEN"]
	if req.TaskID != "" {
		l.TaskID = &req.TaskID
	}
	if req.ResumeSessionID != "" {
		full := req.fullPrompt()
		l.ResumeSessionID, l.FullPrompt = &req.ResumeSessionID, &full
	}
	return l
}

// httpCall is one attempt at a service.
type httpCall struct {
	req      Request
	sink     Sink
	out      *output
	result   Result
	accepted bool // answered with 202
	notes    []string
	failure  *Failure
}

// post sends the request, on the first of several connections that can be made.
func (h *HTTP) post(ctx context.Context, c *httpCall, body []byte) (*http.Response, error) {
	pause := httpPause
	for try := 1; ; try++ {
		connected, answer, err := h.send(ctx, c, body)
		if err == nil || connected || try == httpTries || ctx.Err() != nil || lasting(err) {
			return answer, err
		}
		c.notes = append(c.notes, fmt.Sprintf("the agent service was not reached and was tried again: %v", plainURLError(err)))
		h.pause(ctx, pause)
		pause *= 2
	}
}

// lasting reports whether a connection will not be made the next second either.
func lasting(err error) bool {
	return errors.As(err, new(*refusedAddress)) || errors.As(err, new(*tls.CertificateVerificationError))
}

// pause waits for d, or less when ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// send makes one connection and sends the request on it. The session is recorded when the request was written, hence
// before the answer, which may take as long as the agent works.
func (h *HTTP) send(ctx context.Context, c *httpCall, body []byte) (connected bool, _ *http.Response, _ error) {
	wrote, got := make(chan struct{}, 1), make(chan struct{}, 1)
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { notify(got) },
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				notify(wrote)
			}
		},
	})
	request, err := h.request(traced, c.req, body)
	if err != nil {
		return true, nil, err
	}
	type reply struct {
		answer *http.Response
		err    error
	}
	replies := make(chan reply, 1)
	go func() {
		answer, err := h.client.Do(request) //nolint:bodyclose // read closes it
		replies <- reply{answer, err}
	}()
	var r reply
	select {
	case <-wrote:
		c.launched()
		r = <-replies
	case r = <-replies:
		if r.err == nil {
			c.launched()
		}
	}
	select {
	case <-got:
		connected = true
	default:
	}
	return connected, r.answer, r.err
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (h *HTTP) request(ctx context.Context, req Request, body []byte) (*http.Request, error) {
	request, err := http.NewRequestWithContext(withScheme(ctx, req.Spec.HTTP.URL), http.MethodPost, req.Spec.HTTP.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.GetBody = nil
	for _, v := range req.Headers {
		request.Header.Set(v.Name, v.Value)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "rouse")
	request.Header.Set("X-Rouse-Run", fmt.Sprintf("%s/%d", req.RunID, req.Attempt))
	if req.Secret != "" {
		timestamp := strconv.FormatInt(h.now().Unix(), 10)
		request.Header.Set("X-Rouse-Timestamp", timestamp)
		request.Header.Set("X-Rouse-Signature", "sha256="+sign(req.Secret, timestamp, body))
	}
	return request, nil
}

// sign is the HMAC-SHA256 of "timestamp.body" in hexadecimal digits, the form that rouse's own webhooks take (SPEC S4.9).
func sign(secret, timestamp string, body []byte) string {
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(timestamp + "."))
	mac.Write(body)
	return hex.EncodeToString(mac.Sum(nil))
}

// launched records the session: the service has the request.
func (c *httpCall) launched() {
	c.result.Launched = true
	c.name(firstOf(c.req.ResumeSessionID, xid.New("ses").String()))
}

func (c *httpCall) name(session string) {
	c.result.SessionID = session
	c.result.SessionError = errors.Join(c.result.SessionError, c.sink.Session(session))
}

// read takes the answer; its error is one of the connection.
func (c *httpCall) read(answer *http.Response) error {
	defer answer.Body.Close() // it was only read
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxResultLine+1))
	long := len(text) > maxResultLine
	switch status := answer.StatusCode; {
	case status >= 300 && status < 400:
		c.failure = &Failure{Code: domain.RunErrorCodeOther, Message: fmt.Sprintf(
			"the agent service answered %s, and redirects are not followed: set the executor's url to where it leads (%s)", answer.Status, maskedText(answer.Header.Get("Location"), httpErrorBytes, c.req.mask))}
		return nil
	case status < 200 || status >= 300:
		c.failure = c.refusal(answer, text)
		return nil
	case err != nil:
		return err
	}
	c.accepted = answer.StatusCode == http.StatusAccepted
	c.take(text, long)
	return nil
}

// refusal is the failure of an answer that is an error.
func (c *httpCall) refusal(answer *http.Response, text []byte) *Failure {
	f := &Failure{Code: domain.RunErrorCodeOther, Message: "the agent service answered " + answer.Status}
	if answer.StatusCode == http.StatusTooManyRequests {
		f.Code = domain.RunErrorCodeRateLimited
	}
	if after := answer.Header.Get("Retry-After"); after != "" {
		f.Message += "; Retry-After: " + after
	}
	if text := strings.TrimSpace(string(text)); text != "" {
		f.Message += ": " + maskedText(text, httpErrorBytes, c.req.mask)
	}
	return f
}

// take reads the body of a good answer: the result object of SPEC S7.5, any other JSON object as its result, or text.
func (c *httpCall) take(text []byte, long bool) {
	object, ok := decodeObject(text)
	if long || !ok {
		c.takeText(text, long)
		return
	}
	if session := domain.ResultSession(object); session != "" && c.req.mask(session) == session {
		c.result.Resumable = true
		if session != c.result.SessionID {
			c.result.Fresh = c.req.ResumeSessionID != ""
			c.name(session)
		}
	}
	if c.accepted {
		return
	}
	c.result.Usage = usageOf(object, c.req.mask)
	if _, known := parseResult(text); !known {
		object = map[string]any{"result": object}
	}
	c.result.Object = domain.CleanResult(object, c.req.mask).(map[string]any)
}

// takeText keeps an answer that is no JSON object: its lines in the log, and its beginning as the message.
func (c *httpCall) takeText(text []byte, long bool) {
	if c.accepted || len(bytes.TrimSpace(text)) == 0 {
		return
	}
	c.out.copyLines(domain.LogStreamStdout, bytes.NewReader(text))
	if long {
		c.out.say(fmt.Sprintf("the answer is longer than %d KiB; only its beginning was read", maxResultLine>>10))
	}
	message := cutText(c.req.mask(strings.TrimSpace(domain.StorableText(string(text)))), maxAnswer)
	c.result.Object = map[string]any{"message": message}
}

// tell writes what there is to know of the way to the service. A run that the service reports has its log for the
// service's lines, which are numbered from 1.
func (c *httpCall) tell() {
	for _, note := range c.notes {
		c.out.say(note)
	}
}

// awaitReport waits for the end that the agent reports through the API.
func (c *httpCall) awaitReport(ctx context.Context) error {
	select {
	case <-c.req.Ended:
		return ErrReported
	case <-ctx.Done():
	}
	select {
	case <-c.req.Ended: // its end is why the context ended, too
		return ErrReported
	default:
		return ctx.Err()
	}
}

// judge decides whether the attempt succeeded; nil is success. over says that its time was up.
func (c *httpCall) judge(ctx context.Context, over bool, err error, l limits) *Failure {
	switch {
	case errors.Is(err, ErrReported):
		return &Failure{Code: domain.RunErrorCodeOther, Message: ErrReported.Error(), Cause: ErrReported}
	case err != nil && ctx.Err() != nil:
		return endedFromOutside(ctx)
	case err != nil && over:
		return &Failure{Code: domain.RunErrorCodeTimeout, Message: fmt.Sprintf(
			"the agent service did not end the run within its timeout of %s: raise the executor's timeout if the work takes longer", l.wait())}
	case err != nil:
		return c.connectionFailure(err)
	case c.failure != nil:
		return c.failure
	}
	if reported := reportedErrorOf(c.result.Object); reported != "" {
		return &Failure{Code: domain.RunErrorCodeOther, Message: "the agent reported an error: " + cutText(reported, maxTail)}
	}
	return nil
}

func reportedErrorOf(object map[string]any) string {
	if object == nil {
		return ""
	}
	return reportedError(object)
}

// connectionFailure explains an error of the network.
func (c *httpCall) connectionFailure(err error) *Failure {
	var refused *refusedAddress
	var dns *net.DNSError
	switch {
	case errors.As(err, &refused):
		return launchFailure(err, "%v", refused)
	case errors.As(err, &dns):
		return launchFailure(err, "the name of the agent service is not known: %v: correct the executor's url, or the machine's name service", dns)
	case !c.result.Launched:
		return launchFailure(err, "the agent service was not reached: %v: see whether it runs, and correct the executor's url", plainURLError(err))
	}
	return &Failure{Code: domain.RunErrorCodeCrash, Cause: err, Message: fmt.Sprintf(
		"the connection to the agent service was lost before it had answered: %v; it may have begun the work", plainURLError(err))}
}
