package edge

import (
	"bufio"
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/coder/websocket"
)

const subprotocol = "graphql-transport-ws"

// Close codes of graphql-transport-ws. The client library takes 4400, 4401, 4406, 4409 and 4429 for final, and comes back after the others.
const (
	closeInvalidMessage  websocket.StatusCode = 4400
	closeNotAcknowledged websocket.StatusCode = 4401
	closeForbidden       websocket.StatusCode = 4403
	closeSubprotocol     websocket.StatusCode = 4406
	closeInitTimeout     websocket.StatusCode = 4408
	closeDuplicateID     websocket.StatusCode = 4409
	closeSecondInit      websocket.StatusCode = 4429
	closeServiceRestart                       = websocket.StatusServiceRestart
	closeTryAgain                             = websocket.StatusTryAgainLater
	restartReason                             = "Service restart: connect again and resubscribe, with your last cursor as after where there is one"
	longestOperationID                        = 128      // bytes
	initBytes                                 = 16 << 10 // of a message before connection_ack
)

// IsUpgrade reports whether the client asks for a WebSocket.
func IsUpgrade(r *http.Request) bool {
	return strings.Contains(strings.ToLower(r.Header.Get("Upgrade")), "websocket")
}

// socket is one WebSocket. The goroutine of its handler reads; each operation has a goroutine of its own; whoever has something to write does so
// under mu, with a deadline. It ends once: by finish.
type socket struct {
	server  *Server
	conn    *websocket.Conn
	wire    net.Conn // under conn
	request *http.Request
	ctx     context.Context // ends with the socket
	cancel  context.CancelFunc
	opCtx   context.Context // ctx as Authenticate returned it; nil before the acknowledgement
	init    *time.Timer     // fires when connection_init does not come; stopped once it has

	known      atomic.Bool // the caller is authenticated
	ending     atomic.Bool // nothing is written any more but the close frame
	once       sync.Once
	goroutines sync.WaitGroup

	mu      sync.Mutex // guards writes and the following
	active  map[string]*operation
	running int // operations whose goroutine lives, completed by the client or not
}

// operation is one subscribe message at work.
type operation struct {
	id     string
	cancel context.CancelFunc
}

// serveSocket serves one WebSocket until it is closed and all of its goroutines have ended.
func (s *Server) serveSocket(w http.ResponseWriter, r *http.Request) {
	c := &socket{server: s, request: r, active: map[string]*operation{}}
	if !s.sockets.enter(c) {
		w.Header().Set("Retry-After", "1")
		s.writeRefusal(w, r, mediaJSON, refuse(http.StatusServiceUnavailable, CodeUnavailable, "the server is shutting down; connect again in a moment"))
		return
	}
	defer s.sockets.leave(c)
	h := &hijacker{ResponseWriter: w}
	conn, err := websocket.Accept(h, r, &websocket.AcceptOptions{
		Subprotocols:       []string{subprotocol},
		InsecureSkipVerify: true, // the Origin has been checked by checkOrigin
	})
	if err != nil {
		s.log.DebugContext(r.Context(), "websocket upgrade failed", "error", err)
		return // Accept has answered
	}
	conn.SetReadLimit(min(initBytes, s.limits.MessageBytes))
	c.conn, c.wire = conn, h.conn
	c.ctx, c.cancel = context.WithCancel(r.Context())
	c.serve()
}

// hijacker remembers the connection under a WebSocket: closing it is the only way to end one whose peer is deaf at once, since CloseNow waits for
// a close handshake under way.
type hijacker struct {
	http.ResponseWriter
	conn net.Conn
}

// Hijack takes over the connection for websocket.Accept.
func (h *hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	conn, rw, err := http.NewResponseController(h.ResponseWriter).Hijack()
	h.conn = conn
	return conn, rw, err
}

func (c *socket) serve() {
	defer c.goroutines.Wait()
	defer c.close(websocket.StatusNormalClosure, "")
	stop := context.AfterFunc(c.request.Context(), func() { c.close(closeServiceRestart, restartReason) })
	defer stop()
	if !c.server.sockets.opened(c) {
		c.close(closeServiceRestart, restartReason)
		return
	}
	if c.conn.Subprotocol() != subprotocol {
		c.close(closeSubprotocol, "Subprotocol not acceptable: use "+subprotocol)
		return
	}
	c.init = time.AfterFunc(c.server.limits.InitTimeout, func() { c.close(closeInitTimeout, "Connection initialisation timeout") })
	defer c.init.Stop()
	c.read()
}

