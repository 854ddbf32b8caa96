//go:build unix

package executor

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/preset"
	"rouse.dev/rouse/internal/retry"
)

// conversation is one attempt in the Agent Client Protocol: initialize, a session, one prompt.
type conversation struct {
	conn   *acp.Connection
	wire   *wire
	out    *output
	folder *folder
	policy domain.AcpPermissionPolicy
	tools  handing    // servers of tools that the agent is told of
	known  preset.ACP // zero for an agent that is none of a preset

	mu         sync.Mutex // guards what follows; the connection calls from several goroutines
	transcript *transcript
	replaying  bool         // the agent tells the history of a session that is being loaded
	before     *domain.Said // the session's cost before the prompt

	replayed chan struct{} // told of each part of such a history

	session acp.SessionId // set before ready is called
	started atomic.Bool   // the prompt was sent

	done    chan struct{} // closed when hold has returned, after the members below were set
	answer  promptAnswer
	failure *Failure
}

func newConversation(p *process, out *output, f *folder, policy domain.AcpPermissionPolicy) *conversation {
	c := &conversation{out: out, folder: f, policy: policy, transcript: newTranscript(out), replayed: make(chan struct{}, 1), done: make(chan struct{})}
	c.wire = newWire(func(line []byte) { out.emit(domain.LogStreamStderr, line, int64(len(line))) })
	c.conn = acp.NewConnection(c.handle, answers{c.wire, p.stdin}, c.wire.in)
	c.conn.SetLogger(slog.New(slog.DiscardHandler)) // what it would log may hold secrets, and is told by errors
	return c
}

// untilAnswered talks to the agent until it has answered the prompt. It calls ready with the session before it sends the
// prompt.
func (c *conversation) untilAnswered(ctx context.Context, req Request, ready func(session string)) {
	defer close(c.done)
	c.failure = c.converse(ctx, req, ready)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.transcript.flush()
}

func (c *conversation) converse(ctx context.Context, req Request, ready func(session string)) *Failure {
	hello, err := call[acp.InitializeResponse](ctx, c, acp.AgentMethodInitialize, acp.InitializeRequest{
		ProtocolVersion:    acp.ProtocolVersionNumber,
		ClientCapabilities: acp.ClientCapabilities{Fs: fileAccess(c.policy)},
		ClientInfo:         &acp.Implementation{Name: "rouse", Version: "1"},
	})
	switch {
	case err != nil:
		return c.failed(ctx, "initialize", err, domain.RunErrorCodeLaunch)
	case hello.ProtocolVersion != acp.ProtocolVersionNumber:
		return permanentLaunch("the agent speaks version %d of the Agent Client Protocol and rouse version %d: install a version of the agent that speaks it",
			hello.ProtocolVersion, acp.ProtocolVersionNumber)
	}
	prompt, failure := c.openSession(ctx, req, hello)
	if failure != nil {
		return failure
	}
	ready(string(c.session))
	c.started.Store(true)
	c.answer, err = call[promptAnswer](ctx, c, acp.AgentMethodSessionPrompt, acp.PromptRequest{
		SessionId: c.session, Prompt: []acp.ContentBlock{acp.TextBlock(prompt)},
	})
	if err != nil {
		return c.failed(ctx, "the prompt", err, domain.RunErrorCodeOther)
	}
	return nil
}

// openSession reopens the session to resume, where there is one and the agent can, else opens a new one; it returns the
// prompt that fits.
func (c *conversation) openSession(ctx context.Context, req Request, hello acp.InitializeResponse) (prompt string, _ *Failure) {
	cwd := req.Spec.ACP.WorkingDirectory
	servers, leftOut := c.tools.acpServers(req, hello)
	c.out.told(leftOut)
	if id := acp.SessionId(req.ResumeSessionID); id != "" {
		method, modes, err := c.reopen(ctx, id, cwd, servers, hello.AgentCapabilities)
		if err == nil {
			c.session = id
			return req.Prompt, c.haveAsk(ctx, modes)
		}
		if ctx.Err() != nil {
			return "", c.failed(ctx, method, err, domain.RunErrorCodeLaunch)
		}
		c.out.say(fmt.Sprintf("the session %s could not be loaded, a new one is opened with the full prompt: %s", id, explain(err)))
	}
	opened, err := call[acp.NewSessionResponse](ctx, c, acp.AgentMethodSessionNew, acp.NewSessionRequest{Cwd: cwd, McpServers: servers})
	if err == nil && !domain.SessionIDFits(string(opened.SessionId)) {
		err = errors.New("it gave no usable id")
	}
	if err != nil {
		return "", c.failed(ctx, "session/new", err, domain.RunErrorCodeLaunch)
	}
	c.session = opened.SessionId
	return req.fullPrompt(), c.haveAsk(ctx, opened.Modes)
}

