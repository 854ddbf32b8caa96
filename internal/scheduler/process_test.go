package scheduler

import (
	"errors"
	"os"
	"os/exec"
	"strings"
	"testing"
)

func TestThisProcessIsAlive(t *testing.T) {
	me, err := ThisProcess()
	if err != nil {
		t.Fatal(err)
	}
	if me.ID.Prefix() != "prc" || me.Host == "" || me.PID != os.Getpid() {
		t.Errorf("this process is %+v", me)
	}
	if !alive(me.PID, me.Started) {
		t.Error("this process counts as dead")
	}
	if _, err := os.Stat("/proc/self/stat"); err == nil && (me.BootID == "" || me.Started == 0 || alive(me.PID, me.Started+1)) {
		t.Errorf("a process that took over the id counts as this one: %+v", me)
	}
}

func TestAProcessThatEndedIsDead(t *testing.T) {
	child := exec.Command("cat")
	stdin, err := child.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := child.Start(); err != nil {
		t.Fatal(err)
	}
	pid := child.Process.Pid
	started, _ := startTime(pid)
	if !alive(pid, started) {
		t.Error("a live child counts as dead")
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	if alive(pid, started) {
		t.Error("a child that ended counts as alive")
	}
}

func TestAnUnknownProcessIsTakenForAlive(t *testing.T) {
	if !alive(0, 0) || !alive(os.Getpid(), 0) {
		t.Error("a lease would be ended without need")
	}
}

func TestProcessStatus(t *testing.T) {
	rest := " 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21"
	tests := []struct {
		name, raw string
		want      int64
		err       error
	}{
		{"a plain command", "42 (cat) S" + rest, 4711, nil},
		{"a command with spaces and parentheses", "42 (a) Z (b c) R" + rest, 4711, nil},
		{"a zombie", "42 (cat) Z" + rest, 0, errZombie},
		{"a dead process", "42 (cat) X" + rest, 0, errZombie},
		{"too short", "42 (cat) S 1 2", 0, errAny},
		{"no number", "42 (cat) S" + strings.Replace(rest, "4711", "x", 1), 0, errAny},
		{"nothing", "", 0, errAny},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, err := parseStat([]byte(tt.raw))
			if got != tt.want || (err == nil) != (tt.err == nil) || tt.err != nil && !errors.Is(tt.err, errAny) && !errors.Is(err, tt.err) {
				t.Errorf("parseStat(%q) = %d, %v", tt.raw, got, err)
			}
		})
	}
}

// errAny stands for whatever error.
var errAny = errors.New("any")

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (a) Z (b c) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21"))
	f.Add([]byte(")"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if started, err := parseStat(raw); err != nil && started != 0 {
			t.Errorf("parseStat(%q) = %d, %v", raw, started, err)
		}
	})
}
