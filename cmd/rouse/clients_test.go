//go:build clients

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/pgtest"
)

// example is a file of docs/api.md, with what it prints.
type example struct{ name, text, output string }

var exampleBlock = regexp.MustCompile("(?ms)^```[a-z]+ (file|output)=(\\S+)\n(.*?)^```")

func examplesOfTheAPI(t *testing.T) (examples []example) {
	t.Helper()
	page, err := os.ReadFile("../../docs/api.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, block := range exampleBlock.FindAllStringSubmatch(string(page), -1) {
		kind, name, text := block[1], block[2], block[3]
		if kind == "file" {
			examples = append(examples, example{name: name, text: text})
			continue
		}
		if last := len(examples) - 1; last < 0 || examples[last].name != name {
			t.Fatalf("the output of %s does not follow it", name)
		}
		examples[len(examples)-1].output = text
	}
	return examples
}

// The examples of docs/api.md are typed by the schema that the server shows, under tsc --strict, and print what the page
// says: with fetch, graphql-ws, Apollo Client, urql with Graphcache, and Relay.
func TestTheAPIsExamplesWorkAsTheyAre(t *testing.T) {
	p := start(t, pgtest.Folder(t), nil)
	folder := t.TempDir()
	for _, name := range []string{"package.json", "tsconfig.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", "clients", name))
		if err != nil {
			t.Fatal(err)
		}
		put(t, folder, name, string(text))
	}
	installed, err := filepath.Abs(filepath.Join("testdata", "clients", "node_modules"))
	if err == nil {
		_, err = os.Stat(filepath.Join(installed, ".bin", "tsc"))
	}
	if err != nil {
		t.Fatalf("the clients are not installed (make test-clients does that): %v", err)
	}
	if err := os.Symlink(installed, filepath.Join(folder, "node_modules")); err != nil {
		t.Fatal(err)
	}
	examples := examplesOfTheAPI(t)
	if len(examples) < 12 {
		t.Fatalf("only %d examples were found", len(examples))
	}
	for _, e := range examples {
		put(t, folder, e.name, e.text)
	}
	run := func(command ...string) string {
		t.Helper()
		program := command[0]
		if _, err := os.Stat(filepath.Join(installed, ".bin", program)); err == nil {
			program = filepath.Join(installed, ".bin", program)
		}
		c := exec.CommandContext(t.Context(), program, command[1:]...)
		c.Dir = folder
		c.Env = append(os.Environ(), "ROUSE_URL="+p.url, "ROUSE_TOKEN="+p.owner)
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(command, " "), err, out)
		}
		return string(out)
	}
	run("graphql-codegen", "--config", "codegen.ts")
	run("relay-compiler")
	run("tsc", "--strict", "-p", ".")
	for _, e := range examples {
		if e.output == "" {
			continue
		}
		t.Run(e.name, func(t *testing.T) {
			printed := run("node", filepath.Join("out", strings.TrimSuffix(e.name, ".ts")+".js"))
			if missing := firstMissing(e.output, printed); missing != "" {
				t.Errorf("the page says that it prints %q; it printed\n%s", missing, printed)
			}
		})
	}
}

// firstMissing is the first wanted line that does not come in its order. Others may come between: the feed tells of more.
func firstMissing(wanted, printed string) string {
	lines := strings.Split(printed, "\n")
	for want := range strings.Lines(wanted) {
		want = strings.TrimSpace(want)
		for len(lines) > 0 && strings.TrimSpace(lines[0]) != want {
			lines = lines[1:]
		}
		if len(lines) == 0 {
			return want
		}
		lines = lines[1:]
	}
	return ""
}

func put(t *testing.T, folder, name, text string) {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}
