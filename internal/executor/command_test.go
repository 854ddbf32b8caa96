//go:build unix

package executor

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
)

func mkfifo(path string) error { return syscall.Mkfifo(path, 0o666) }

func TestThreeLinesArriveAsTheyArePrinted(t *testing.T) {
	// The command prints each line only after it was told that the one before arrived.
	path, _ := fifo(t)
	answer, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Close()
	sink := &recorder{onLine: func(string) { _, _ = answer.WriteString("go\n") }}
	_, err = newCommand(t, Options{}).Run(context.Background(),
		shell(`exec 3<"$FIFO"; for i in 1 2 3; do echo "line $i"; read -r _ <&3; done`, Variable{"FIFO", path}), sink)
	if err != nil || sink.text() != "STDOUT line 1\nSTDOUT line 2\nSTDOUT line 3" {
		t.Fatalf("got %q, %v", sink.text(), err)
	}
}

func TestOutcome(t *testing.T) {
	c := newCommand(t, Options{})
	for _, test := range []struct {
		name   string
		script string
		code   domain.RunErrorCode // "" for success
		exit   int
		says   string // part of the failure's message
		object string // the summary of the result, if any
	}{
		{"exit 0 without a result succeeds", `echo done`, "", 0, "", ""},
		{"exit 3 fails with the last output", `echo working; echo "disk full" >&2; exit 3`, domain.RunErrorCodeCrash, 3, "disk full", ""},
		{"a killed command fails", `kill -KILL $$`, domain.RunErrorCodeCrash, 137, "signal 9", ""},
		{"C222 a valid result wins over exit 143", `echo '{"summary":"made it"}'; kill -TERM $$`, "", 143, "", "made it"},
		{"a result after which blank lines follow is read", `printf '{"summary":"made it"}\n\n  \n'`, "", 0, "", "made it"},
		{"a result without a final newline is read", `printf '{"summary":"made it"}'`, "", 0, "", "made it"},
		{"a result that is not last is no result", `echo '{"summary":"made it"}'; echo bye; exit 1`, domain.RunErrorCodeCrash, 1, "code 1", ""},
		{"a result on stderr is no result", `echo '{"summary":"made it"}' >&2; exit 1`, domain.RunErrorCodeCrash, 1, "code 1", ""},
		{"an error as only outcome fails even with exit 0", `echo '{"error":"no credit left"}'`, domain.RunErrorCodeOther, 0, "no credit left", ""},
		{"an error beside a summary succeeds", `echo '{"summary":"made it","error":"one test flaky"}'`, "", 0, "", "made it"},
		{"is_error fails", `echo '{"type":"result","is_error":true,"result":"usage limit reached"}'`, domain.RunErrorCodeOther, 0, "usage limit reached", ""},
		{"usage alone does not excuse an exit code", `echo '{"usage":{"input_tokens":1}}'; exit 2`, domain.RunErrorCodeCrash, 2, "code 2", ""},
		{"a log record is no result", `echo '{"level":"error","message":"boom"}'; exit 2`, domain.RunErrorCodeCrash, 2, "boom", ""},
		{"an object without a known member is no result", `echo '{"ok":true}'; exit 2`, domain.RunErrorCodeCrash, 2, "code 2", ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			sink := &recorder{}
			result, err := c.Run(context.Background(), shell(test.script), sink)
			if result.ExitCode != test.exit || !result.Launched {
				t.Errorf("got exit code %d, launched %v", result.ExitCode, result.Launched)
			}
			if summary, _ := result.Object["summary"].(string); summary != test.object {
				t.Errorf("got summary %q, want %q", summary, test.object)
			}
			if test.code == "" {
				if err != nil {
					t.Fatalf("got %v, want success", err)
				}
				return
			}
			failure := failureOf(t, err)
			if failure.Code != test.code || !strings.Contains(failure.Message, test.says) || failure.Permanent {
				t.Errorf("got %+v, want %s with %q", failure, test.code, test.says)
			}
		})
	}
}

func TestSessionIsKnownBeforeThePromptIsAndMayBeRenamed(t *testing.T) {
	c := newCommand(t, Options{})
	sink := &recorder{}
	result, err := c.Run(context.Background(), shell(`cat`), sink)
	if err != nil || len(sink.sessions) != 1 || !strings.HasPrefix(sink.sessions[0], "ses_") || result.SessionID != sink.sessions[0] || result.Resumable {
		t.Fatalf("got %+v, %v, sessions %v", result, err, sink.sessions)
	}
	sink = &recorder{}
	req := shell(`echo "{\"result\":\"ok\",\"session_id\":\"abc\",\"usage\":{\"input_tokens\":10,\"output_tokens\":2},\"total_cost_usd\":0.25,\"was\":\"$ROUSE_RESUME_SESSION_ID\"}"`)
	req.ResumeSessionID = "old"
	result, err = c.Run(context.Background(), req, sink)
	if err != nil || strings.Join(sink.sessions, " ") != "old abc" || result.SessionID != "abc" || !result.Resumable || result.Object["was"] != "old" {
		t.Fatalf("got %+v, %v, sessions %v", result, err, sink.sessions)
	}
	if result.Usage == nil || *result.Usage != (Usage{InputTokens: 10, OutputTokens: 2, CostUSD: "0.25"}) {
		t.Fatalf("got usage %+v", result.Usage)
	}
}

