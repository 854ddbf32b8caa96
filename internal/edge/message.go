package edge

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"rouse.dev/rouse/internal/domain"
)

// message is one message of graphql-transport-ws.
type message struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// decode reads a message by the exact names of its members.
func (m *message) decode(data []byte) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(data, &members); err != nil {
		return err
	}
	if members == nil {
		return errors.New("null")
	}
	if err := checkTwice(data); err != nil {
		return err
	}
	for name, to := range map[string]*string{"id": &m.ID, "type": &m.Type} {
		if value, there := members[name]; there {
			if err := json.Unmarshal(value, to); err != nil {
				return err
			}
		}
	}
	m.Payload = members["payload"]
	return nil
}

func tooManyOperations(most int) *Error {
	return &Error{
		Code:       CodeLimitExceeded,
		Message:    fmt.Sprintf("this socket has %d operations at work, which is the limit; complete some, or open another socket", most),
		Extensions: map[string]any{"limit": "operations on one socket", "max": most},
	}
}

// handle does what one message of the client asks.
func (c *socket) handle(m message) {
	switch m.Type {
	case "connection_init":
		c.initialise(m.Payload)
	case "ping":
		c.send(message{Type: "pong"})
	case "pong":
	case "subscribe":
		c.subscribe(m)
	case "complete":
		c.complete(m.ID)
	default:
		c.close(closeInvalidMessage, "Invalid message: the type is not one a client sends")
	}
}

// initialise authenticates the socket, once, and acknowledges it.
func (c *socket) initialise(payload json.RawMessage) {
	if c.opCtx != nil {
		c.close(closeSecondInit, "Too many initialisation requests")
		return
	}
	c.init.Stop()
	token, ok, err := initToken(payload)
	if !ok {
		c.close(closeInvalidMessage, "Invalid message: the payload of connection_init is not an object")
		return
	}
	if err == nil {
		c.opCtx, err = c.authenticate(token)
	}
	if err != nil {
		c.server.options.Strangers.Wait(c.ctx)
		c.refuse(err)
		return
	}
	c.known.Store(true)
	c.conn.SetReadLimit(c.server.limits.MessageBytes)
	c.send(message{Type: "connection_ack"})
	c.goroutines.Go(c.ping)
}

// authenticate falls back on the header of the upgrade, which clients other than browsers can set, and closes the socket when the caller's context
// ends before the socket does.
func (c *socket) authenticate(token string) (context.Context, error) {
	if c.server.options.Authenticate == nil {
		Proved(c.ctx, "")
		return c.ctx, nil
	}
	if token == "" {
		var err error
		if token, err = bearer(c.request.Header.Get("Authorization")); err != nil {
			return nil, err
		}
	}
	ctx, err := c.server.authenticate(c.ctx, Credentials{Token: token, RemoteAddr: c.request.RemoteAddr, Socket: true})
	if err != nil {
		return nil, err
	}
	c.server.settle(c.ctx, ctx, token)
	context.AfterFunc(ctx, func() {
		if c.ctx.Err() == nil {
			c.close(closeForbidden, "Forbidden: the token was revoked or has expired")
		}
	})
	return ctx, nil
}

// refuse closes the socket of a caller that could not be authenticated.
func (c *socket) refuse(err error) {
	e := c.server.authError(c.ctx, err)
	if e.Code == CodeInternal || e.Code == CodeUnavailable {
		c.close(closeTryAgain, "Try again later: the server failed to check the token")
		return
	}
	const room = 120 // a close frame has room for 123 bytes
	c.close(closeForbidden, domain.CutText("Forbidden: "+e.Message, room, "…"))
}

