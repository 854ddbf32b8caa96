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

// The doctor that is interrupted while an agent answers it ends that agent. The database is the server's, and stays: the
// doctor itself starts none.
func TestADoctorThatIsInterruptedEndsTheAgentThatItAsks(t *testing.T) {
	t.Parallel()
	w, data := newWorkshop(t), pgtest.Installed(t)
	if err := syscall.Mkfifo(w.path("up"), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(w.path("up"), 0o666); err != nil {
		t.Fatal(err)
	}
	server := start(t, data, nil, "--drain", "1s")
	newJourney(server).agent("slow", map[string]any{"command": map[string]any{"argv": []string{"/bin/sh", "-c", "echo $$ >" + w.path("up") + "; exec sleep 1000"}}})
	database := clusterPID(t, data)
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT} {
		doctor := launch(t, nil, "doctor", "--ask", "--data-dir", data)
		agent := askedAgent(t, doctor, w.path("up"))
		if left := living([]int{agent, database}); len(left) != 2 {
			t.Fatalf("of the agent and the database live %v", left)
		}
		if code := doctor.end(signal); code != 1 || !strings.Contains(doctor.log.String(), "a signal ended this") || strings.Contains(doctor.out.String(), "canceled") {
			t.Errorf("%v: exit %d:\n%s%s", signal, code, doctor.out, doctor.log)
		}
		if left := living([]int{agent}); len(left) != 0 {
			t.Errorf("%v left the agent %v running", signal, left)
		}
	}
	if left := living([]int{database}); len(left) != 1 {
		t.Error("the doctor ended the server's database")
	}
}

// askedAgent waits for the agent that the doctor asks, which writes its process into the pipe. A doctor that ends without
// having asked it fails the test.
func askedAgent(t *testing.T, doctor *program, path string) int {
	t.Helper()
	answer := make(chan string, 1)
	go func() {
		up, err := os.Open(path) // waits for the agent
		if err != nil {
			answer <- err.Error()
			return
		}
		text, err := bufio.NewReader(up).ReadString('\n')
		_ = up.Close() // it was only read
		if err != nil {
			text = err.Error()
		}
		answer <- text
	}()
	select {
	case text := <-answer:
		agent, err := strconv.Atoi(strings.TrimSpace(text))
		if err != nil {
			t.Fatalf("the agent said %q: %v", text, err)
		}
		return agent
	case <-doctor.done:
		t.Fatalf("the doctor ended without asking the agent:\n%s%s", doctor.out, doctor.log)
	}
	return 0
}