func TestWhatIsNotLaunchedHasNoSessionAndAUsefulMessage(t *testing.T) {
	dir := t.TempDir()
	plain := filepath.Join(dir, "plain")
	orphan := filepath.Join(dir, "orphan")
	binary := filepath.Join(dir, "binary")
	for file, content := range map[string]string{plain: "x", orphan: "#!/no/such/interpreter\n", binary: "\x00\x01"} {
		if err := os.WriteFile(file, []byte(content), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, file := range []string{orphan, binary} {
		if err := os.Chmod(file, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	inDir := func(dir string) func(*Request) {
		return func(r *Request) { r.Spec.Command.WorkingDirectory = dir }
	}
	none := func(*Request) {}
	c := newCommand(t, Options{})
	for _, test := range []struct {
		name      string
		argv      []string
		change    func(*Request)
		says      string
		permanent bool
	}{
		{"no program", nil, none, "set argv", true},
		{"a program that is not in PATH", []string{"no-such-agent"}, none, "install it", true},
		{"a path that does not exist", []string{"/no/such/agent"}, none, "does not exist", true},
		{"a folder", []string{dir}, none, "not a program", false},
		{"not executable", []string{plain}, none, "chmod +x", false},
		{"a missing interpreter", []string{orphan}, none, "interpreter", true},
		{"no program at all", []string{binary}, none, "#!/bin/sh", false},
		{"a missing working directory", []string{"true"}, inDir("/no/such/folder"), "make it", false},
		{"a working directory that is a file", []string{"true"}, inDir(plain), "not a folder", false},
		{"a relative working directory", []string{"true"}, inDir("here"), "not absolute", true},
		{"a NUL byte in an argument", []string{"true", "a\x00b"}, none, "NUL", true},
		{"a bad variable name", []string{"true"}, func(r *Request) { r.Environment = []Variable{{"A=B", "secret-value"}} }, "no name", true},
		{"a NUL byte in a variable", []string{"true"}, func(r *Request) { r.Environment = []Variable{{"A", "x\x00"}} }, "NUL", true},
		{"too much environment", []string{"true"}, func(r *Request) { r.Environment = []Variable{{"A", strings.Repeat("x", 4<<20)}} }, "too long", false},
		{"an agent without a usable id", []string{"true"}, func(r *Request) { r.AgentID = "../up" }, "cannot name", true},
	} {
		t.Run(test.name, func(t *testing.T) {
			req := request(test.argv)
			test.change(&req)
			sink := &recorder{}
			result, err := c.Run(context.Background(), req, sink)
			failure := failureOf(t, err)
			if failure.Code != domain.RunErrorCodeLaunch || !strings.Contains(failure.Message, test.says) || failure.Permanent != test.permanent {
				t.Errorf("got %+v", failure)
			}
			if strings.Contains(failure.Message, "secret-value") {
				t.Error("the message holds a value")
			}
			if result.Launched || result.SessionID != "" || len(sink.sessions) != 0 || len(sink.groups) != 0 {
				t.Errorf("something was launched: %+v", result)
			}
		})
	}
}

func TestEnvironmentIsClean(t *testing.T) {
	t.Setenv("ROUSE_DATABASE_URL", "postgres://secret")
	t.Setenv("DATABASE_URL", "postgres://secret")
	t.Setenv("PGPASSWORD", "secret")
	sink := &recorder{}
	_, err := newCommand(t, Options{}).Run(context.Background(),
		request([]string{"env"}, Variable{"API_KEY", "one"}, Variable{"TERM", "xterm"}, Variable{"API_KEY", "two"}), sink)
	if err != nil {
		t.Fatal(err)
	}
	allowed := map[string]bool{"PATH": true, "HOME": true, "TMPDIR": true, "SHELL": true, "LANG": true, "TERM": true, "NO_COLOR": true,
		"USER": true, "LOGNAME": true, "API_KEY": true, "ROUSE_LAUNCH": true}
	for _, line := range sink.lines {
		name, _, _ := strings.Cut(strings.TrimPrefix(line, "STDOUT "), "=")
		if !allowed[name] {
			t.Errorf("unexpected variable %q", line)
		}
	}
	for _, want := range []string{"API_KEY=two", "TERM=xterm"} {
		if !strings.Contains(sink.text(), want) {
			t.Errorf("%s is missing in %s", want, sink.text())
		}
	}
}

func TestTheDefaultFolderIsTheAgentsOwn(t *testing.T) {
	root := t.TempDir()
	sink := &recorder{}
	_, err := newCommand(t, Options{WorkRoot: root}).Run(context.Background(), shell(`pwd -P; ls -ld . | cut -c1-10`), sink)
	want, evalErr := filepath.EvalSymlinks(filepath.Join(root, "agt_1"))
	if err != nil || evalErr != nil || sink.text() != "STDOUT "+want+"\nSTDOUT drwx------" {
		t.Fatalf("got %q, %v, %v", sink.text(), err, evalErr)
	}
}

func TestPromptGoesToStdin(t *testing.T) {
	c := newCommand(t, Options{})
	for _, test := range []struct{ name, script, want string }{
		{"read whole", `wc -c | tr -d ' '`, "STDOUT 1000000"},
		{"never read", `echo hello`, "STDOUT hello"},
		{"closed at once", `exec <&-; echo hello`, "STDOUT hello"},
	} {
		t.Run(test.name, func(t *testing.T) {
			req := shell(test.script)
			req.Prompt = strings.Repeat("x", 1_000_000)
			sink := &recorder{}
			if _, err := c.Run(context.Background(), req, sink); err != nil || sink.text() != test.want {
				t.Fatalf("got %q, %v", sink.text(), err)
			}
		})
	}
}

func TestAnUnrecordedProcessIsEnded(t *testing.T) {
	refused := errors.New("attempt is fenced")
	alive, gone := fifo(t)
	sink := &recorder{onProcess: func(ProcessGroup) error { return refused }}
	result, err := newCommand(t, Options{}).Run(context.Background(), shell(`exec 9>"$ALIVE"; sleep 1000`, Variable{"ALIVE", alive}), sink)
	gone()
	if failureOf(t, err).Code != domain.RunErrorCodeLaunch || !errors.Is(err, refused) || len(sink.sessions) != 0 || result.SessionID != "" {
		t.Fatalf("got %+v, %v", result, err)
	}
}

func TestEndedFromOutside(t *testing.T) {
	byPerson := errors.New("cancelled by ann")
	for _, test := range []struct {
		name   string
		script string // prints "ready" when it may be cancelled
		cause  error
		want   string // what it managed to print after ready
	}{
		{"TERM lets it say goodbye", `exec 9>"$ALIVE"; trap 'echo bye; exit 0' TERM; echo ready; while :; do sleep 0.02; done`, byPerson, "STDOUT bye"},
		{"TERM ignored: KILL after the grace", `exec 9>"$ALIVE"; trap '' TERM; echo ready; while :; do sleep 1000; done`, &Stop{Reason: byPerson, Grace: 50 * time.Millisecond}, ""},
		{"grandchildren that ignore TERM", `exec 9>"$ALIVE"; (trap '' TERM; while :; do sleep 1000; done) & (trap '' TERM; sleep 1000) & echo ready; wait`, &Stop{Reason: byPerson, Grace: 0}, ""},
		{"a stopped group", `exec 9>"$ALIVE"; echo ready; kill -STOP 0`, byPerson, ""},
		{"a child that left the group", `exec 9>"$ALIVE"; setsid sh -c 'trap "" TERM; echo ready; sleep 1000' & wait`, &Stop{Reason: byPerson, Grace: 0}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			alive, gone := fifo(t)
			ctx, cancel := context.WithCancelCause(context.Background())
			sink := &recorder{onLine: func(text string) {
				if text == "ready" {
					cancel(test.cause)
				}
			}}
			result, err := newCommand(t, Options{Drain: 100 * time.Millisecond}).Run(ctx, shell(test.script, Variable{"ALIVE", alive}), sink)
			gone()
			if failure := failureOf(t, err); !errors.Is(failure, byPerson) || !strings.Contains(failure.Message, "ann") {
				t.Errorf("got %+v", failure)
			}
			if result.Survivors != nil || result.ExitCode < 0 {
				t.Errorf("got %+v", result)
			}
			if !strings.Contains(sink.text(), test.want) {
				t.Errorf("got %q", sink.text())
			}
		})
	}
}

func TestTimeout(t *testing.T) {
	c := newCommand(t, Options{Drain: 100 * time.Millisecond})
	for _, test := range []struct {
		name, script string
		code         domain.RunErrorCode
	}{
		{"without a result it fails", `exec 9>"$ALIVE"; echo working; trap '' TERM; sleep 1000 & wait; sleep 1000`, domain.RunErrorCodeTimeout},
		{"with a result it succeeded", `exec 9>"$ALIVE"; echo '{"summary":"done"}'; sleep 1000`, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			alive, gone := fifo(t)
			req := shell(test.script, Variable{"ALIVE", alive})
			req.Spec.Command.Timeout, req.Spec.Command.Grace = 300*time.Millisecond, 20*time.Millisecond
			_, err := c.Run(context.Background(), req, &recorder{})
			gone()
			if test.code == "" {
				if err != nil {
					t.Fatalf("got %v", err)
				}
				return
			}
			if failure := failureOf(t, err); failure.Code != test.code || !strings.Contains(failure.Message, "300ms") || !strings.Contains(failure.Message, "working") {
				t.Fatalf("got %+v", failure)
			}
		})
	}
}

func TestALeaderThatLeavesOthersBehind(t *testing.T) {
	c := newCommand(t, Options{Drain: 200 * time.Millisecond})
	t.Run("what it left in its group is ended, late output kept", func(t *testing.T) {
		alive, gone := fifo(t)
		sink := &recorder{}
		// The grandchild reads the prompt's end of file only after its parent ended.
		_, err := c.Run(context.Background(), shell(`exec 9>"$ALIVE"; (while kill -0 $$ 2>/dev/null && [ "$(cut -d' ' -f3 /proc/$$/stat)" != Z ]; do :; done; echo late; sleep 1000) & echo first`, Variable{"ALIVE", alive}), sink)
		gone()
		if err != nil || !strings.Contains(sink.text(), "STDOUT first\nSTDOUT late") {
			t.Fatalf("got %q, %v", sink.text(), err)
		}
	})
	t.Run("a daemon that holds the pipes does not hold the run", func(t *testing.T) {
		sink := &recorder{}
		result, err := newCommand(t, Options{Drain: 200 * time.Millisecond, NoCgroups: true}).Run(context.Background(), shell(`setsid sleep 1000 & echo ready`), sink)
		if err != nil || result.Survivors != nil || !strings.Contains(sink.text(), "still holds the pipe") {
			t.Fatalf("got %q, %v, %+v", sink.text(), err, result)
		}
	})
}

func TestHundredsOfShortCommandsLeaveNothing(t *testing.T) {
	c := newCommand(t, Options{})
	count := func() int {
		entries, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			t.Skip("no /proc: open files cannot be counted here")
		}
		return len(entries)
	}
	if _, err := c.Run(context.Background(), request([]string{"true"}), &recorder{}); err != nil {
		t.Fatal(err)
	}
	before := count()
	jobs := make(chan int)
	var workers sync.WaitGroup
	for range 8 {
		workers.Go(func() {
			for i := range jobs {
				sink := &recorder{}
				result, err := c.Run(context.Background(), request([]string{"echo", fmt.Sprint(i)}), sink)
				if err != nil || result.Survivors != nil || sink.text() != fmt.Sprintf("STDOUT %d", i) {
					t.Errorf("%d: got %q, %v", i, sink.text(), err)
				}
			}
		})
	}
	for i := range 250 { // each starts this test program, which takes the race detector 30 ms
		jobs <- i
	}
	close(jobs)
	workers.Wait()
	if after := count(); after > before {
		t.Errorf("%d files open before, %d after", before, after)
	}
}

func TestRunsAsTheAccount(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root can change the account; the rest of this package runs as anybody")
	}
	root, err := os.MkdirTemp("", "executor")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(root); err != nil {
			t.Error(err)
		}
	})
	if err := os.Chmod(root, 0o755); err != nil {
		t.Fatal(err)
	}
	c := newCommand(t, Options{WorkRoot: root, Home: root, User: "nobody", Credential: &syscall.Credential{Uid: 65534, Gid: 65534}})
	t.Run("user, group and supplementary groups are dropped", func(t *testing.T) {
		sink := &recorder{}
		_, err := c.Run(context.Background(), shell(`id -u; id -g; id -G; echo "$HOME $USER"; touch mine && echo writable; case $PATH in */root*) echo leak;; esac`), sink)
		want := fmt.Sprintf("STDOUT 65534\nSTDOUT 65534\nSTDOUT 65534\nSTDOUT %s nobody\nSTDOUT writable", root)
		if err != nil || sink.text() != want {
			t.Fatalf("got %q, %v", sink.text(), err)
		}
	})
	t.Run("a folder it may not enter is named", func(t *testing.T) {
		closed := filepath.Join(root, "closed")
		if err := os.Mkdir(closed, 0o700); err != nil {
			t.Fatal(err)
		}
		req := shell(`true`)
		req.Spec.Command.WorkingDirectory = closed
		_, err := c.Run(context.Background(), req, &recorder{})
		if failure := failureOf(t, err); !strings.Contains(failure.Message, "uid 65534 nobody") {
			t.Fatalf("got %+v", failure)
		}
	})
}
