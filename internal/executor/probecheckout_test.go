//go:build unix

package executor

import (
	"path/filepath"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

func TestAProbeLooksAtACheckout(t *testing.T) {
	w := newGitWorld(t, Options{})
	address := w.serve()
	for _, c := range []struct {
		name     string
		checkout domain.CheckoutSpec
		want     string // names of the checks; the last one failed when it begins with !
		words    string // of the last one
	}{
		{"a repository on this machine", domain.CheckoutSpec{}, "program git repository ref working-copies", "which the first run will make"},
		{"a branch of it", domain.CheckoutSpec{Ref: "main"}, "program git repository ref working-copies", ""},
		{"a branch that is not there", domain.CheckoutSpec{Ref: "v9"}, "program git repository !ref", "the ref v9 is not there"},
		{"a folder that is not there", domain.CheckoutSpec{Repository: "/nowhere/app"}, "program git !repository", "does not exist"},
		{"a repository elsewhere", domain.CheckoutSpec{Repository: address, Ref: "main"}, "program git repository ref working-copies", ""},
		{"a branch that is not there", domain.CheckoutSpec{Repository: address, Ref: "v9"}, "program git repository !ref", "v9 is not there"},
		{"a repository that is not there", domain.CheckoutSpec{Repository: address + "x"}, "program git !repository", "there is no repository at"},
		{"an address that nobody answers at", domain.CheckoutSpec{Repository: "http://127.0.0.1:9/app.git"}, "program git !repository", "could not be reached"},
	} {
		t.Run(c.name, func(t *testing.T) {
			var got []string
			checks := w.registry.Probe(t.Context(), w.request(xid.New("tsk"), c.checkout, "true"), false)
			for _, check := range checks {
				name := strings.ReplaceAll(check.Name, " ", "-")
				if !check.OK {
					name = "!" + name
				}
				got = append(got, name)
			}
			if last := checks[len(checks)-1]; strings.Join(got, " ") != c.want || !strings.Contains(last.Detail, c.words) || !last.OK && last.Hint == "" {
				t.Errorf("got %v, %+v", got, last)
			}
			if exists(filepath.Join(w.command.options.WorkRoot, "copies")) {
				t.Error("a probe made something")
			}
		})
	}
}

// An agent is asked beside its working copies, in a folder that goes again.
func TestAnAgentWithACheckoutIsAsked(t *testing.T) {
	w := newGitWorld(t, Options{})
	checks := w.registry.Probe(t.Context(), w.request("", domain.CheckoutSpec{}, `echo '{"summary":"ready"}'`), true)
	if last := checks[len(checks)-1]; last.Name != "answer" || !last.OK {
		t.Errorf("got %+v", checks)
	}
	if exists(filepath.Join(w.command.options.WorkRoot, "copies")) {
		t.Error("the test made a working copy")
	}
}
