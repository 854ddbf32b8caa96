//go:build unix

package executor

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/outbound"
	"rouse.dev/rouse/internal/pause"
	"rouse.dev/rouse/internal/xid"
)

// Bounds of a call of an agent service.
const (
	httpTries      = 4                      // connections that are tried before the request was sent
	httpPause      = 500 * time.Millisecond // before the second try; it doubles
	httpErrorBytes = 2 << 10                // of an answer that is no result, for the message
)

// HTTP runs an agent that is a service elsewhere (SPEC S7.1). It makes one POST with the run's lease. The service
// answers with the result, or with 202 and reports through the API later.
type HTTP struct {
	allow  outbound.Addresses
	client *http.Client
	now    func() time.Time
	pause  func(context.Context, time.Duration) // before a connection is tried again
}

// NewHTTP makes the executor. Other addresses than public ones are called only where allow has them.
func NewHTTP(allow outbound.Addresses) *HTTP {
	return &HTTP{allow: allow, now: time.Now, pause: func(ctx context.Context, d time.Duration) { pause.For(ctx, d) }, client: allow.Client()}
}

// Accepted says that an agent service has taken the run. The service reports the end through the API, so this process
// need not wait for the attempt.
type Accepted struct {
	Left  time.Duration // of Time
	Time  time.Duration // that the run has in all
	Grace time.Duration // for its report, once it is asked to end
}

// Run calls the service and returns when it has answered. After a 202 the Result is Accepted. Only a connection that could not
// be made is tried again.
func (h *HTTP) Run(ctx context.Context, req Request, sink Sink) (Result, error) {
	if ctx.Err() != nil {
		return Result{ExitCode: -1}, endedFromOutside(ctx)
	}
	if req.Spec.HTTP == nil {
		return Result{ExitCode: -1}, permanentLaunch("the executor is not an agent service: set url")
	}
	result, failure := h.run(ctx, req, sink)
	if failure != nil {
		return result, req.tell(failure)
	}
	return result, nil
}

func (h *HTTP) run(ctx context.Context, req Request, sink Sink) (Result, *Failure) {
	c := &httpCall{req: req, sink: sink, out: newOutput(req, sink), result: Result{ExitCode: -1}}
	body, err := json.Marshal(leaseOf(req))
	if err != nil {
		return c.result, permanentLaunch("the run cannot be written as JSON: %v", err)
	}
	bounds, began := limits{timeout: req.Spec.HTTP.Timeout}, time.Now()
	call, cancel := context.WithTimeout(ctx, bounds.wait())
	defer cancel()
	answer, err := h.post(call, c, body)
	if err == nil {
		err = c.read(answer, h.now())
	}
	if err == nil && c.accepted {
		c.result.Accepted = &Accepted{Left: bounds.wait() - time.Since(began), Time: bounds.wait(), Grace: req.Spec.HTTP.EndGrace()}
	} else {
		c.tell()
	}
	c.result.Tail = c.out.tailText()
	return c.result, c.judge(ctx, call.Err() != nil, err, bounds)
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

// launched records the session: the service has the request.
func (c *httpCall) launched() {
	c.result.Launched = true
	c.name(cmp.Or(c.req.ResumeSessionID, xid.New("ses").String()))
}

func (c *httpCall) name(session string) {
	c.result.SessionID = session
	c.result.SessionError = errors.Join(c.result.SessionError, c.sink.Session(session))
}

// read takes the answer; its error is one of the connection.
func (c *httpCall) read(answer *http.Response, now time.Time) error {
	defer answer.Body.Close() // it was only read
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxResultLine+1))
	if err != nil && answer.StatusCode >= 200 && answer.StatusCode < 300 {
		return err
	}
	c.take(readAnswer(received{status: answer.StatusCode, header: answer.Header, body: text, long: len(text) > maxResultLine, now: now, mask: c.req.mask}))
	return nil
}

// take keeps what an answer comes to.
func (c *httpCall) take(a answer) {
	c.accepted, c.failure = a.accepted, a.failure
	c.result.Usage = a.usage.Masked(c.req.mask)
	if session := domain.ResultSession(a.object); session != "" && c.req.mask(session) == session {
		c.result.Resumable = true
		if session != c.result.SessionID {
			c.result.Fresh = c.req.ResumeSessionID != ""
			c.name(session)
		}
	}
	switch {
	case c.accepted:
		return
	case a.text != "":
		c.out.copyLines(domain.LogStreamStdout, bytes.NewReader([]byte(a.text)))
		a.object = map[string]any{"message": cutText(c.req.mask(domain.StorableText(a.text)), maxAnswer)}
	case a.object != nil:
		a.object = domain.CleanResult(a.object, c.req.mask).(map[string]any)
	}
	if a.note != "" {
		c.out.say(a.note)
	}
	c.result.Object = a.object
}

// tell writes what there is to know of the way to the service. A run that the service reports has its log for the
// service's lines, which are numbered from 1.
func (c *httpCall) tell() {
	for _, note := range c.notes {
		c.out.say(note)
	}
}

// judge decides whether the attempt succeeded; nil is success. over says that its time was up.
func (c *httpCall) judge(ctx context.Context, over bool, err error, l limits) *Failure {
	switch {
	case err != nil && ctx.Err() != nil:
		return endedFromOutside(ctx)
	case err != nil && over:
		return &Failure{Code: domain.RunErrorCodeTimeout, Message: domain.ServiceTimeout(l.wait())}
	case err != nil:
		return c.connectionFailure(err)
	case c.failure != nil:
		return c.failure
	}
	if said := domain.ReportedError(c.result.Object); said != "" {
		return reported(said)
	}
	return nil
}

// connectionFailure explains an error of the network.
func (c *httpCall) connectionFailure(err error) *Failure {
	var refused *outbound.RefusedAddress
	var dns *net.DNSError
	switch {
	case errors.As(err, &refused):
		return launchFailure(err, "%v", refused)
	case errors.As(err, &dns):
		return launchFailure(err, "the name of the agent service is not known: %v: correct the executor's url, or the machine's name service", dns)
	case !c.result.Launched:
		return launchFailure(err, "the agent service was not reached: %v: see whether it runs, and correct the executor's url", outbound.PlainURLError(err))
	}
	return &Failure{Code: domain.RunErrorCodeCrash, Cause: err, Message: fmt.Sprintf(
		"the connection to the agent service was lost before it had answered: %v; it may have begun the work", outbound.PlainURLError(err))}
}
