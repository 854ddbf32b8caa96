package main

import (
	"bufio"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"rouse.dev/rouse/internal/pgtest"
)

// A command that started the private database ends it, whenever it is interrupted.
func TestACommandThatIsInterruptedLeavesNothingRunning(t *testing.T) {
	t.Parallel()
	w, data := newWorkshop(t), pgtest.Folder(t)
	if err := syscall.Mkfifo(w.path("up"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(w.path("up"), 0o666); err != nil {
		t.Fatal(err)
	}
	server := start(t, data, nil, "--drain", "1s")
	newJourney(server).agent("slow", map[string]any{"command": map[string]any{"argv": []string{"/bin/sh", "-c", "echo $$ >" + w.path("up") + "; exec sleep 1000"}}})
	if code := server.end(syscall.SIGTERM); code != 0 {
		t.Fatalf("the server ended with %d", code)
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		doctor := launch(t, nil, "doctor", "--ask", "--data-dir", data)
		up, err := os.Open(w.path("up")) // waits for the agent
		if err != nil {
			t.Fatal(err)
		}
		text, err := bufio.NewReader(up).ReadString('\n')
		_ = up.Close() // it was only read
		agent, bad := strconv.Atoi(strings.TrimSpace(text))
		if err != nil || bad != nil {
			t.Fatalf("the agent said %q: %v", text, err)
		}
		database := clusterPID(t, data)
		if left := living([]int{agent, database}); len(left) != 2 {
			t.Fatalf("of the agent and the database live %v", left)
		}
		if code := doctor.end(signal); code != 1 || !strings.Contains(doctor.log.String(), "a signal ended this") || strings.Contains(doctor.out.String(), "canceled") {
			t.Errorf("%v: exit %d:\n%s%s", signal, code, doctor.out, doctor.log)
		}
		if left := living([]int{agent, database}); len(left) != 0 {
			t.Errorf("%v left %v running", signal, left)
		}
	}
}
