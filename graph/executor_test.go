package graph

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

// labelSealer "seals" by naming the place, so that tests see the binding; the value itself is left out.
type labelSealer struct{}

func (labelSealer) Seal(_, boundTo string) (string, error) { return "sealed for " + boundTo, nil }

func command(change func(*model.CommandExecutorInput)) *model.ExecutorInput {
	c := &model.CommandExecutorInput{Argv: []string{"claude", "-p"}, Timeout: 30 * time.Minute, Grace: 10 * time.Second}
	change(c)
	return &model.ExecutorInput{Command: c}
}

func pull(queue string, lease time.Duration, command *model.CommandExecutorInput) *model.ExecutorInput {
	return &model.ExecutorInput{Pull: &model.PullExecutorInput{Queue: queue, Lease: lease, Command: command}}
}

func TestAPullExecutorIsMappedWithWhatItsWorkersRun(t *testing.T) {
	t.Parallel()
	in := pull("gpu", time.Minute, command(func(c *model.CommandExecutorInput) {
		c.Environment = []*model.NameValueInput{{Secret: true, Name: "API_KEY", Value: new("hunter2")}}
	}).Command)
	spec, err := executorSpec(in, []string{"executor"}, "agt_1", labelSealer{})
	if err != nil {
		t.Fatal(err)
	}
	if spec.Queue() != "gpu" || spec.Pull.Lease != time.Minute || spec.Pull.Command.Environment[0].Sealed != "sealed for agt_1/API_KEY" {
		t.Errorf("got %+v", spec.Pull)
	}
	shown := executorOf(spec).(*model.PullExecutor)
	if shown.Queue != "gpu" || !slices.Equal(shown.Command.Environment, []string{"API_KEY"}) {
		t.Errorf("shown as %+v", shown)
	}
	if spec, err := executorSpec(pull("gpu", time.Minute, nil), nil, "agt_1", nil); err != nil || spec.Pull.Command != nil || executorOf(spec).(*model.PullExecutor).Command != nil {
		t.Errorf("a worker's own command became %+v, %v", spec, err)
	}
	once := func(value string) string {
		in := pull("gpu", time.Minute, command(func(c *model.CommandExecutorInput) {
			c.Environment = []*model.NameValueInput{{Secret: true, Name: "K", Value: &value}}
		}).Command)
		got, err := idempotency(model.CreateAgentInput{Executor: in}, new("k"))
		if err != nil {
			t.Fatal(err)
		}
		return got.InputDigest
	}
	if once("hunter2") != once("hunter3") {
		t.Error("a secret value counts in the digest of the input")
	}
}

func TestAnExecutorInputBecomesASpecWithSealedValues(t *testing.T) {
	t.Parallel()
	holder := xid.New("agt")
	in := command(func(c *model.CommandExecutorInput) {
		c.WorkingDirectory = new("/srv/work")
		c.Environment = []*model.NameValueInput{{Secret: true, Name: "API_KEY", Value: new("hunter2")}, {Secret: true, Name: "_x1", Value: new("")}}
	})
	spec, err := executorSpec(in, []string{"executor"}, holder, labelSealer{})
	if err != nil {
		t.Fatal(err)
	}
	c := spec.Command
	if !slices.Equal(c.Argv, []string{"claude", "-p"}) || c.WorkingDirectory != "/srv/work" || c.Timeout != 30*time.Minute || c.Grace != 10*time.Second {
		t.Errorf("got %+v", c)
	}
	want := []domain.SealedValue{{Name: "API_KEY", Sealed: "sealed for " + holder.String() + "/API_KEY"}, {Name: "_x1", Sealed: "sealed for " + holder.String() + "/_x1"}}
	if !slices.Equal(c.Environment, want) {
		t.Errorf("environment is %v", c.Environment)
	}
	shown := executorOf(spec).(*model.CommandExecutor)
	if !slices.Equal(shown.Environment, []string{"API_KEY", "_x1"}) {
		t.Errorf("shown as %+v", shown)
	}
}

func TestAPresetNeedsNoArguments(t *testing.T) {
	t.Parallel()
	for _, argv := range [][]string{nil, {"/opt/claude", "--model", "opus"}} {
		spec, err := executorSpec(command(func(c *model.CommandExecutorInput) { c.Preset, c.Argv = new("claude"), argv }), []string{"executor"}, "agt_1", labelSealer{})
		if err != nil || spec.Command.Preset != "claude" || !slices.Equal(spec.Command.Argv, argv) || *executorOf(spec).(*model.CommandExecutor).Preset != "claude" {
			t.Errorf("%v: %+v, %v", argv, spec, err)
		}
	}
}

