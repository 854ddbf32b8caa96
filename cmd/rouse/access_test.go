package main

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"rouse.dev/rouse/internal/pgtest"
)

// ask sends the version's query with headers, and gives the status and the answer.
func (p *program) ask(headers ...string) (int, string) {
	p.t.Helper()
	req, err := http.NewRequestWithContext(p.t.Context(), http.MethodPost, p.url, strings.NewReader(`{"query":"{ process { version } }"}`))
	if err != nil {
		p.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for _, line := range headers {
		name, value, _ := strings.Cut(line, ": ")
		if name == "Host" {
			req.Host = value
		}
		req.Header.Set(name, value)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		p.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		p.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

// Where somebody comes from opens nothing: a proxy on this machine makes all the world a neighbour.
func TestProgramAsksForATokenWhereverACallerComesFrom(t *testing.T) {
	t.Parallel()
	p := start(t, pgtest.Installed(t), nil)
	for name, headers := range map[string][]string{
		"from this machine":                     nil,
		"through a proxy that passes Host on":   {"Host: localhost"},
		"through a proxy that says for whom":    {"X-Forwarded-For: 203.0.113.7", "Host: 127.0.0.1"},
		"with a token that is empty":            {"Authorization: Bearer "},
		"with a token of nobody":                {"Authorization: Bearer rse_" + strings.Repeat("a1", 22)},
		"with the token as a password":          {"Authorization: Basic " + p.owner},
		"with the token in a cookie":            {"Cookie: token=" + p.owner},
		"with a header that names an account":   {"X-Forwarded-User: root"},
		"with an origin of this machine's page": {"Origin: " + strings.TrimSuffix(p.url, "/graphql")},
	} {
		if status, body := p.ask(headers...); status != http.StatusUnauthorized || !strings.Contains(body, "UNAUTHENTICATED") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if status, body := p.ask("Authorization: Bearer "+p.owner, "Host: rouse.example", "X-Forwarded-For: 203.0.113.7"); status != http.StatusOK {
		t.Errorf("with the token, through a proxy: %d %s", status, body)
	}
}

func TestProgramKeepsItsTokenInAFileOfItsOwnAndNowhereElse(t *testing.T) {
	t.Parallel()
	data := pgtest.Folder(t)
	p := start(t, data, nil, "--log-level", "debug")
	info, err := os.Stat(filepath.Join(data, "token"))
	if err != nil || info.Mode().Perm() != 0o600 || info.Sys().(*syscall.Stat_t).Uid != uint32(os.Geteuid()) {
		t.Errorf("the file: %v, %v", info.Mode(), err)
	}
	arguments, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", p.cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	if said := p.out.String(); !strings.Contains(said, "\n  Token      "+filepath.Join(data, "token")+"\n") || !strings.Contains(said, "GraphiQL   "+strings.TrimSuffix(p.url, "graphql")+"\n") {
		t.Errorf("it says\n%s", said)
	}
	if status, body := p.post(p.owner, "{ process { version } }", nil); status != 200 {
		t.Errorf("%d %s", status, body)
	}
	if code := p.end(syscall.SIGTERM); code != 0 {
		t.Errorf("exit %d", code)
	}
	for name, text := range map[string]string{"log": p.log.String(), "output": p.out.String(), "arguments": string(arguments)} {
		if strings.Contains(text, p.owner[len("rse_")+8:]) {
			t.Errorf("the token is in the %s", name)
		}
	}
}

func TestProgramGivesItsFolderAnotherToken(t *testing.T) {
	t.Parallel()
	data := pgtest.Installed(t)
	p := start(t, data, nil)
	idle := p.socket(p.owner)
	for _, running := range []bool{true, false} {
		if !running {
			p.end(syscall.SIGTERM)
		}
		rotate := launch(t, nil, "token", "rotate-local", "--data-dir", data)
		if code := rotate.wait(); code != 0 || !strings.HasPrefix(rotate.out.String(), filepath.Join(data, "token")+" holds another token, tok_") {
			t.Fatalf("exit %d: %s%s", code, rotate.out, rotate.log)
		}
		old := p.owner
		if !running {
			p = start(t, data, nil)
		}
		p.owner = tokenIn(t, data)
		if strings.Contains(rotate.out.String()+rotate.log.String(), p.owner[12:]) {
			t.Error("the token is in the command's output")
		}
		if status, body := p.post(old, "{ process { version } }", nil); status != 401 {
			t.Errorf("running %t, the one before: %d %s", running, status, body)
		}
		if status, body := p.post(p.owner, "{ process { version } }", nil); status != 200 {
			t.Errorf("running %t, the new one: %d %s", running, status, body)
		}
		if running {
			wantClose(t, idle, 4403)
		}
	}
	list := launch(t, nil, "token", "list", "--data-dir", data)
	if list.wait(); strings.Count(list.out.String(), "local token of ") != 3 || strings.Count(list.out.String(), "revoked") != 2 {
		t.Errorf("the list:\n%s", list.out)
	}
}

func TestProgramWithoutTokensAnswersItsOwnMachineAlone(t *testing.T) {
	t.Parallel()
	refused := launch(t, nil, "serve", "--auth", "none", "--addr", "0.0.0.0:0", "--data-dir", pgtest.Folder(t))
	if code := refused.wait(); code != 2 || !strings.Contains(refused.log.String(), "--auth (ROUSE_AUTH): none is for this machine alone") {
		t.Errorf("exit %d: %s", code, refused.log)
	}
	data := pgtest.Installed(t)
	p := start(t, data, []string{"ROUSE_AUTH=none"}, "--standby")
	if said := p.out.String(); !strings.Contains(said, "none is asked (--auth none): every process of this machine, agents too, can do everything") {
		t.Errorf("it says\n%s", said)
	}
	for name, test := range map[string]struct {
		headers []string
		status  int
		says    string
	}{
		"a program of this machine":            {nil, 200, "version"},
		"its token":                            {[]string{"Authorization: Bearer " + p.owner}, 200, "version"},
		"a wrong token":                        {[]string{"Authorization: Bearer rse_" + strings.Repeat("a1", 22)}, 401, "not known"},
		"through nginx as it is made":          {[]string{"Host: 127.0.0.1:8080", "X-Forwarded-For: 203.0.113.7"}, 403, "X-Forwarded-For"},
		"through a proxy, with its token":      {[]string{"X-Real-IP: 203.0.113.7", "Authorization: Bearer " + p.owner}, 403, "X-Real-Ip"},
		"through a proxy of the standard":      {[]string{"Forwarded: for=203.0.113.7"}, 403, "Forwarded"},
		"through a proxy that names itself":    {[]string{"Via: 1.1 varnish"}, 403, "Via"},
		"under another name":                   {[]string{"Host: evil.example"}, 403, "DNS rebinding"},
		"from a page of somewhere else":        {[]string{"Origin: https://evil.example"}, 403, "not on this machine"},
		"from a page of another port, by POST": {[]string{"Origin: http://localhost:3000"}, 403, "another origin"},
	} {
		if status, body := p.ask(test.headers...); status != test.status || !strings.Contains(body, test.says) {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	doctor := launch(t, nil, "doctor", "--data-dir", data)
	if code := doctor.wait(); code != 0 || !strings.Contains(doctor.out.String(), "asks for no token (--auth none)") {
		t.Errorf("exit %d: %s", code, doctor.out)
	}
}

// As root, agents run under another account, which reads neither the file nor the server's memory or environment. An
// ordinary user's agents run as that user, and can: docs/security.md says so.
func TestProgramsAgentsReadItsTokenOnlyWhenTheyRunAsItsOwner(t *testing.T) {
	t.Parallel()
	p := start(t, newWorkshop(t).dir, nil)
	j := newJourney(p)
	script := fmt.Sprintf(`cat >/dev/null
for f in %[1]s/token %[1]s/secret.key /proc/%[2]d/environ /proc/%[2]d/maps; do cat "$f" >/dev/null 2>&1 && echo "read $f"; done
curl -sS -H 'Content-Type: application/json' -d '{"query":"{ process { version } }"}' %[3]s
echo; echo '{"summary": "tried"}'`, p.data, p.cmd.Process.Pid, p.url)
	run := j.end(j.wake(j.script("curious", script)))
	lines := strings.Join(run.lines(), "\n")
	if !strings.Contains(lines, "UNAUTHENTICATED") || run.Summary != "tried" {
		t.Errorf("an agent without its token:\n%s", lines)
	}
	if read := strings.Contains(lines, "read "); read == (os.Geteuid() == 0) {
		t.Errorf("as uid %d its agents read:\n%s", os.Geteuid(), lines)
	}
}
