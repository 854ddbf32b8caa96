package proc

import (
	"os"
	"os/exec"
	"testing"
)

func TestParseStat(t *testing.T) {
	rest := " 10 77 78 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0"
	for _, tt := range []struct {
		name, raw string
		want      Stat // the zero value: it cannot be read
		lives     bool
	}{
		{"a plain command", "42 (cat) S" + rest, Stat{'S', 10, 77, 78, 4242}, true},
		{"a command with spaces and parentheses", "42 (a ) Z (b) c) R" + rest, Stat{'R', 10, 77, 78, 4242}, true},
		{"a process that is stopped", "42 (cat) T" + rest, Stat{'T', 10, 77, 78, 4242}, true},
		{"a zombie", "42 (cat) Z" + rest, Stat{'Z', 10, 77, 78, 4242}, false},
		{"a dead process", "42 (cat) X" + rest, Stat{'X', 10, 77, 78, 4242}, false},
		{"nothing", "", Stat{}, false},
		{"a command that does not end", "1 (x", Stat{}, false},
		{"too few fields", "1 (x) S 1", Stat{}, false},
		{"a parent that is no number", "1 (x) S a 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 4242 0 0", Stat{}, false},
		{"a start that is no number", "1 (x) S 1 77 77 0 -1 4194560 1 0 0 0 0 0 0 0 20 0 1 0 -1 0 0", Stat{}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			got, err := ParseStat([]byte(tt.raw))
			if got != tt.want || (err == nil) != (tt.want != Stat{}) {
				t.Errorf("%+v, %v", got, err)
			}
			if err == nil && got.Lives() != tt.lives {
				t.Errorf("lives: %t", got.Lives())
			}
		})
	}
}

func FuzzParseStat(f *testing.F) {
	f.Add([]byte("42 (a) Z (b c) R 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 21"))
	f.Add([]byte(")"))
	f.Fuzz(func(t *testing.T, raw []byte) {
		if got, err := ParseStat(raw); err != nil && got != (Stat{}) {
			t.Errorf("%q: %+v, %v", raw, got, err)
		}
	})
}

func TestThisProcessLives(t *testing.T) {
	started := Started(os.Getpid())
	if !Lives(os.Getpid(), started) || !Lives(os.Getpid(), 0) {
		t.Error("this process counts as dead")
	}
	if _, err := os.Stat("/proc/self/stat"); err == nil && (started == 0 || BootID() == "" || Lives(os.Getpid(), started+1)) {
		t.Errorf("a process that took over the id counts as this one, started %d", started)
	}
}

func TestAnUnknownProcessIsTakenForAlive(t *testing.T) {
	if !Lives(0, 0) {
		t.Error("a lease would be ended without need")
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
	pid, started := child.Process.Pid, Started(child.Process.Pid)
	if !Lives(pid, started) {
		t.Error("a live child counts as dead")
	}
	if err := stdin.Close(); err != nil {
		t.Fatal(err)
	}
	if err := child.Wait(); err != nil {
		t.Fatal(err)
	}
	if Lives(pid, started) {
		t.Error("a child that ended counts as alive")
	}
}
