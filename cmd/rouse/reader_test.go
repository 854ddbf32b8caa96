package main

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"rouse.dev/rouse/internal/pgtest"
	"rouse.dev/rouse/internal/postgres"
)

// reader is a person who reads the documents and pastes their commands into a shell, in a home of their own, beside a program that was
// started as the documents say.
type reader struct {
	*program
	*session
	t      *testing.T
	blocks map[string]string
	home   string
	place  []string // what a command begins with to be where /var/lib is the reader's; nothing for an ordinary user
}

func newReader(t *testing.T, shell string) *reader {
	t.Helper()
	r := &reader{t: t, blocks: blocksOfTheDocuments(t), home: pgtest.Folder(t)}
	data, seen := pgtest.Installed(t), ""
	seen = data // where the program sees it
	if os.Geteuid() == 0 {
		r.place, seen = ownLibrary(t, r.home, data), "/var/lib/rouse"
	}
	for name, to := range map[string]string{".rouse": seen, "rouse": binary} {
		if err := os.Symlink(to, filepath.Join(r.home, name)); err != nil {
			t.Fatal(err)
		}
	}
	r.program = launchIt(t, r.command(binary, "serve", "--addr", "127.0.0.1:0", "--drain", "1s", "--data-dir", seen), nil)
	r.program.ready(data)
	address := strings.TrimSuffix(strings.TrimPrefix(r.url, "http://"), "/graphql")
	if err := os.WriteFile(filepath.Join(r.home, ".curlrc"), []byte("connect-to = \"127.0.0.1:8080:"+address+"\"\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r.session = r.open(shell)
	r.enter("export ROUSE_DATA_DIR=" + seen)
	return r
}

// ownLibrary gives what a command begins with to see data as /var/lib/rouse, and to have the rest of /var/lib in home: what the
// documents' commands make there is no one else's.
func ownLibrary(t *testing.T, home, data string) []string {
	t.Helper()
	const mount = `cd "$1" && mkdir -p lib/rouse lib/rouse-uids /var/lib/rouse-uids && mount --bind "$2" lib/rouse && mount --bind /var/lib/rouse-uids lib/rouse-uids &&
mount --rbind lib /var/lib && echo mounted && exec cat`
	holder := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-c", mount, "sh", home, data)
	holder.Stderr = os.Stderr
	in, err := holder.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		if err := holder.Wait(); err != nil {
			t.Error(err)
		}
	})
	if line, err := bufio.NewReader(out).ReadString('\n'); err != nil || line != "mounted\n" {
		t.Fatalf("mount a /var/lib of its own: %q, %v", line, err)
	}
	return []string{"nsenter", "--mount=/proc/" + strconv.Itoa(holder.Process.Pid) + "/ns/mnt", "--"}
}

// command is one in the reader's place.
func (r *reader) command(args ...string) *exec.Cmd {
	args = append(append([]string{}, r.place...), args...)
	return exec.Command(args[0], args[1:]...)
}

// paste pastes a block, waits for its end, and gives what came of it.
func (r *reader) paste(block string) string {
	r.t.Helper()
	if r.blocks[block] == "" {
		r.t.Fatalf("no document has %s", block)
	}
	return r.session.paste(block, r.blocks[block])
}

// session is a shell into which commands are pasted.
type session struct {
	t     *testing.T
	shell string
	cmd   *exec.Cmd
	in    io.Writer
	out   *transcript
	done  chan struct{}
	from  int // where in out the answer to what was sent last begins
	marks int
}