// read handles messages until the socket ends.
func (c *socket) read() {
	for {
		// Not the socket's context: when it ends, Read would cut the connection and the close frame with it.
		kind, data, err := c.conn.Read(context.Background())
		if err != nil {
			return
		}
		var m message
		if kind != websocket.MessageText {
			c.close(closeInvalidMessage, "Invalid message: not a JSON object")
			return
		}
		if err := m.decode(data); err != nil {
			why := "not a JSON object"
			if _, ok := errors.AsType[*twiceError](err); ok {
				why = "a JSON object has a member twice"
			}
			c.close(closeInvalidMessage, "Invalid message: "+why)
			return
		}
		c.handle(m)
		if c.ending.Load() {
			return
		}
	}
}

// close ends the socket with a close frame; only the first end counts, later ones wait for it. The close code tells
// clients that streams ended early, so their completion is not sent any more.
func (c *socket) close(code websocket.StatusCode, reason string) {
	c.finish(func() { _ = c.conn.Close(code, reason) }) // the error is the peer's silence; the connection is closed either way
}

// cut ends the socket without a close frame, for peers that do not read; a close handshake under way fails at once.
func (c *socket) cut() {
	_ = c.wire.Close() // closed already is as good
	c.finish(func() { _ = c.conn.CloseNow() })
}

func (c *socket) finish(end func()) {
	c.once.Do(func() {
		c.ending.Store(true)
		c.cancel()
		end()
	})
}

// write sends one message while mu is held. A peer that does not take it in time is cut off.
func (c *socket) write(m message) {
	if c.ending.Load() {
		return
	}
	// Not an operation's context: its end in the middle of a frame would cut the connection.
	ctx, cancel := context.WithTimeout(context.Background(), c.server.limits.WriteTimeout)
	defer cancel()
	if err := c.conn.Write(ctx, websocket.MessageText, m.text()); err != nil && !c.ending.Load() {
		c.server.log.DebugContext(c.ctx, "websocket peer cut off", "error", err)
		c.goroutines.Go(c.cut)
	}
}

// send writes a message that belongs to no operation.
func (c *socket) send(m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.write(m)
}

// ping keeps proxies from closing the connection and finds peers that are gone.
func (c *socket) ping() {
	tick := time.NewTicker(c.server.limits.PingInterval)
	defer tick.Stop()
	for {
		select {
		case <-c.ctx.Done():
			return
		case <-tick.C:
		}
		ctx, cancel := context.WithTimeout(context.Background(), c.server.limits.WriteTimeout)
		err := c.conn.Ping(ctx)
		cancel()
		if err != nil {
			c.cut()
			return
		}
	}
}

// begin enters an operation, unless its id is in use or the socket has too many.
func (c *socket) begin(id string) (ctx context.Context, op *operation, refused *Error, duplicate bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active[id] != nil {
		return nil, nil, nil, true
	}
	if most := c.server.limits.Subscriptions; c.running >= most {
		return nil, nil, tooManyOperations(most), false
	}
	ctx, cancel := context.WithCancel(withRequestID(graphql.StartOperationTrace(c.opCtx), newRequestID()))
	op = &operation{id: id, cancel: cancel}
	c.active[id] = op
	c.running++
	return ctx, op, nil, false
}

// next sends a result, unless the client has completed the operation.
func (c *socket) next(op *operation, m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active[op.id] == op && c.opCtx.Err() == nil {
		c.write(m)
	}
}

// last sends the final message of an operation and frees its id; nothing when the client has completed it.
func (c *socket) last(op *operation, m message) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.active[op.id] != op {
		return
	}
	delete(c.active, op.id)
	if c.opCtx.Err() == nil { // else the operation ended because the socket does, and is not complete
		c.write(m)
	}
}

// complete is the client's wish to end an operation; its id is free at once.
func (c *socket) complete(id string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if op := c.active[id]; op != nil {
		delete(c.active, id)
		op.cancel()
	}
}

// left takes note that the goroutine of an operation ends.
func (c *socket) left(op *operation) {
	op.cancel()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.running--
}
