//go:build linux

package server

import (
	"bytes"
	"context"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rouse.dev/rouse/internal/account"
	"rouse.dev/rouse/internal/edge"
	"rouse.dev/rouse/internal/pgtest"
)

// callAs runs call in a process of another account; nil is our own.
func callAs(t *testing.T, program, url string, a *account.Account) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), program)
	cmd.Dir, cmd.Env = "/", []string{callVariable + "=" + url}
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: a.Credential()}
	var complaint bytes.Buffer
	cmd.Stderr = &complaint
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %s%s", err, out, complaint.Bytes())
	}
	return string(out)
}

// reachable copies the test program to where any account can start it.
func reachable(t *testing.T) string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.ReadFile(self)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(pgtest.Folder(t), "caller")
	if err := os.WriteFile(path, program, 0o755); err != nil { //nolint:gosec // others are to start it
		t.Fatal(err)
	}
	return path
}

func TestAgentsAreNotTheOwnerOfTheMachine(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can start a process of another account; elsewhere agents run as their server does")
	}
	_, address := pgtest.NewURL(t)
	stop, cancel := context.WithCancel(t.Context())
	out := &screen{ready: make(chan struct{})}
	done := make(chan error, 1)
	go func() {
		done <- Run(stop, t.Context(), Options{Config: settings(t, address), Version: "test", Stdout: out, Log: quiet()})
	}()
	defer func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}()
	select {
	case <-out.ready:
	case err := <-done:
		done <- nil
		t.Fatal(err)
	}
	url := apiOf(t, out.String())
	program := reachable(t)
	agents, err := account.ForCommands("")
	if err != nil {
		t.Fatal(err)
	}
	if got := callAs(t, program, url, agents); !strings.HasPrefix(got, "401 ") || !strings.Contains(got, edge.CodeUnauthenticated) ||
		!strings.Contains(got, "ROUSE_RUN_TOKEN") || !strings.Contains(got, "4403") || strings.Contains(got, "connection_ack") {
		t.Errorf("an agent without a token: %s", got)
	}
	for name, a := range map[string]*account.Account{"root": nil, "another person": {UID: 12345, GID: 12345}} {
		if got := callAs(t, program, url, a); !strings.HasPrefix(got, "200 ") || !strings.Contains(got, "connection_ack") {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// apiOf finds the address of the API in the announcement.
func apiOf(t *testing.T, announcement string) string {
	t.Helper()
	for _, word := range strings.Fields(announcement) {
		if strings.HasPrefix(word, "http://") && strings.HasSuffix(word, graphqlPath) {
			return word
		}
	}
	t.Fatalf("no API in %s", announcement)
	return ""
}

func TestAConnectionOfWhichNothingIsKnownIsAnAgents(t *testing.T) {
	agents := &account.Account{Name: "nobody", UID: 65534}
	refused := func(ctx context.Context) error {
		g := &gatekeeper{tokens: newBook(), local: true, agents: agents, sockets: &liveSockets{}}
		_, err := g.authenticate(ctx, edge.Credentials{})
		return err
	}
	if err := refused(t.Context()); !errors.Is(err, errUnknownPeer) {
		t.Errorf("no connection: %v", err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	client, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	conn, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	ctx := withPeer(t.Context(), conn)
	later := withPeer(t.Context(), conn)
	if err := refused(ctx); err != nil {
		t.Errorf("our own: %v", err)
	}
	if err := client.Close(); err != nil {
		t.Fatal(err)
	}
	if err := refused(later); !errors.Is(err, errUnknownPeer) {
		t.Errorf("a socket that its process gave up: %v", err)
	}
	if err := refused(ctx); err != nil {
		t.Errorf("what was found out is asked for again: %v", err)
	}
}