func TestAnACPExecutorBecomesASpecAndIsCheckedLikeACommand(t *testing.T) {
	t.Parallel()
	holder := xid.New("agt")
	in := func(change func(*model.AcpExecutorInput)) *model.ExecutorInput {
		a := &model.AcpExecutorInput{Argv: []string{"gemini", "--acp"}, WorkingDirectory: new("/srv/work"), Timeout: time.Minute, Permissions: domain.AcpPermissionPolicyReadOnly,
			Environment: []*model.NameValueInput{{Secret: true, Name: "KEY", Value: new("hunter2")}}}
		change(a)
		return &model.ExecutorInput{Acp: a}
	}
	spec, err := executorSpec(in(func(*model.AcpExecutorInput) {}), []string{"executor"}, holder, labelSealer{})
	if err != nil || spec.Kind() != domain.ExecutorACP || spec.ACP.Environment[0].Sealed != "sealed for "+holder.String()+"/KEY" {
		t.Fatalf("got %+v, %v", spec, err)
	}
	shown := executorOf(spec).(*model.AcpExecutor)
	if shown.Preset != nil || shown.WorkingDirectory != "/srv/work" || !slices.Equal(shown.Environment, []string{"KEY"}) || shown.Permissions != domain.AcpPermissionPolicyReadOnly {
		t.Errorf("shown as %+v", shown)
	}
	spec, err = executorSpec(in(func(a *model.AcpExecutorInput) { a.Preset, a.Argv = new("qwen"), nil }), []string{"executor"}, holder, labelSealer{})
	if err != nil || spec.ACP.Preset != "qwen" || len(spec.ACP.Argv) != 0 {
		t.Errorf("a preset needs no argv: %+v, %v", spec, err)
	} else if shown := executorOf(spec).(*model.AcpExecutor); *shown.Preset != "qwen" {
		t.Errorf("shown as %+v", shown)
	}
	for field, change := range map[string]func(*model.AcpExecutorInput){
		"executor.acp.argv":             func(a *model.AcpExecutorInput) { a.Argv = nil },
		"executor.acp.preset":           func(a *model.AcpExecutorInput) { a.Preset = new("clippy") },
		"executor.acp.workingDirectory": func(a *model.AcpExecutorInput) { a.WorkingDirectory = nil },
		"executor.acp.checkout.repository": func(a *model.AcpExecutorInput) {
			a.WorkingDirectory, a.Checkout = nil, &model.CheckoutInput{Repository: "app", Per: domain.CheckoutPerTask}
		},
		"executor.acp.timeout":            func(a *model.AcpExecutorInput) { a.Timeout = 0 },
		"executor.acp.environment.0.name": func(a *model.AcpExecutorInput) { a.Environment[0].Name = "ROUSE_X" },
	} {
		_, err := executorSpec(in(change), []string{"executor"}, holder, labelSealer{})
		var problem *domain.UserError
		if !errors.As(err, &problem) || strings.Join(problem.Problems[0].Field, ".") != field {
			t.Errorf("%s: %v", field, err)
		}
	}
}

