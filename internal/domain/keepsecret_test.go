package domain

import (
	"strings"
	"testing"
)

func TestWhatANewExecutorKeepsOfTheStoredOne(t *testing.T) {
	values := func(names ...string) (out []SealedValue) {
		for _, name := range names {
			if keep, ok := strings.CutSuffix(name, "?"); ok {
				out = append(out, SealedValue{Name: keep, Keep: true})
			} else {
				out = append(out, SealedValue{Name: name, Sealed: "sealed " + name})
			}
		}
		return out
	}
	command := func(names ...string) *ExecutorSpec {
		return &ExecutorSpec{Command: &CommandSpec{Environment: values(names...)}}
	}
	acp := func(names ...string) *ExecutorSpec {
		return &ExecutorSpec{ACP: &ACPSpec{Environment: values(names...)}}
	}
	pull := func(names ...string) *ExecutorSpec {
		return &ExecutorSpec{Pull: &PullSpec{Command: command(names...).Command}}
	}
	http := func(secret string, names ...string) *ExecutorSpec {
		h := &HTTPSpec{Headers: values(names...), KeepSecret: secret == "?"}
		if !h.KeepSecret {
			h.Secret = secret
		}
		return &ExecutorSpec{HTTP: h}
	}
	for _, c := range []struct {
		name          string
		before, after *ExecutorSpec
		sealed        string // afterwards, as name=sealed
		removed       string
		refused       string
	}{
		{"nothing before, nothing kept", nil, command("A"), "A=sealed A", "", ""},
		{"nothing before, one kept", nil, command("A?"), "A=", "", "executor.command.environment.0.keep"},
		{"a value is kept", command("A"), command("A?"), "A=sealed A", "", ""},
		{"a value is replaced, which is no removal", command("A"), command("A"), "A=sealed A", "", ""},
		{"a value is left out", command("A", "B"), command("B?"), "B=sealed B", "command.environment.A", ""},
		{"names of variables have cases", command("A"), command("a?"), "a=", "command.environment.A", "executor.command.environment.0.keep"},
		{"a variable is kept by another kind that has variables", command("A"), acp("A?"), "A=sealed A", "", ""},
		{"and by a worker's command", acp("A"), pull("A?"), "A=sealed A", "", ""},
		{"a variable becomes no header", command("A"), http("", "A?"), "A=", "", "executor.http.headers.0.keep"},
		{"a header becomes no variable", http("", "A"), command("A?"), "A=", "http.headers.A", "executor.command.environment.0.keep"},
		{"headers are kept in any case, under the name they are sealed for", http("", "X-Key"), http("", "x-key?"), "X-Key=sealed X-Key", "", ""},
		{"a signing secret is kept", http("s"), http("?"), "signing secret=s", "", ""},
		{"a signing secret is left out", http("s"), http(""), "", "http.secret", ""},
		{"no signing secret is there to keep", http(""), http("?"), "signing secret=", "", "executor.http.keepSecret"},
		{"an executor is cleared", http("s", "A"), nil, "", "http.headers.A http.secret", ""},
		{"nothing is cleared", nil, nil, "", "", ""},
		{"a worker of its own command keeps nothing", pull("A"), &ExecutorSpec{Pull: &PullSpec{}}, "", "pull.command.environment.A", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			removed, problems := KeepSecrets(c.before, c.after, []string{"executor"})
			var sealed, refused []string
			for _, list := range c.after.secretLists() {
				for _, v := range list.values {
					sealed = append(sealed, v.Name+"="+v.Sealed)
				}
			}
			for _, p := range problems {
				refused = append(refused, strings.Join(p.Field, "."))
			}
			if len(problems) == 0 && c.after != nil && c.after.HTTP != nil && c.after.HTTP.KeepSecret {
				t.Error("the mark to keep the signing secret is still there")
			}
			if got := strings.Join(sealed, ", "); got != c.sealed {
				t.Errorf("sealed are %q, want %q", got, c.sealed)
			}
			if got := strings.Join(refused, ", "); got != c.refused {
				t.Errorf("refused is %q, want %q", got, c.refused)
			}
			if len(problems) == 0 && strings.Join(removed, " ") != c.removed {
				t.Errorf("removed %v, want %s", removed, c.removed)
			}
		})
	}
}
