//go:build unix

package executor

import (
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// An agent that sends much and reads nothing must not make the server hold it all.
func TestLongMessagesAndAnswersAreHeldOneAtATime(t *testing.T) {
	for name, test := range map[string]struct {
		first, then messageKind
		long        bool
		waits       bool // until the first is handled
		unread      bool // and until its answer was read
	}{
		"a short update joins those that wait":         {messageNotification, messageNotification, false, false, false},
		"a long update waits for those before":         {messageNotification, messageNotification, true, true, false},
		"a read of a file waits for the last answer":   {messageFileRead, messageFileRead, false, true, true},
		"a long request waits for the answers before":  {messageRequest, messageRequest, true, true, true},
		"a short request waits for no reader":          {messageRequest, messageRequest, false, true, false},
		"an update is not held back by unread answers": {messageFileRead, messageNotification, true, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWire(nil)
				if err := w.admit(test.first, false); err != nil {
					t.Fatal(err)
				}
				var admitted atomic.Bool
				go func() {
					if err := w.admit(test.then, test.long); err != nil {
						t.Error(err)
					}
					admitted.Store(true)
				}()
				expect := func(when string, want bool) {
					t.Helper()
					if synctest.Wait(); admitted.Load() != want {
						t.Errorf("%s: admitted is %v", when, !want)
					}
				}
				expect("while the first is handled", !test.waits)
				w.handled()
				expect("while the answer is not read", !test.unread)
				if _, err := (answers{w, io.Discard}).Write([]byte(`{"id":1,"result":{}}`)); err != nil {
					t.Fatal(err)
				}
				expect("in the end", true)
			})
		})
	}
}

func TestAReadOfAFileIsKnownByItsMethod(t *testing.T) {
	if got := kindOf([]byte(`{"id":1,"method":"fs/read_text_file","params":{}}`)); got != messageFileRead {
		t.Errorf("kind %d", got)
	}
}

// A window's title before the answer to a request, or a mark, keeps nobody waiting for that answer.
func TestAMessageBehindATerminalSequenceIsPassedOn(t *testing.T) {
	var said []string
	w := newWire(func(line []byte) { said = append(said, string(line)) })
	lines := []string{"\x1b]0;agent\x07" + `{"jsonrpc":"2.0","id":1,"result":{}}`, "\ufeff" + `{"jsonrpc":"2.0","method":"session/update"}` + "\x1b[0m", "\x1b[33mwarning\x1b[0m"}
	ended := make(chan error, 1)
	go func() {
		for _, line := range lines {
			if err := w.forward([]byte(line)); err != nil {
				ended <- err
				return
			}
			w.taken()
		}
		ended <- w.out.Close()
	}()
	passed, err := io.ReadAll(w.in)
	if err := errors.Join(err, <-ended); err != nil {
		t.Fatal(err)
	}
	if want := `{"jsonrpc":"2.0","id":1,"result":{}}` + "\n" + `{"jsonrpc":"2.0","method":"session/update"}` + "\n"; string(passed) != want {
		t.Errorf("passed on: %q, want %q", passed, want)
	}
	if len(said) != 1 || said[0] != lines[2] {
		t.Errorf("shown: %q", said)
	}
}
