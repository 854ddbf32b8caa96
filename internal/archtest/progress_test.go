package archtest_test

import (
	"os/exec"
	"strings"
	"testing"
)

// make test says how far it is, and fails when anything did: what a test says holds quotes, tabs and markup.
func TestProgressOfTestsIsSaidAndFailuresAreFailures(t *testing.T) {
	const passed = `{"Action":"run","Package":"rouse.dev/rouse/internal/cron","Test":"TestA"}
{"Action":"output","Package":"rouse.dev/rouse/internal/cron","Test":"TestA","Output":"said in passing\n"}
{"Action":"pass","Package":"rouse.dev/rouse/internal/cron","Test":"TestA","Elapsed":1}
{"Action":"pass","Package":"rouse.dev/rouse/internal/cron","Elapsed":1.25}
`
	const failed = `{"Action":"output","Package":"rouse.dev/rouse/graph","Test":"TestB","Output":"    b_test.go:3: \"a\" \u003c\tb\n"}
{"Action":"fail","Package":"rouse.dev/rouse/graph","Test":"TestB","Elapsed":1}
{"Action":"fail","Package":"rouse.dev/rouse/graph","Elapsed":2}
`
	const broken = `{"ImportPath":"rouse.dev/rouse/cmd/rouse","Action":"build-output","Output":"undefined: x\n"}
{"ImportPath":"rouse.dev/rouse/cmd/rouse","Action":"build-fail"}
{"Action":"fail","Package":"rouse.dev/rouse/cmd/rouse","Elapsed":0,"FailedBuild":"rouse.dev/rouse/cmd/rouse"}
`
	for _, c := range []struct {
		name, total, in string
		ok              bool
		want            []string
	}{
		{"all passed", "1", passed, true, []string{"[1/1] ok   internal/cron 1.2 s\n"}},
		{"one failed, and its words are shown", "2", passed + failed, false, []string{"[1/2] ok ", "[2/2] FAIL graph 2.0 s\n    b_test.go:3: \"a\" <\tb\n"}},
		{"one could not be built", "1", broken, false, []string{"undefined: x\n", "[1/1] FAIL cmd/rouse"}},
		{"the tests were broken off", "2", passed, false, []string{"only 1 of 2 packages"}},
		{"the go command itself failed", "2", "go: no such package\n", false, []string{"go: no such package\n", "only 0 of 2 packages"}},
		{"many tests of a package", "1", strings.Repeat(`{"Action":"pass","Package":"rouse.dev/rouse/graph","Test":"TestC","Elapsed":0}`+"\n", 60) + strings.ReplaceAll(passed, "internal/cron", "graph"), true,
			[]string{"graph: 25 tests so far\n", "graph: 50 tests so far\n", "[1/1] ok   graph"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "awk", "-v", "total="+c.total, "-f", "../../tools/progress.awk")
			cmd.Stdin = strings.NewReader(c.in)
			out, err := cmd.CombinedOutput()
			if (err == nil) != c.ok {
				t.Errorf("it ends with %v", err)
			}
			for _, want := range c.want {
				if !strings.Contains(string(out), want) {
					t.Errorf("%q is missing:\n%s", want, out)
				}
			}
			if c.ok && strings.Contains(string(out), "in passing") {
				t.Errorf("what a good test said is shown:\n%s", out)
			}
		})
	}
}