func TestAnHTTPExecutorBecomesASpecAndIsChecked(t *testing.T) {
	t.Parallel()
	holder := xid.New("agt")
	in := func(change func(*model.HTTPExecutorInput)) *model.ExecutorInput {
		h := &model.HTTPExecutorInput{URL: "https://agents.example.com/run", Timeout: time.Minute, Secret: new("a secret of 17 by"),
			Headers: []*model.NameValueInput{{Secret: true, Name: "Authorization", Value: new("Bearer hunter2")}}}
		change(h)
		return &model.ExecutorInput{HTTP: h}
	}
	spec, err := executorSpec(in(func(*model.HTTPExecutorInput) {}), []string{"executor"}, holder, labelSealer{})
	if err != nil || spec.HTTP.Secret != "sealed for "+holder.String()+"/signing secret" || spec.HTTP.Headers[0].Sealed != "sealed for "+holder.String()+"/Authorization" {
		t.Fatalf("got %+v, %v", spec, err)
	}
	if shown := executorOf(spec).(*model.HTTPExecutor); !shown.Signed || !slices.Equal(shown.Headers, []string{"Authorization"}) {
		t.Errorf("shown as %+v", shown)
	}
	url := func(text string) func(*model.HTTPExecutorInput) {
		return func(h *model.HTTPExecutorInput) { h.URL = text }
	}
	header := func(name, value string) func(*model.HTTPExecutorInput) {
		return func(h *model.HTTPExecutorInput) {
			h.Headers[0] = &model.NameValueInput{Secret: true, Name: name, Value: &value}
		}
	}
	for _, c := range []struct {
		field  string
		change func(*model.HTTPExecutorInput)
	}{
		{"url", url("")}, {"url", url("ftp://x/")}, {"url", url("https://")}, {"url", url("https://u:p@x/")}, {"url", url("http://x:0/")}, {"url", url("http://x:99999/run")}, {"url", url("https://[::1]:65536")}, {"url", url("https://x:/")}, {"url", url("/run")}, {"url", url("https://x/" + strings.Repeat("a", 2000))},
		{"headers.0.name", header("X Key", "")}, {"headers.0.name", header("host", "")}, {"headers.0.name", header("x-rouse-signature", "")}, {"headers.0.value", header("X-Key", "a\r\nB: c")},
		{"secret", func(h *model.HTTPExecutorInput) { h.Secret = new("short") }}, {"timeout", func(h *model.HTTPExecutorInput) { h.Timeout = 0 }},
	} {
		_, err := executorSpec(in(c.change), []string{"executor"}, holder, labelSealer{})
		var problem *domain.UserError
		if !errors.As(err, &problem) || strings.Join(problem.Problems[0].Field, ".") != "executor.http."+c.field {
			t.Errorf("%s: %v", c.field, err)
		}
	}
}

func TestAnEchoExecutorIsMappedAndNoneStaysNone(t *testing.T) {
	t.Parallel()
	spec, err := executorSpec(&model.ExecutorInput{Echo: &model.EchoExecutorInput{Delay: time.Second}}, nil, "agt_1", nil)
	if err != nil || spec.Echo.Delay != time.Second || spec.Kind() != domain.ExecutorEcho {
		t.Errorf("got %+v, %v", spec, err)
	}
	if spec, err := executorSpec(nil, nil, "agt_1", nil); spec != nil || err != nil || executorOf(nil) != nil {
		t.Errorf("no executor became %+v, %v", spec, err)
	}
}

