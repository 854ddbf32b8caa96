package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"

	"rouse.dev/rouse/internal/pgtest"
)

// outside is a proxy as docs/proxy.md sets it up, as callers elsewhere reach it.
type outside struct {
	t        *testing.T
	address  string // of the proxy
	ca       *x509.CertPool
	api      string // its names, with its port
	webhooks string
}

// behindNginx runs Debian's nginx with the settings of docs/proxy.md in front of a program.
func behindNginx(t *testing.T, p *program) outside {
	t.Helper()
	program, err := exec.LookPath("nginx")
	if err != nil {
		if program, err = exec.LookPath("/usr/sbin/nginx"); err != nil {
			t.Fatal("this test runs nginx, which is not installed: apt-get install --no-install-recommends nginx")
		}
	}
	dir := pgtest.Folder(t)
	o := outside{t: t, address: freeAddress(t), ca: x509.NewCertPool()}
	_, port, err := net.SplitHostPort(o.address)
	if err != nil {
		t.Fatal(err)
	}
	o.api, o.webhooks = "rouse.example.com:"+port, "hooks.example.com:"+port
	certify(t, dir, o.ca)
	site := strings.NewReplacer(
		"listen 443 ssl", "listen "+o.address+" ssl",
		"/etc/ssl/certs/rouse.pem", dir+"/rouse.pem", "/etc/ssl/private/rouse.key", dir+"/rouse.key",
		"127.0.0.1:8080", hostOf(t, p.url), "127.0.0.1:8082", hostOf(t, p.webhooks()),
	).Replace(blockOf(t, "../../docs/proxy.md", "nginx"))
	// The rest of what Debian's nginx.conf says, within a folder of the test.
	main := fmt.Sprintf("daemon off;\nuser root;\npid %[1]s/nginx.pid;\nerror_log stderr;\nevents {}\nhttp {\naccess_log off;\n%[2]s%[3]s\n}\n", dir, temporaryPaths(dir), site)
	file := filepath.Join(dir, "nginx.conf")
	if err := os.WriteFile(file, []byte(main), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "-p", dir, "-e", "stderr", "-c", file)
	log := &transcript{}
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait() // that it was ended is no failure
		if t.Failed() {
			t.Logf("nginx:\n%s", log)
		}
	})
	eventually(t, "nginx answers", patience, func() bool {
		c, err := net.Dial("tcp", o.address)
		if err != nil {
			return false
		}
		_ = c.Close() // it was only to look
		return true
	})
	return o
}

func temporaryPaths(dir string) string {
	var b strings.Builder
	for _, kind := range []string{"client_body", "proxy", "fastcgi", "uwsgi", "scgi"} {
		fmt.Fprintf(&b, "%s_temp_path %s/%s;\n", kind, dir, kind)
	}
	return b.String()
}

// blockOf is the first fenced block of a language in a document.
func blockOf(t *testing.T, file, language string) string {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, after, found := strings.Cut(string(text), "```"+language+"\n")
	block, _, ended := strings.Cut(after, "```")
	if !found || !ended {
		t.Fatalf("%s has no block of %s", file, language)
	}
	return block
}

func hostOf(t testing.TB, address string) string {
	t.Helper()
	u, err := url.Parse(address)
	if err != nil || u.Host == "" {
		t.Fatalf("%q is no address: %v", address, err)
	}
	return u.Host
}

// freeAddress is one that nobody listens on just now.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// certify writes a certificate for the names of docs/proxy.md, and its key.
func certify(t *testing.T, dir string, pool *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "example.com"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{"rouse.example.com", "hooks.example.com", "localhost"}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"rouse.pem": {Type: "CERTIFICATE", Bytes: der}, "rouse.key": {Type: "PRIVATE KEY", Bytes: secret}} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool.AddCert(certificate)
}

// client reaches the proxy under any name.
func (o outside) client() *http.Client {
	return &http.Client{Transport: &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{RootCAs: o.ca},
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, network, o.address)
		}}}
}