// haveAsk puts the session into the mode in which the agent asks for leave, where a model would decide that: the executor's permissions
// would bind nothing.
func (c *conversation) haveAsk(ctx context.Context, modes *acp.SessionModeState) *Failure {
	if modes == nil {
		return nil
	}
	var offered []string
	for _, m := range modes.AvailableModes {
		offered = append(offered, string(m.Id))
	}
	mode := c.known.AsksIn(string(modes.CurrentModeId), offered)
	if mode == "" {
		return nil
	}
	_, err := call[acp.SetSessionModeResponse](ctx, c, acp.AgentMethodSessionSetMode, acp.SetSessionModeRequest{SessionId: c.session, ModeId: acp.SessionModeId(mode)})
	if err != nil {
		return c.failed(ctx, acp.AgentMethodSessionSetMode, err, domain.RunErrorCodeLaunch)
	}
	return nil
}

// reopen loads an earlier session, or resumes it where the agent announces that alone. method is what was asked for.
func (c *conversation) reopen(ctx context.Context, id acp.SessionId, cwd string, servers []acp.McpServer, can acp.AgentCapabilities) (method string, _ *acp.SessionModeState, _ error) {
	switch {
	case can.LoadSession:
		loaded, err := c.load(ctx, acp.LoadSessionRequest{SessionId: id, Cwd: cwd, McpServers: servers})
		return acp.AgentMethodSessionLoad, loaded.Modes, err
	case can.SessionCapabilities.Resume != nil: // without the history
		resumed, err := call[acp.ResumeSessionResponse](ctx, c, acp.AgentMethodSessionResume, acp.ResumeSessionRequest{SessionId: id, Cwd: cwd, McpServers: servers})
		return acp.AgentMethodSessionResume, resumed.Modes, err
	}
	return "", nil, errors.New("the agent does not announce that it can")
}

// load loads a session. The history that the agent sends with it is not output of this run.
func (c *conversation) load(ctx context.Context, req acp.LoadSessionRequest) (acp.LoadSessionResponse, error) {
	c.setReplaying(true)
	defer c.setReplaying(false)
	loaded, err := call[acp.LoadSessionResponse](ctx, c, acp.AgentMethodSessionLoad, req)
	if err == nil && c.known.LateHistory {
		c.awaitHistory(ctx)
	}
	return loaded, err
}

// Bounds of the wait for a history that comes late. Nothing says that it has ended, so that it has when nothing more comes.
const (
	historyQuiet = 2 * time.Second
	historyLimit = time.Minute
)

