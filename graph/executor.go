package graph

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/preset"
	"rouse.dev/rouse/internal/xid"
)

// Bounds of an executor's settings.
const (
	argumentsMax     = 200
	argumentBytesMax = 64 << 10 // all arguments together
	variablesMax     = 100
	valueBytesMax    = 32 << 10 // one value
	pathMax          = 4096
	graceMax         = 5 * time.Minute
	timeoutMin       = time.Second
	timeoutMax       = 24 * time.Hour
	reservedPrefix   = "ROUSE_" // names that the worker sets itself (SPEC S7.4)
)

var variableName = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]{0,199}$`)

// inputProblems collects what is wrong with an input, each with its path.
type inputProblems struct{ list []domain.FieldError }

func (r *inputProblems) add(path []string, code domain.UserErrorCode, format string, args ...any) {
	r.list = append(r.list, domain.FieldError{Field: path, Code: code, Message: fmt.Sprintf(format, args...)})
}

// duration holds a length of time to bounds, both included.
func (r *inputProblems) duration(path []string, d, least, most time.Duration) {
	if d < least || d > most {
		r.add(path, domain.UserErrorCodeOutOfRange, "must be from %s to %s, not %s", model.FormatDuration(least), model.FormatDuration(most), model.FormatDuration(d))
	}
}

// below makes a path; it never shares memory with another.
func below(path []string, names ...string) []string { return append(slices.Clone(path), names...) }

// oneMember says whether exactly one of the members of a @oneOf input is set. gqlparser holds literals to it and not what
// comes by variables.
func oneMember(set ...bool) bool {
	n := 0
	for _, s := range set {
		if s {
			n++
		}
	}
	return n == 1
}

// newExecutor is executorSpec for a record that is made, and has no stored values to keep.
func newExecutor(in *model.ExecutorInput, path []string, holder xid.ID, sealer Sealer) (*domain.ExecutorSpec, error) {
	spec, err := executorSpec(in, path, holder, sealer)
	if err != nil {
		return nil, err
	}
	_, problems := domain.KeepSecrets(nil, spec, path)
	return spec, domain.AsUserError(problems)
}

// executorSpec turns an input into a spec for the record holder, its values sealed; those that are kept are marked, for
// the store. What the caller can fix is a *domain.UserError with paths below path. A nil input gives a nil spec.
func executorSpec(in *model.ExecutorInput, path []string, holder xid.ID, sealer Sealer) (*domain.ExecutorSpec, error) {
	if in == nil {
		return nil, nil
	}
	r := &inputProblems{}
	if !oneMember(in.Command != nil, in.Acp != nil, in.HTTP != nil, in.Pull != nil, in.Echo != nil) {
		r.add(path, domain.UserErrorCodeInvalid, "set exactly one of command, acp, http, pull and echo")
		return nil, domain.AsUserError(r.list)
	}
	switch {
	case in.Acp != nil:
		return acpSpec(r, in.Acp, below(path, "acp"), holder, sealer)
	case in.HTTP != nil:
		return httpSpec(r, in.HTTP, below(path, "http"), holder, sealer)
	case in.Pull != nil:
		return pullSpec(r, in.Pull, below(path, "pull"), holder, sealer)
	case in.Echo != nil:
		r.duration(below(path, "echo", "delay"), in.Echo.Delay, 0, timeoutMax)
		return &domain.ExecutorSpec{Echo: &domain.EchoSpec{Delay: in.Echo.Delay}}, domain.AsUserError(r.list)
	}
	command, err := commandSpec(r, in.Command, below(path, "command"), holder, sealer)
	if err != nil {
		return nil, err
	}
	return &domain.ExecutorSpec{Command: command}, nil
}

func commandSpec(r *inputProblems, c *model.CommandExecutorInput, path []string, holder xid.ID, sealer Sealer) (*domain.CommandSpec, error) {
	checkCommand(r, c, path)
	checkout := checkoutSpec(r, c.Checkout, valueOf(c.WorkingDirectory), path)
	if len(r.list) > 0 {
		return nil, domain.AsUserError(r.list)
	}
	sealed, err := sealAll(c.Environment, holder, sealer)
	if err != nil {
		return nil, err
	}
	return &domain.CommandSpec{Preset: valueOf(c.Preset), Argv: c.Argv, WorkingDirectory: valueOf(c.WorkingDirectory), Checkout: checkout, Environment: sealed, Timeout: c.Timeout, Grace: c.Grace,
		NoTools: !c.Mcp, ToolServers: toolServers(c.McpServers)}, nil
}

func pullSpec(r *inputProblems, p *model.PullExecutorInput, path []string, holder xid.ID, sealer Sealer) (*domain.ExecutorSpec, error) {
	out := &domain.PullSpec{Queue: p.Queue, Lease: p.Lease}
	checkQueue(r, p.Queue, below(path, "queue"))
	r.list = append(r.list, domain.NotOneLine("a queue's name", p.Queue, below(path, "queue")...)...)
	r.duration(below(path, "lease"), p.Lease, domain.MinPullLease, domain.MaxPullLease)
	out.Checkout = checkoutSpec(r, p.Checkout, "", path)
	if p.Checkout != nil && p.Command != nil {
		r.add(below(path, "checkout"), domain.UserErrorCodeInvalid, "is for the worker's own command: give the command's own as command.checkout")
	}
	if p.Command == nil {
		return &domain.ExecutorSpec{Pull: out}, domain.AsUserError(r.list)
	}
	var err error
	out.Command, err = commandSpec(r, p.Command, below(path, "command"), holder, sealer)
	if err != nil {
		return nil, err
	}
	return &domain.ExecutorSpec{Pull: out}, nil
}

func checkQueue(r *inputProblems, name string, path []string) {
	if name == "" || name != strings.TrimSpace(name) || len([]rune(name)) > domain.MaxQueueName || !plain(name) {
		r.add(path, domain.UserErrorCodeInvalid, "must be a name of 1 to %d characters without spaces around it, e.g. default", domain.MaxQueueName)
	}
}

func checkCommand(r *inputProblems, c *model.CommandExecutorInput, path []string) {
	name := valueOf(c.Preset)
	if _, ok := preset.Find(name); c.Preset != nil && !ok {
		r.add(below(path, "preset"), domain.UserErrorCodeInvalid, "%q is no known agent command line; there are %s. For any other leave preset out and give argv", name, strings.Join(preset.Names(), ", "))
	}
	if c.Preset == nil || len(c.Argv) > 0 {
		checkArguments(r, c.Argv, below(path, "argv"))
	}
	checkFolder(r, valueOf(c.WorkingDirectory), below(path, "workingDirectory"))
	checkVariables(r, c.Environment, below(path, "environment"))
	r.duration(below(path, "timeout"), c.Timeout, timeoutMin, timeoutMax)
	r.duration(below(path, "grace"), c.Grace, 0, graceMax)
	checkToolServers(r, c.McpServers, c.Environment, below(path, "mcpServers"))
	if len(c.McpServers) > 0 && !domain.PresetTakesTools(name) {
		r.add(below(path, "mcpServers"), domain.UserErrorCodeInvalid, "this program cannot be told of servers: the presets claude, codex, gemini and opencode can, and ACP agents")
	}
}

// checkFolder checks a working folder; "" means that none is given.
func checkFolder(r *inputProblems, dir string, path []string) {
	switch {
	case dir == "":
	case !filepath.IsAbs(dir) || !plain(dir):
		r.add(path, domain.UserErrorCodeInvalid, "must be an absolute path, e.g. /srv/work")
	case len(dir) > pathMax:
		r.add(path, domain.UserErrorCodeTooLong, "must be at most %d bytes", pathMax)
	}
}

func checkArguments(r *inputProblems, argv []string, path []string) {
	if len(argv) == 0 || argv[0] == "" {
		r.add(path, domain.UserErrorCodeRequired, "name the program to run, then its arguments, e.g. [\"claude\", \"-p\"]")
		return
	}
	bytes := 0
	for i, a := range argv {
		if bytes += len(a); !plain(a) {
			r.add(below(path, strconv.Itoa(i)), domain.UserErrorCodeInvalid, "must be UTF-8 text without NUL")
		}
	}
	if len(argv) > argumentsMax || bytes > argumentBytesMax {
		r.add(path, domain.UserErrorCodeTooLong, "must be at most %d arguments of %d bytes together", argumentsMax, argumentBytesMax)
	}
}

func checkVariables(r *inputProblems, list []*model.NameValueInput, path []string) {
	if len(list) > variablesMax {
		r.add(path, domain.UserErrorCodeTooLong, "must be at most %d variables", variablesMax)
		return
	}
	seen := map[string]bool{}
	for i, v := range list {
		name := below(path, strconv.Itoa(i), "name")
		switch {
		case !variableName.MatchString(v.Name):
			r.add(name, domain.UserErrorCodeInvalid, "must be letters, digits and _, at most 200, and not begin with a digit")
		case strings.HasPrefix(strings.ToUpper(v.Name), reservedPrefix):
			r.add(name, domain.UserErrorCodeInvalid, "must not begin with %s: rouse sets those itself", reservedPrefix)
		case seen[v.Name]:
			r.add(name, domain.UserErrorCodeInvalid, "%s is given twice", v.Name)
		}
		seen[v.Name] = true
		checkValue(r, v, below(path, strconv.Itoa(i)))
	}
}

// checkValue holds the value of a variable or header to its bounds: it is given, or kept.
func checkValue(r *inputProblems, v *model.NameValueInput, path []string) {
	switch {
	case v.Keep && v.Value != nil:
		r.add(below(path, "keep"), domain.UserErrorCodeInvalid, "keeps the stored value, and value gives another one: leave one of them out")
	case v.Keep:
	case v.Value == nil:
		r.add(below(path, "value"), domain.UserErrorCodeRequired, "give a value, which may be empty, or keep: true for the stored one")
	case !plain(*v.Value):
		r.add(below(path, "value"), domain.UserErrorCodeInvalid, "must be UTF-8 text without NUL")
	case len(*v.Value) > valueBytesMax:
		r.add(below(path, "value"), domain.UserErrorCodeTooLong, "must be at most %d bytes", valueBytesMax)
	}
}

// sealAll seals each secret for its place: the record that holds it and its name. What is kept has no value yet.
func sealAll(list []*model.NameValueInput, holder xid.ID, sealer Sealer) ([]domain.SealedValue, error) {
	var out []domain.SealedValue
	for _, v := range list {
		switch {
		case v.Keep:
			out = append(out, domain.SealedValue{Name: v.Name, Keep: true, KeepPlain: !v.Secret})
		case !v.Secret:
			out = append(out, domain.SealedValue{Name: v.Name, Plain: new(valueOf(v.Value))})
		default:
			sealed, err := sealer.Seal(valueOf(v.Value), domain.SealPlace(holder, v.Name))
			if err != nil {
				return nil, fmt.Errorf("seal variable %s of %s: %w", v.Name, holder, err)
			}
			out = append(out, domain.SealedValue{Name: v.Name, Sealed: sealed})
		}
	}
	return out, nil
}

// executorOf shows a spec without its secrets; nil for a nil spec.
func executorOf(s *domain.ExecutorSpec) model.Executor {
	switch s.Kind() {
	case domain.ExecutorCommand:
		return commandOf(s.Command)
	case domain.ExecutorACP:
		return acpOf(s.ACP)
	case domain.ExecutorHTTP:
		return &model.HTTPExecutor{URL: s.HTTP.URL, Headers: namesOf(s.HTTP.Headers), HeaderValues: shownValues(s.HTTP.Headers), Signed: s.HTTP.Secret != "", Timeout: s.HTTP.Timeout, Grace: s.HTTP.EndGrace()}
	case domain.ExecutorPull:
		out := &model.PullExecutor{Queue: s.Pull.Queue, Lease: s.Pull.Lease, Checkout: checkoutShown(s.Pull.Checkout)}
		if s.Pull.Command != nil {
			out.Command = commandOf(s.Pull.Command)
		}
		return out
	case domain.ExecutorEcho:
		return &model.EchoExecutor{Delay: s.Echo.Delay}
	}
	return nil
}

// acpOf shows an agent of the protocol without the secrets of its environment.
func acpOf(a *domain.ACPSpec) *model.AcpExecutor {
	out := &model.AcpExecutor{Argv: a.Argv, WorkingDirectory: a.WorkingDirectory, Checkout: checkoutShown(a.Checkout), Environment: namesOf(a.Environment), EnvironmentValues: shownValues(a.Environment), Timeout: a.Timeout, Permissions: a.Permissions,
		Mcp: !a.NoTools, McpServers: toolServersOf(a.ToolServers)}
	if a.Preset != "" {
		out.Preset = &a.Preset
	}
	return out
}

// commandOf shows a command without the secrets of its environment.
func commandOf(c *domain.CommandSpec) *model.CommandExecutor {
	out := &model.CommandExecutor{Argv: c.Argv, Checkout: checkoutShown(c.Checkout), Environment: namesOf(c.Environment), EnvironmentValues: shownValues(c.Environment), Timeout: c.Timeout, Grace: c.Grace,
		Mcp: !c.NoTools, McpServers: toolServersOf(c.ToolServers)}
	if c.Preset != "" {
		out.Preset = &c.Preset
	}
	if c.WorkingDirectory != "" {
		out.WorkingDirectory = &c.WorkingDirectory
	}
	return out
}

// namesOf are the names of values.
func namesOf(values []domain.SealedValue) []string {
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = v.Name
	}
	return names
}

// shownValues are values as they are shown: those of secrets are not.
func shownValues(values []domain.SealedValue) []*model.NameValue {
	out := make([]*model.NameValue, len(values))
	for i, v := range values {
		out[i] = &model.NameValue{Name: v.Name, Secret: v.Secret(), Value: v.Plain}
	}
	return out
}
