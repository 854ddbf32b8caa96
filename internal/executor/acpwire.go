//go:build unix

package executor

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	acp "github.com/coder/acp-go-sdk"

	"rouse.dev/rouse/internal/domain"
)

// Bounds of what an ACP agent may send.
const (
	maxMessage    = 8 << 20  // bytes of one message
	maxUnhandled  = 256      // updates read but not yet passed on; then the agent has to wait
	maxUnanswered = 64       // requests that wait for an answer, or for the agent to read it
	longMessage   = 64 << 10 // bytes from which a message is held alone, so that the bounds above bound memory, too
	replyLimit    = 2 * time.Second
)

var (
	errLongMessage = fmt.Errorf("the agent sent a message of more than %d MiB: it should write long texts to files", maxMessage>>20)
	errUnanswered  = fmt.Errorf("the agent sent more than %d requests without reading the answers", maxUnanswered)
)

// wire stands between the agent's streams and the protocol's connection. It passes on one message at a time, and keeps
// three promises that the connection alone does not. Updates that come faster than they can be stored slow the agent
// down. An answer is seen after every update before it, and the end of the stream after the answer. A line that is not
// a message, such as a warning of a runtime, goes to the log.
type wire struct {
	text func(line []byte) // takes lines that are no message

	in  *io.PipeReader // the connection reads from it
	out *io.PipeWriter

	mu      sync.Mutex
	changed *sync.Cond
	open    int  // messages with a method that are being handled
	asked   int  // requests of the agent without an answer that it read
	replies int  // answers whose caller has not taken them yet
	closed  bool // nobody takes messages any more
	err     error
}

func newWire(text func(line []byte)) *wire {
	w := &wire{text: text}
	w.changed = sync.NewCond(&w.mu)
	w.in, w.out = io.Pipe()
	return w
}

// pump reads the agent's output to its end.
func (w *wire) pump(agent io.Reader) {
	r := bufio.NewReaderSize(agent, readBufferSize)
	err := error(nil)
	for err == nil {
		var line []byte
		line, err = readMessage(r)
		if len(bytes.TrimSpace(line)) > 0 && !errors.Is(err, errLongMessage) {
			if failed := w.forward(line); failed != nil {
				err = failed
			}
		}
	}
	// Nobody takes an answer that nobody asked for, so it must not delay the end for ever.
	limit := time.AfterFunc(replyLimit, func() { w.change(func() { w.replies = 0 }) })
	w.mu.Lock()
	for (w.open > 0 || w.replies > 0) && !w.closed {
		w.changed.Wait()
	}
	limit.Stop()
	if !errors.Is(err, io.EOF) {
		w.err = err
	}
	w.mu.Unlock()
	_ = w.out.Close()             // it never fails
	_, _ = io.Copy(io.Discard, r) // an agent that still writes must not hang
}

// readMessage reads one line without its end. Memory stays bounded.
func readMessage(r *bufio.Reader) ([]byte, error) {
	var line []byte
	for {
		part, err := r.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxMessage:
			return nil, errLongMessage
		case errors.Is(err, bufio.ErrBufferFull):
			continue
		}
		return bytes.TrimRight(line, "\r\n"), err
	}
}

// messageKind is what a line of the protocol is.
type messageKind int

const (
	messageNone messageKind = iota
	messageNotification
	messageRequest
	messageFileRead // a request whose answer may be long
	messageReply
	messageCancel // of a request; the connection handles it by itself
)

func kindOf(line []byte) messageKind {
	var m struct {
		ID     *json.RawMessage `json:"id"`
		Method string           `json:"method"`
	}
	if json.Unmarshal(line, &m) != nil {
		return messageNone
	}
	switch {
	case m.Method == "$/cancel_request" && m.ID == nil:
		return messageCancel
	case m.Method != "" && m.ID == nil:
		return messageNotification
	case m.Method == acp.ClientMethodFsReadTextFile:
		return messageFileRead
	case m.Method != "":
		return messageRequest
	case m.ID != nil:
		return messageReply
	}
	return messageNone
}

// forward hands one line to the connection, when it is its turn. What stands before its message for a terminal is left out.
func (w *wire) forward(line []byte) error {
	message := domain.Bare(line)
	kind := kindOf(message)
	if kind == messageNone {
		w.text(line)
		return nil
	}
	line = message
	if err := w.admit(kind, len(line) > longMessage); err != nil {
		return err
	}
	if _, err := w.out.Write(append(line, '\n')); err != nil {
		w.text(line) // the conversation is over; what still comes is worth a line
	}
	return nil
}

// admit waits until the message may follow those before it, and counts it.
func (w *wire) admit(kind messageKind, long bool) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for !w.mayFollow(kind, long) && !w.closed {
		w.changed.Wait()
	}
	switch kind {
	case messageNotification:
		w.open++
	case messageRequest, messageFileRead:
		if w.asked++; w.asked > maxUnanswered {
			return errUnanswered
		}
		w.open++
	case messageReply:
		w.replies++
	}
	return nil
}

// mayFollow says whether a message may be passed on now; mu is held. Updates may queue, though long ones not together. Whatever is no
// update comes after all before it, and what is held until its answer is read, when it is long, after the agent has read the answers
// before.
func (w *wire) mayFollow(kind messageKind, long bool) bool {
	switch {
	case kind == messageNotification && !long:
		return w.open < maxUnhandled
	case kind == messageFileRead, kind == messageRequest && long:
		return w.open == 0 && w.asked == 0
	}
	return w.open == 0
}

// handled counts a message that the handler is done with.
func (w *wire) handled() { w.change(func() { w.open-- }) }

// taken counts a call that has returned; one that returned without an answer leaves the count alone.
func (w *wire) taken() { w.change(func() { w.replies = max(0, w.replies-1) }) }

// close lets everything through that waits.
func (w *wire) close() {
	w.change(func() { w.closed = true })
	_ = w.in.Close() // it never fails
}

func (w *wire) change(f func()) {
	w.mu.Lock()
	f()
	w.mu.Unlock()
	w.changed.Broadcast()
}

// broken is why the agent's messages could not be read on; nil when they ended by themselves.
func (w *wire) broken() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.err
}

// answers is the connection's way to the agent; it counts the answers that the agent took.
type answers struct {
	wire  *wire
	agent io.Writer
}

// Write writes one message.
func (a answers) Write(p []byte) (int, error) {
	n, err := a.agent.Write(p)
	if kindOf(p) == messageReply {
		a.wire.change(func() { a.wire.asked-- })
	}
	return n, err
}
