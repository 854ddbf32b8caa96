package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"rouse.dev/rouse/internal/pgtest"
)

// terminal is a pair of ends of a terminal: the test's and the program's.
func terminal(t *testing.T) (ours, theirs *os.File) {
	t.Helper()
	ours, err := os.OpenFile("/dev/ptmx", os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close() })
	if err := unix.IoctlSetPointerInt(int(ours.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	number, err := unix.IoctlGetInt(int(ours.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	theirs, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", number), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Fatal(err)
	}
	return ours, theirs
}

// A person at a terminal gets an address to open; what may be kept gets the path alone (see
// TestProgramKeepsItsTokenInAFileOfItsOwnAndNowhereElse for a pipe).
func TestProgramShowsItsTokenOnATerminalAlone(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		args []string
		want bool
	}{
		"on a terminal":                             {nil, true},
		"on a terminal, where no token is asked":    {[]string{"--auth", "none"}, false},
		"on a terminal, of a copy that is restored": {[]string{"--standby"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			data, log := pgtest.Installed(t), &transcript{}
			ours, theirs := terminal(t)
			cmd := exec.Command(binary, append([]string{"serve", "--addr", "127.0.0.1:0", "--data-dir", data}, test.args...)...)
			cmd.Stdout, cmd.Stderr = theirs, log
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				_ = cmd.Process.Signal(syscall.SIGTERM)
				_ = cmd.Wait()
			})
			if err := theirs.Close(); err != nil {
				t.Fatal(err)
			}
			var said strings.Builder
			for lines := bufio.NewScanner(ours); !strings.Contains(said.String(), "Ctrl-C") && lines.Scan(); {
				said.WriteString(lines.Text() + "\n")
			}
			token := tokenIn(t, data)
			if shown := strings.Contains(said.String(), "/#token="+token+"\n"); shown != test.want || strings.Count(said.String(), token[12:]) > 1 {
				t.Errorf("the token is shown: %t\n%s\n%s", shown, said.String(), log)
			}
			if !strings.Contains(said.String(), "sed 's/^/Authorization: Bearer /' "+data+"/token |") {
				t.Errorf("no command that reads the file:\n%s", said.String())
			}
			if strings.Contains(log.String(), token[12:]) {
				t.Error("the token is in the log")
			}
		})
	}
}