func TestWhatIsWrongWithAnExecutorIsNamed(t *testing.T) {
	t.Parallel()
	env := func(pairs ...string) func(*model.CommandExecutorInput) {
		return func(c *model.CommandExecutorInput) {
			for i := 0; i < len(pairs); i += 2 {
				c.Environment = append(c.Environment, &model.NameValueInput{Secret: true, Name: pairs[i], Value: &pairs[i+1]})
			}
		}
	}
	for name, c := range map[string]struct {
		in    *model.ExecutorInput
		field string
		code  domain.UserErrorCode
	}{
		"no member":                    {&model.ExecutorInput{}, "executor", domain.UserErrorCodeInvalid},
		"two members":                  {&model.ExecutorInput{Command: &model.CommandExecutorInput{}, Echo: &model.EchoExecutorInput{}}, "executor", domain.UserErrorCodeInvalid},
		"no program":                   {command(func(c *model.CommandExecutorInput) { c.Argv = nil }), "executor.command.argv", domain.UserErrorCodeRequired},
		"an empty program":             {command(func(c *model.CommandExecutorInput) { c.Argv = []string{""} }), "executor.command.argv", domain.UserErrorCodeRequired},
		"NUL in an argument":           {command(func(c *model.CommandExecutorInput) { c.Argv[1] = "a\x00" }), "executor.command.argv.1", domain.UserErrorCodeInvalid},
		"too many arguments":           {command(func(c *model.CommandExecutorInput) { c.Argv = slices.Repeat([]string{"x"}, 201) }), "executor.command.argv", domain.UserErrorCodeTooLong},
		"an unknown preset":            {command(func(c *model.CommandExecutorInput) { c.Preset = new("clippy") }), "executor.command.preset", domain.UserErrorCodeInvalid},
		"a relative folder":            {command(func(c *model.CommandExecutorInput) { c.WorkingDirectory = new("work") }), "executor.command.workingDirectory", domain.UserErrorCodeInvalid},
		"no time at all":               {command(func(c *model.CommandExecutorInput) { c.Timeout = 0 }), "executor.command.timeout", domain.UserErrorCodeOutOfRange},
		"a day and a second":           {command(func(c *model.CommandExecutorInput) { c.Timeout = 24*time.Hour + time.Second }), "executor.command.timeout", domain.UserErrorCodeOutOfRange},
		"too much grace":               {command(func(c *model.CommandExecutorInput) { c.Grace = 6 * time.Minute }), "executor.command.grace", domain.UserErrorCodeOutOfRange},
		"a name with a dash":           {command(env("API-KEY", "x")), "executor.command.environment.0.name", domain.UserErrorCodeInvalid},
		"a name with a digit":          {command(env("1A", "x")), "executor.command.environment.0.name", domain.UserErrorCodeInvalid},
		"an empty name":                {command(env("", "x")), "executor.command.environment.0.name", domain.UserErrorCodeInvalid},
		"a reserved name":              {command(env("A", "x", "ROUSE_RUN_ID", "x")), "executor.command.environment.1.name", domain.UserErrorCodeInvalid},
		"a name twice":                 {command(env("A", "x", "A", "y")), "executor.command.environment.1.name", domain.UserErrorCodeInvalid},
		"NUL in a value":               {command(env("A", "x\x00")), "executor.command.environment.0.value", domain.UserErrorCodeInvalid},
		"a value that is long":         {command(env("A", strings.Repeat("x", 33<<10))), "executor.command.environment.0.value", domain.UserErrorCodeTooLong},
		"an echo that dawdles":         {&model.ExecutorInput{Echo: &model.EchoExecutorInput{Delay: 25 * time.Hour}}, "executor.echo.delay", domain.UserErrorCodeOutOfRange},
		"an echo back in time":         {&model.ExecutorInput{Echo: &model.EchoExecutorInput{Delay: -time.Second}}, "executor.echo.delay", domain.UserErrorCodeOutOfRange},
		"a queue without a name":       {pull("", time.Minute, nil), "executor.pull.queue", domain.UserErrorCodeInvalid},
		"a queue with spaces around":   {pull(" gpu", time.Minute, nil), "executor.pull.queue", domain.UserErrorCodeInvalid},
		"a queue's name that is long":  {pull(strings.Repeat("x", 65), time.Minute, nil), "executor.pull.queue", domain.UserErrorCodeInvalid},
		"a lease too short to renew":   {pull("gpu", time.Second, nil), "executor.pull.lease", domain.UserErrorCodeOutOfRange},
		"a worker's command with none": {pull("gpu", time.Minute, command(func(c *model.CommandExecutorInput) { c.Argv = nil }).Command), "executor.pull.command.argv", domain.UserErrorCodeRequired},
	} {
		_, err := executorSpec(c.in, []string{"executor"}, "agt_1", labelSealer{})
		user, ok := errors.AsType[*domain.UserError](err)
		if !ok || len(user.Problems) != 1 || user.Problems[0].Code != c.code || strings.Join(user.Problems[0].Field, ".") != c.field {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if list, err := problems(err); err != nil || list[0].Field[0] != "input" || list[0].Field[1] != "executor" {
			t.Errorf("%s is answered as %+v, %v", name, list, err)
		}
	}
}

func TestASecretIsInNoErrorOfAnExecutor(t *testing.T) {
	t.Parallel()
	in := command(func(c *model.CommandExecutorInput) {
		c.Environment = []*model.NameValueInput{{Secret: true, Name: "A-B", Value: new("hunter2\x00")}}
	})
	if _, err := executorSpec(in, nil, "agt_1", labelSealer{}); err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error is %v", err)
	}
}

func TestTheDigestOfAnInput(t *testing.T) {
	t.Parallel()
	input := func(key, name, variable, value string) model.CreateAgentInput {
		return model.CreateAgentInput{Name: name, IdempotencyKey: &key, Executor: command(func(c *model.CommandExecutorInput) {
			c.Environment = []*model.NameValueInput{{Secret: true, Name: variable, Value: &value}}
		})}
	}
	of := func(in model.CreateAgentInput) string {
		once, err := idempotency(in, in.IdempotencyKey)
		if err != nil {
			t.Fatal(err)
		}
		return once.InputDigest
	}
	first := input("k", "Ada", "TOKEN", "hunter2")
	if of(first) != of(input("other", "Ada", "TOKEN", "hunter3")) {
		t.Error("the key or a secret value counts")
	}
	if of(first) == of(input("k", "Eve", "TOKEN", "hunter2")) || of(first) == of(input("k", "Ada", "SECRET", "hunter2")) {
		t.Error("a name does not count")
	}
	if *first.Executor.Command.Environment[0].Value != "hunter2" {
		t.Error("the input lost its value")
	}
}