// awaitHistory lets the history of a loaded session come, which would else be taken for the output of this run.
func (c *conversation) awaitHistory(ctx context.Context) {
	limit, quiet := time.NewTimer(historyLimit), time.NewTimer(historyQuiet)
	defer limit.Stop()
	defer quiet.Stop()
	for {
		select {
		case <-c.replayed:
			quiet.Reset(historyQuiet)
		case <-quiet.C:
			return
		case <-limit.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

func (c *conversation) setReplaying(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.replaying, c.before = on, c.transcript.cost
	c.transcript.forget()
}

// call makes one request of the agent.
func call[T any](ctx context.Context, c *conversation, method string, params any) (T, error) {
	defer c.wire.taken()
	return acp.SendRequest[T](c.conn, ctx, method, params)
}

// cancel asks the agent to break off, without waiting for it: an agent that does not read must not keep anybody.
func (c *conversation) cancel() {
	if c.started.Load() {
		go func() {
			// An error means that the agent is gone, which is what was wanted.
			_ = c.conn.SendNotification(context.Background(), acp.AgentMethodSessionCancel, acp.CancelNotification{SessionId: c.session})
		}()
	}
}

// handle takes what the agent sends.
func (c *conversation) handle(_ context.Context, method string, params json.RawMessage) (any, *acp.RequestError) {
	defer c.wire.handled()
	switch method {
	case acp.ClientMethodSessionUpdate:
		if cost, ok := usageUpdate(params); ok {
			c.costs(cost)
			return nil, nil
		}
		c.uses(params)
		return handleAs(params, func(p acp.SessionNotification) (any, error) { c.update(p); return nil, nil })
	case acp.ClientMethodSessionRequestPermission:
		return handleAs(params, c.permission)
	case acp.ClientMethodFsReadTextFile:
		return handleAs(params, c.readFile)
	case acp.ClientMethodFsWriteTextFile:
		return handleAs(params, c.writeFile)
	}
	return nil, acp.NewMethodNotFound(method)
}

func handleAs[P any](params json.RawMessage, f func(P) (any, error)) (any, *acp.RequestError) {
	var p P
	if err := json.Unmarshal(params, &p); err != nil {
		return nil, acp.NewInvalidParams(map[string]any{"error": err.Error()})
	}
	answer, err := f(p)
	if err != nil {
		return nil, &acp.RequestError{Code: -32603, Message: err.Error()}
	}
	return answer, nil
}

func (c *conversation) update(p acp.SessionNotification) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.replaying {
		select {
		case c.replayed <- struct{}{}:
		default: // whoever waits for it is told already
		}
		return
	}
	c.transcript.update(p.Update)
}

// permission answers by the policy, and writes down what was asked and answered.
func (c *conversation) permission(p acp.RequestPermissionRequest) (any, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	asked, policy := c.transcript.asked(p.ToolCall), c.policy
	if ownTool(asked.title) {
		policy = domain.AcpPermissionPolicyAllow
	}
	id, allowed, ok := permit(policy, asked.kind, p.Options)
	verdict := "rejected"
	switch {
	case !ok:
		verdict = "cancelled, since no option of the agent fits"
	case allowed:
		verdict = "allowed"
	}
	c.transcript.flush()
	c.transcript.note(fmt.Sprintf("asks for permission: %s (%s): %s by the policy %s",
		cmp.Or(asked.title, string(p.ToolCall.ToolCallId)), cmp.Or(string(asked.kind), "no kind"), verdict, c.policy))
	c.transcript.steps.permission(string(p.ToolCall.ToolCallId), asked.title, asked.kind, ok && allowed, c.policy)
	if !ok {
		return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeCancelled()}, nil
	}
	return acp.RequestPermissionResponse{Outcome: acp.NewRequestPermissionOutcomeSelected(id)}, nil
}

func (c *conversation) readFile(p acp.ReadTextFileRequest) (any, error) {
	if !fileAccess(c.policy).ReadTextFile {
		return nil, fmt.Errorf("the policy %s allows no reading through the client", c.policy)
	}
	text, err := c.folder.read(p.Path, valueOr(p.Line, 0), valueOr(p.Limit, 0))
	if err != nil {
		c.refused("read", err)
		return nil, err
	}
	return acp.ReadTextFileResponse{Content: strings.ToValidUTF8(text, "\uFFFD")}, nil
}

func (c *conversation) writeFile(p acp.WriteTextFileRequest) (any, error) {
	if !fileAccess(c.policy).WriteTextFile {
		return nil, fmt.Errorf("the policy %s allows no writing through the client", c.policy)
	}
	err := c.folder.write(p.Path, p.Content)
	if err != nil {
		c.refused("written", err)
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.transcript.flush()
	c.transcript.note("wrote " + p.Path)
	return acp.WriteTextFileResponse{}, nil
}

func (c *conversation) refused(what string, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.transcript.flush()
	c.transcript.note(fmt.Sprintf("a file was not %s: %v", what, err))
}

// failed explains what went wrong with a request of ours. The requests' context ends when nobody is left to answer: the agent has ended,
// and something that it left behind may hold its output open.
func (c *conversation) failed(ctx context.Context, what string, err error, code domain.RunErrorCode) *Failure {
	if broken := c.wire.broken(); broken != nil {
		return &Failure{Code: domain.RunErrorCodeCrash, Message: broken.Error(), Cause: broken}
	}
	if isDisconnect(err) || ctx.Err() != nil {
		return &Failure{Code: domain.RunErrorCodeCrash, Cause: errAgentGone, Message: "the agent ended before it had answered " + what}
	}
	f := &Failure{Code: code, Words: explain(err), Message: fmt.Sprintf("the agent answered %s with an error: %s", what, explain(err))}
	if re, ok := errors.AsType[*acp.RequestError](err); ok && re.Code == -32000 {
		return refusedAs(f, domain.RunErrorCodeAuth)
	}
	return refusedAs(f, retry.Refusal(f.Words))
}

// errAgentGone is the cause of the failure of a request that was never answered.
var errAgentGone = errors.New("the agent's output ended")

// isDisconnect reports whether the connection ended: the library says so in the data of an error of its own.
func isDisconnect(err error) bool {
	re, ok := errors.AsType[*acp.RequestError](err)
	if !ok || re.Code != -32603 {
		return false
	}
	data, _ := re.Data.(map[string]any)
	text, _ := data["error"].(string)
	return strings.HasPrefix(text, "peer disconnected") || strings.HasSuffix(text, "broken pipe") || strings.HasSuffix(text, "file already closed")
}

// explain is an error of the agent in one line.
func explain(err error) string {
	re, ok := errors.AsType[*acp.RequestError](err)
	if !ok {
		return err.Error()
	}
	text := cmp.Or(re.Message, fmt.Sprintf("code %d", re.Code))
	if re.Data != nil {
		text += " " + compactJSON(re.Data)
	}
	return text
}

func valueOr[T any](p *T, otherwise T) T {
	if p == nil {
		return otherwise
	}
	return *p
}