// open starts a shell in the reader's home.
func (r *reader) open(shell string) *session {
	r.t.Helper()
	binaries, err := postgres.FindBinaries()
	if err != nil {
		r.t.Fatal(err)
	}
	s := &session{t: r.t, shell: shell, out: &transcript{}, done: make(chan struct{})}
	s.cmd = r.command(append([]string{"sh", "-c", `cd "$HOME" && exec "$@"`, "sh"}, shells[shell]...)...)
	s.cmd.Env = []string{"HOME=" + r.home, "PATH=" + r.home + ":" + binaries.Dir + ":/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin", "LC_ALL=C.UTF-8", raceVariable + "=" + raceExit}
	s.cmd.Stdout, s.cmd.Stderr = s.out, s.out
	s.cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a terminal of the test's own stays out of it
	if s.in, err = s.cmd.StdinPipe(); err != nil {
		r.t.Fatal(err)
	}
	if err := s.cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	go func() {
		defer close(s.done)
		_ = s.cmd.Wait() // it is killed
	}()
	r.t.Cleanup(func() {
		_ = syscall.Kill(-s.cmd.Process.Pid, syscall.SIGKILL) // and what was started in it
		<-s.done
	})
	s.send("PS1= PS2= PROMPT= PROMPT2=")
	s.await("0")
	return s
}

// send pastes text, and behind it a mark, which comes back with the status of the last command.
func (s *session) send(text string) {
	s.t.Helper()
	s.marks++
	s.from = len(s.out.String())
	if _, err := fmt.Fprintf(s.in, "%s\nprintf '\\nmark %d is %%d\\n' \"$?\"\n", strings.TrimSuffix(text, "\n"), s.marks); err != nil {
		s.t.Fatalf("%s: %v\n%s", s.shell, err, s.out)
	}
}

// said is what came since the last send.
func (s *session) said() string { return s.out.String()[s.from:] }

// await waits for the mark of the last send and gives what came before it. A status that is none of those given fails the test.
func (s *session) await(good ...string) string {
	s.t.Helper()
	mark := regexp.MustCompile(fmt.Sprintf(`\nmark %d is (\d+)\n`, s.marks))
	var found []int
	eventually(s.t, s.shell+" has done what was pasted", patience, func() bool {
		found = mark.FindStringSubmatchIndex(s.said())
		return found != nil
	})
	said := s.said()
	if status := said[found[2]:found[3]]; !slices.Contains(good, status) {
		s.t.Errorf("in %s the last command's status is %s:\n%s", s.shell, status, said)
	}
	return said[:found[0]]
}

// enter types one line in.
func (s *session) enter(line string) string {
	s.t.Helper()
	s.send(line)
	return s.await("0")
}

func (s *session) paste(name, text string) string {
	s.t.Helper()
	s.send(text)
	said := s.await("0")
	s.check(name, said)
	return said
}

// trouble is what shells, the programs of the documents' commands and the API say when something is wrong.
var trouble = regexp.MustCompile(`(?m)^.*(?:(?:^|\s)(?:bash|zsh|sh|gq|look|curl|sed|grep|tr|rouse|install|seq|kill|pg_dump|pg_restore|createdb|dropdb):|"errors":|"userErrors":\[\{|level=ERROR).*$`)

// check looks for signs of trouble in what came of a block. zsh says of each comment that it is no command, which does no harm.
func (s *session) check(name, said string, harmless ...string) {
	s.t.Helper()
lines:
	for _, line := range trouble.FindAllString(said, -1) {
		for _, h := range append(harmless, "zsh: command not found: #") {
			if strings.Contains(line, h) {
				continue lines
			}
		}
		s.t.Errorf("%s\nin %s it says: %s", name, s.shell, line)
	}
}

// interrupt sends what Ctrl-C sends, to the shell and all it started.
func (s *session) interrupt() {
	s.t.Helper()
	if err := syscall.Kill(-s.cmd.Process.Pid, syscall.SIGINT); err != nil {
		s.t.Error(err)
	}
}

// summariesOf are those of the runs of an agent of the demo's workspace.
func (r *reader) summariesOf(agent string) (list []string) {
	r.t.Helper()
	var out struct {
		Workspace struct {
			Runs struct {
				Edges []struct {
					Node struct {
						Summary string
						Agent   struct{ Name string }
					}
				}
			}
		}
	}
	r.request(`{ workspace(slug: "demo") { runs(first: 100) { edges { node { summary agent { name } } } } } }`, nil, &out)
	for _, e := range out.Workspace.Runs.Edges {
		if e.Node.Agent.Name == agent {
			list = append(list, e.Node.Summary)
		}
	}
	return list
}