// subscribe starts one operation of any kind.
func (c *socket) subscribe(m message) {
	if c.opCtx == nil {
		c.close(closeNotAcknowledged, "Unauthorized: send connection_init and wait for connection_ack first")
		return
	}
	params := &graphql.RawParams{Headers: c.request.Header}
	params.ReadTime.Start = graphql.Now()
	if m.ID == "" || len(m.ID) > longestOperationID || decodeParams(bytes.NewReader(m.Payload), params) != nil || params.Query == "" {
		c.close(closeInvalidMessage, "Invalid message: subscribe needs an id (128 bytes at most) and a payload with a query")
		return
	}
	params.ReadTime.End = graphql.Now()
	ctx, op, refused, duplicate := c.begin(m.ID)
	switch {
	case duplicate:
		c.close(closeDuplicateID, "Subscriber for this id already exists")
	case refused != nil:
		c.send(errorMessage(m.ID, gqlerror.List{refused.gql()}))
	default:
		c.goroutines.Go(func() {
			defer c.left(op)
			c.last(op, c.run(ctx, op, params))
		})
	}
}

// run executes one operation and returns the message that ends it.
func (c *socket) run(ctx context.Context, op *operation, params *graphql.RawParams) message {
	leave, refused := c.server.agents.enter(ctx)
	if refused != nil {
		return errorMessage(op.id, refused.errors)
	}
	defer leave()
	oc, refused := c.server.prepare(ctx, params)
	if refused != nil {
		return errorMessage(op.id, refused.errors)
	}
	ctx, cancel := c.server.deadline(ctx, oc.Operation.Operation)
	defer cancel()
	if oc.Operation.Operation == ast.Subscription {
		return c.stream(ctx, op, oc)
	}
	resp := c.server.execute(ctx, oc)
	if len(resp.Data) == 0 {
		return errorMessage(op.id, resp.Errors)
	}
	c.next(op, nextMessage(op.id, resp))
	return message{ID: op.id, Type: "complete"}
}

// stream passes on the results of a subscription until its source ends.
func (c *socket) stream(ctx context.Context, op *operation, oc *graphql.OperationContext) (end message) {
	s := c.server
	defer func() {
		if p := recover(); p != nil {
			end = errorMessage(op.id, gqlerror.List{internalError(s.logPanic(ctx, p)).gql()})
		}
	}()
	ending := &streamEnd{}
	ctx = context.WithValue(withErrorBudget(ctx), streamEndKey, ending)
	results, ctx := s.exec.DispatchOperation(ctx, oc)
	for resp := results(ctx); resp != nil; resp = results(ctx) {
		if len(resp.Data) == 0 {
			return errorMessage(op.id, resp.Errors)
		}
		c.next(op, nextMessage(op.id, resp))
	}
	if err := ending.get(); err != nil {
		return errorMessage(op.id, gqlerror.List{s.classify(ctx, err).gql()})
	}
	return message{ID: op.id, Type: "complete"}
}

func nextMessage(id string, resp *graphql.Response) message {
	payload, err := envelopeOf(resp).text()
	if err != nil {
		panic(err) // a value of an error or extension that is no JSON; stream and run recover
	}
	return message{ID: id, Type: "next", Payload: payload}
}

// text is the message as it is sent. It is put together by hand, since encoding/json would read the whole payload again
// for each of the sockets that it goes to.
func (m message) text() []byte {
	id := mustMarshal(m.ID)
	out := make([]byte, 0, len(id)+len(m.Payload)+48)
	out = append(out, '{')
	if m.ID != "" {
		out = append(append(append(out, `"id":`...), id...), ',')
	}
	out = append(append(append(out, `"type":"`...), m.Type...), '"') // one of our own words
	if len(m.Payload) > 0 {
		out = append(append(out, `,"payload":`...), m.Payload...)
	}
	return append(out, '}')
}

func errorMessage(id string, errs gqlerror.List) message {
	return message{ID: id, Type: "error", Payload: mustMarshal(errs)}
}

// streamEnd is the error a subscription ends with.
type streamEnd struct {
	mu  sync.Mutex
	err error
}

func (e *streamEnd) get() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.err
}

// EndSubscription makes a subscription end with an error message instead of complete; the source calls it with the resolver's context just before
// it closes its channel. The error is presented like a resolver's: an *Error as it is, others as a server error. The first one counts. Outside a
// subscription it does nothing. (gqlgen's transport.AddSubscriptionError works with gqlgen's own transport only.)
func EndSubscription(ctx context.Context, err error) {
	e, ok := ctx.Value(streamEndKey).(*streamEnd)
	if !ok {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.err == nil {
		e.err = err
	}
}