func TestTriggersHaveExactlyOneMember(t *testing.T) {
	t.Parallel()
	good := []*model.TriggerSpecInput{{Schedule: &model.ScheduleSpecInput{Cron: new("0 9 * * *")}}, {Manual: &model.ManualSpecInput{Enabled: new(false)}}}
	specs, _, err := new(Resolver).triggerSpecs(good)
	if err != nil || specs[0].Cron != "0 9 * * *" || !specs[0].Enabled || specs[1].Kind != domain.TriggerKindManual || specs[1].Enabled {
		t.Errorf("got %+v, %v", specs, err)
	}
	for _, bad := range []*model.TriggerSpecInput{{}, {Schedule: &model.ScheduleSpecInput{}, Manual: &model.ManualSpecInput{}}} {
		if _, _, err := new(Resolver).triggerSpecs([]*model.TriggerSpecInput{good[0], bad}); err == nil || !strings.HasPrefix(err.Error(), "triggers.1: ") {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}

func TestVariablesOfAManualFire(t *testing.T) {
	t.Parallel()
	got, err := domain.ProvidedValues(map[string]any{"branch": "main", "n": 3, "on": true, "none": nil, "list": []any{"a"}})
	if want := map[string]string{"branch": "main", "n": "3", "on": "true", "none": "null", "list": `["a"]`}; err != nil || !maps.Equal(got, want) {
		t.Errorf("got %v, %v, want %v", got, err, want)
	}
}

func TestACheckoutIsCheckedAndShown(t *testing.T) {
	t.Parallel()
	holder := xid.New("agt")
	in := func(change func(*model.CommandExecutorInput)) *model.ExecutorInput {
		c := &model.CommandExecutorInput{Argv: []string{"agent"}, Timeout: time.Minute, Checkout: &model.CheckoutInput{Repository: "https://example.com/team/app.git", Ref: new("main"), Per: domain.CheckoutPerRun,
			Setup: []string{"npm", "ci"}, Keep: time.Hour}}
		change(c)
		return &model.ExecutorInput{Command: c}
	}
	spec, err := executorSpec(in(func(*model.CommandExecutorInput) {}), []string{"executor"}, holder, labelSealer{})
	if err != nil {
		t.Fatal(err)
	}
	shown := executorOf(spec).(*model.CommandExecutor).Checkout
	if c := spec.Checkout(); c.Keep != time.Hour || shown == nil || shown.Repository != c.Repository || valueOf(shown.Ref) != "main" || shown.Per != domain.CheckoutPerRun || len(shown.Setup) != 2 || shown.Keep != c.Keep {
		t.Errorf("got %+v, shown as %+v", c, shown)
	}
	for field, change := range map[string]func(*model.CommandExecutorInput){
		"executor.command.workingDirectory":    func(c *model.CommandExecutorInput) { c.WorkingDirectory = new("/srv/app") },
		"executor.command.checkout.repository": func(c *model.CommandExecutorInput) { c.Checkout.Repository = "https://ada:secret@example.com/app" },
		"executor.command.checkout.ref":        func(c *model.CommandExecutorInput) { c.Checkout.Ref = new("--upload-pack=id") },
		"executor.command.checkout.setup":      func(c *model.CommandExecutorInput) { c.Checkout.Setup = []string{""} },
		"executor.command.checkout.keep":       func(c *model.CommandExecutorInput) { c.Checkout.Keep = -time.Second },
	} {
		_, err := executorSpec(in(change), []string{"executor"}, holder, labelSealer{})
		var problem *domain.UserError
		if !errors.As(err, &problem) || strings.Join(problem.Problems[0].Field, ".") != field {
			t.Errorf("%s: %v", field, err)
		}
	}
	both := &model.PullExecutorInput{Queue: "default", Lease: time.Minute, Command: in(func(*model.CommandExecutorInput) {}).Command, Checkout: &model.CheckoutInput{Repository: "/srv/app", Per: domain.CheckoutPerTask}}
	if _, err := executorSpec(&model.ExecutorInput{Pull: both}, []string{"executor"}, holder, labelSealer{}); err == nil || !strings.Contains(err.Error(), "command.checkout") {
		t.Errorf("two checkouts: %v", err)
	}
	both.Command = nil
	spec, err = executorSpec(&model.ExecutorInput{Pull: both}, []string{"executor"}, holder, labelSealer{})
	if err != nil || spec.Checkout() == nil || executorOf(spec).(*model.PullExecutor).Checkout == nil {
		t.Errorf("the worker's own command: %+v, %v", spec, err)
	}
}