// post sends a body to a name of the proxy, and returns the status and the answer.
func (o outside) post(host, path, body string, headers map[string]string) (int, string) {
	o.t.Helper()
	req, err := http.NewRequestWithContext(o.t.Context(), http.MethodPost, "https://"+host+path, strings.NewReader(body))
	if err != nil {
		o.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	for name, value := range headers {
		if name == "Host" {
			req.Host = value
			continue
		}
		req.Header.Set(name, value)
	}
	resp, err := o.client().Do(req)
	if err != nil {
		o.t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil {
		o.t.Fatal(err)
	}
	return resp.StatusCode, string(answer)
}

// What docs/proxy.md promises, through Debian's nginx.
func TestBehindNginxOnlyTokensCount(t *testing.T) {
	t.Parallel()
	p := start(t, pgtest.Installed(t), nil, "--webhook-addr", "127.0.0.1:0")
	o := behindNginx(t, p)
	token := "Bearer " + p.owner
	const who = `{"query":"{ process { version } }"}`
	for name, tt := range map[string]struct {
		host, path string
		headers    map[string]string
		status     int
	}{
		"no token":                                {o.api, "/graphql", nil, 401},
		"the token":                               {o.api, "/graphql", map[string]string{"Authorization": token}, 200},
		"a name of this machine":                  {o.api, "/graphql", map[string]string{"Host": "localhost"}, 401},
		"a name and port of this machine":         {o.api, "/graphql", map[string]string{"Host": hostOf(t, p.url)}, 401},
		"an address of this machine as client":    {o.api, "/graphql", map[string]string{"X-Forwarded-For": "127.0.0.1", "X-Real-Ip": "127.0.0.1", "Forwarded": "for=127.0.0.1;host=localhost"}, 401},
		"a forwarded name of this machine":        {o.api, "/graphql", map[string]string{"X-Forwarded-Host": "localhost", "Host": "localhost"}, 401},
		"the console's own page":                  {o.api, "/graphql", map[string]string{"Authorization": token, "Origin": "https://" + o.api}, 200},
		"a page of the same name, another port":   {o.api, "/graphql", map[string]string{"Authorization": token, "Origin": "https://rouse.example.com"}, 403},
		"a foreign page":                          {o.api, "/graphql", map[string]string{"Authorization": token, "Origin": "https://evil.example"}, 403},
		"a webhook that is none":                  {o.webhooks, "/api/routine-triggers/none/fire", nil, 404},
		"the API at the webhooks' name":           {o.webhooks, "/graphql", map[string]string{"Authorization": token}, 404},
		"a webhook at the API's name":             {o.api, "/api/routine-triggers/none/fire", nil, 404},
		"the API through a webhook's path":        {o.webhooks, "/api/routine-triggers/../../graphql", map[string]string{"Authorization": token}, 404},
		"the API through a hidden webhook's path": {o.webhooks, "/api/routine-triggers/%2e%2e/%2e%2e/graphql", map[string]string{"Authorization": token}, 404},
	} {
		if status, body := o.post(tt.host, tt.path, who, tt.headers); status != tt.status {
			t.Errorf("%s: %d, want %d: %s", name, status, tt.status, body)
		}
	}
	o.fireWebhook(newJourney(p))
	o.followRun(newJourney(p), token)
}

// fireWebhook fires through the proxy, which is the only way: the API's listener has no webhooks.
func (o outside) fireWebhook(j journey) {
	var made struct {
		CreateRoutine struct {
			Routine struct {
				Triggers []struct{ Path, SampleCurl string }
			}
			Secrets []struct{ Secret string }
		}
	}
	j.request(`mutation($in: CreateRoutineInput!) { createRoutine(input: $in) { routine { triggers { ... on WebhookTrigger { path sampleCurl } } } secrets { secret } userErrors { message } } }`,
		map[string]any{"in": map[string]any{"workspaceId": j.workspace, "name": "Hooked", "assigneeId": j.agent("Hooked", map[string]any{"echo": map[string]any{}}),
			"description": "Build it.", "triggers": []any{map[string]any{"webhook": map[string]any{"signingMode": "BEARER"}}}}}, &made)
	hook := made.CreateRoutine.Routine.Triggers[0]
	if !strings.Contains(hook.SampleCurl, j.webhooks()+hook.Path) {
		o.t.Errorf("the sample is for another address than %s: %s", j.webhooks(), hook.SampleCurl)
	}
	secret := "Bearer " + made.CreateRoutine.Secrets[0].Secret
	for name, tt := range map[string]struct {
		host, secret string
		want         int
	}{
		"its secret":                    {o.webhooks, secret, 202},
		"another secret":                {o.webhooks, "Bearer wrong", 401},
		"its secret at the API's name":  {o.api, secret, 404},
		"no secret at the API's name":   {o.api, "", 404},
		"no secret at webhooks' name":   {o.webhooks, "", 401},
		"its secret, from its own host": {o.webhooks, secret, 202},
	} {
		headers := map[string]string{}
		if tt.secret != "" {
			headers["Authorization"] = tt.secret
		}
		if status, body := o.post(tt.host, hook.Path, "{}", headers); status != tt.want {
			o.t.Errorf("webhook with %s: %d, want %d: %s", name, status, tt.want, body)
		}
	}
}

// followRun reads an agent's lines through the proxy as they come: the agent waits for the test before each next one.
func (o outside) followRun(j journey, token string) {
	shop := newWorkshop(o.t)
	run := j.wake(j.script("Slow", shop.threeLines()))
	conn, _, err := websocket.Dial(o.t.Context(), "wss://"+o.api+"/graphql", &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}, HTTPClient: o.client()})
	if err != nil {
		o.t.Fatal(err)
	}
	defer conn.CloseNow()
	s := &stream{t: o.t, conn: conn}
	s.send("", "connection_init", map[string]any{"Authorization": token})
	if m, err := s.next(); err != nil || m.Type != "connection_ack" {
		o.t.Fatalf("connection_init: %+v, %v", m, err)
	}
	s.send("1", "subscribe", map[string]any{"query": followRun, "variables": map[string]any{"id": run}})
	for i := range 3 {
		for s.line() != fmt.Sprint("line ", i+1) {
		}
		shop.touch(o.t, fmt.Sprint("seen", i+1))
	}
	if end := j.end(run); end.Status != "FINISHED" {
		o.t.Errorf("the run is %+v", end)
	}
	refused, _, err := websocket.Dial(o.t.Context(), "wss://"+o.api+"/graphql", &websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}, HTTPClient: o.client()})
	if err != nil {
		o.t.Fatal(err)
	}
	defer refused.CloseNow()
	if err := wsjson.Write(o.t.Context(), refused, message{Type: "connection_init"}); err != nil {
		o.t.Fatal(err)
	}
	var m message
	if err := wsjson.Read(o.t.Context(), refused, &m); websocket.CloseStatus(err) != 4403 {
		o.t.Errorf("a socket without a token: %+v, %v", m, err)
	}
}

// webhooks is the address that the program printed for webhooks.
func (p *program) webhooks() string {
	p.t.Helper()
	for line := range bytes.Lines([]byte(p.out.String())) {
		if fields := strings.Fields(string(line)); len(fields) == 2 && fields[0] == "Webhooks" {
			return fields[1]
		}
	}
	p.t.Fatalf("no address of webhooks in\n%s", p.out)
	return ""
}
