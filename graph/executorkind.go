package graph

import (
	"fmt"
	"net/textproto"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/preset"
	"rouse.dev/rouse/internal/xid"
)

// Bounds of an agent service's settings.
const (
	urlMax       = 2000
	secretMin    = 16
	secretMax    = 1000
	reservedHead = "X-Rouse-" // headers that the executor sets itself
)

var headerName = regexp.MustCompile(`^[A-Za-z0-9!#$%&'*+.^_|~-]{1,100}$`)

// headersOfHTTP are set by the executor or belong to one connection.
var headersOfHTTP = []string{
	"Accept-Encoding", "Connection", "Content-Encoding", "Content-Length", "Content-Type", "Expect", "Host", "Keep-Alive", "Proxy-Connection", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "User-Agent",
}

func acpSpec(r *inputProblems, a *model.AcpExecutorInput, path []string, holder xid.ID, sealer Sealer) (*domain.ExecutorSpec, error) {
	checkACPProgram(r, a, path)
	folder := valueOf(a.WorkingDirectory)
	if folder == "" && a.Checkout == nil {
		r.add(below(path, "workingDirectory"), domain.UserErrorCodeRequired, "name the folder that the agent works in, e.g. /srv/work, or give a checkout")
	}
	checkFolder(r, folder, below(path, "workingDirectory"))
	checkout := checkoutSpec(r, a.Checkout, folder, path)
	checkVariables(r, a.Environment, below(path, "environment"))
	checkToolServers(r, a.McpServers, a.Environment, below(path, "mcpServers"))
	r.duration(below(path, "timeout"), a.Timeout, timeoutMin, timeoutMax)
	if len(r.list) > 0 {
		return nil, domain.AsUserError(r.list)
	}
	sealed, err := sealAll(a.Environment, holder, sealer)
	if err != nil {
		return nil, err
	}
	return &domain.ExecutorSpec{ACP: &domain.ACPSpec{
		Preset: valueOf(a.Preset), Argv: a.Argv, WorkingDirectory: folder, Checkout: checkout, Environment: sealed, Timeout: a.Timeout, Permissions: a.Permissions,
		NoTools: !a.Mcp, ToolServers: toolServers(a.McpServers),
	}}, nil
}

// checkACPProgram refuses an agent of the protocol that is not known, and arguments that are none.
func checkACPProgram(r *inputProblems, a *model.AcpExecutorInput, path []string) {
	if _, known := preset.FindACP(valueOf(a.Preset)); a.Preset != nil && !known {
		r.add(below(path, "preset"), domain.UserErrorCodeInvalid, "%q is no known agent of the protocol; there are %s. For any other leave preset out and give argv", *a.Preset, strings.Join(preset.ACPNames(), ", "))
	}
	if a.Preset == nil || len(a.Argv) > 0 {
		checkArguments(r, a.Argv, below(path, "argv"))
	}
}

func httpSpec(r *inputProblems, h *model.HTTPExecutorInput, path []string, holder xid.ID, sealer Sealer) (*domain.ExecutorSpec, error) {
	checkURL(r, h.URL, below(path, "url"))
	checkHeaders(r, h.Headers, below(path, "headers"))
	if n := len(valueOf(h.Secret)); h.Secret != nil && (n < secretMin || n > secretMax) {
		r.add(below(path, "secret"), domain.UserErrorCodeOutOfRange, "must be %d to %d bytes; `openssl rand -hex 32` makes a good one", secretMin, secretMax)
	}
	if h.KeepSecret && h.Secret != nil {
		r.add(below(path, "keepSecret"), domain.UserErrorCodeInvalid, "keeps the stored secret, and secret gives another one: leave one of them out")
	}
	r.duration(below(path, "timeout"), h.Timeout, timeoutMin, timeoutMax)
	r.duration(below(path, "grace"), h.Grace, 0, graceMax)
	if len(r.list) > 0 {
		return nil, domain.AsUserError(r.list)
	}
	spec := &domain.HTTPSpec{URL: h.URL, Timeout: h.Timeout, Grace: &h.Grace, KeepSecret: h.KeepSecret}
	var err error
	if spec.Headers, err = sealAll(h.Headers, holder, sealer); err != nil {
		return nil, err
	}
	if h.Secret != nil {
		if spec.Secret, err = sealer.Seal(*h.Secret, domain.SealPlace(holder, domain.HTTPSecretName)); err != nil {
			return nil, fmt.Errorf("seal the signing secret of %s: %w", holder, err)
		}
	}
	return &domain.ExecutorSpec{HTTP: spec}, nil
}

// checkURL accepts addresses of services that can be called and shown. It refuses secrets in them.
func checkURL(r *inputProblems, text string, path []string) {
	u, err := url.Parse(text)
	switch {
	case text == "":
		r.add(path, domain.UserErrorCodeRequired, "name the address of the agent service, e.g. https://agents.example.com/run")
	case err != nil || !plain(text) || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || u.Opaque != "" || u.Fragment != "":
		r.add(path, domain.UserErrorCodeInvalid, "must be an http or https address, e.g. https://agents.example.com/run")
	case !isPort(u.Port()) || strings.HasSuffix(u.Host, ":"):
		r.add(path, domain.UserErrorCodeInvalid, "must name a port from 1 to 65535 after the host's colon, or leave both out")
	case u.User != nil:
		r.add(path, domain.UserErrorCodeInvalid, "must hold no user and password, which everybody would see: send them as the header Authorization")
	case len(text) > urlMax:
		r.add(path, domain.UserErrorCodeTooLong, "must be at most %d bytes", urlMax)
	}
}

// isPort says whether something can listen on a port of a URL; "" is the scheme's own.
func isPort(text string) bool {
	n, err := strconv.ParseUint(text, 10, 16)
	return text == "" || err == nil && n > 0
}

func checkHeaders(r *inputProblems, list []*model.NameValueInput, path []string) {
	if len(list) > variablesMax {
		r.add(path, domain.UserErrorCodeTooLong, "must be at most %d headers", variablesMax)
		return
	}
	seen := map[string]bool{}
	for i, v := range list {
		name := below(path, strconv.Itoa(i), "name")
		canonical := textproto.CanonicalMIMEHeaderKey(v.Name)
		switch {
		case !headerName.MatchString(v.Name):
			r.add(name, domain.UserErrorCodeInvalid, "must be the name of an HTTP header, e.g. Authorization")
		case strings.HasPrefix(canonical, reservedHead) || slices.Contains(headersOfHTTP, canonical):
			r.add(name, domain.UserErrorCodeInvalid, "%s is set by rouse itself", canonical)
		case seen[canonical]:
			r.add(name, domain.UserErrorCodeInvalid, "%s is given twice", canonical)
		}
		seen[canonical] = true
		if strings.ContainsFunc(valueOf(v.Value), func(c rune) bool { return c < ' ' && c != '\t' || c == 0x7f }) {
			r.add(below(path, strconv.Itoa(i), "value"), domain.UserErrorCodeInvalid, "must be one line of text")
			continue
		}
		checkValue(r, v, below(path, strconv.Itoa(i)))
	}
}
