package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// The shells that the documents' commands are for, as they are when a person types into them: zsh then reads no comments.
var shells = map[string][]string{
	"bash": {"bash", "--norc", "--noprofile", "--noediting", "-i"},
	"zsh":  {"zsh", "-f", "-i", "-o", "nopromptsp", "-o", "nopromptcr", "-o", "nozle", "-o", "nomonitor"},
}

// played are the blocks of commands that TestTheDocumentsCommandsWorkAsTheyAre pastes, by document and first command.
const (
	theTour        = "README.md: TOKEN=.rouse/token"
	theSlowAgent   = "README.md: SLOW=$(gq 'mutation($ws: ID!) { createAgent(input: {workspac"
	theRoutine     = "README.md: ROUTINE=$(gq 'mutation($ws: ID!, $a: ID!) { createRoutine(in"
	theTask        = "README.md: BUILDER=$(gq 'mutation($ws: ID!) { createAgent(input: {works"
	theTokens      = "docs/operations.md: rouse token create --name laptop --scope ADMIN"
	thePruning     = "docs/operations.md: rouse prune --dry-run"
	theLocalToken  = "docs/operations.md: rouse token rotate-local --data-dir /var/lib/rouse"
	theBackup      = "docs/operations.md: umask 077"
	theOwnBackup   = "docs/operations.md: pg_dump -Fc -f rouse.dump \"$ROUSE_DATABASE_URL\""
	theRestore     = "docs/operations.md: D=/var/lib/rouse-restored; R=$D/postgres/run"
	thePause       = "docs/operations.md: gq '{ workspaces(first: 100) { edges { node { id } } } }' | "
	restoreAddress = "127.0.0.1:8090" // that theRestore names; the tests put a free one in its place
)

var played = []string{theTour, theSlowAgent, theRoutine, theTask, theTokens, thePruning, theLocalToken, theBackup, theOwnBackup, theRestore, thePause}

// unplayed are the blocks that are only read by the shells, each with the reason.
var unplayed = map[string]string{
	"README.md: make run":   "it builds, serves and runs all tests, this one among them",
	"CONTRIBUTING.md: make": "it builds, serves and runs all tests, this one among them",
	"docs/operations.md: make build && install -m 0755 bin/rouse /usr/local/bin/rouse": "it installs for the whole machine",
	"docs/operations.md: install -m 0644 packaging/rouse.service /etc/systemd/system/": "it needs systemd as the machine's first process",
	"docs/operations.md: rouse token create --data-dir /var/lib/rouse --name promethe": "it needs the account of an installed Prometheus",
	"docs/spec.md: git grep -n \"S8\\.4\"":                                             "it searches a checkout, and the reader has a home alone",
	"docs/proxy.md: rouse serve --webhook-addr 127.0.0.1:8082":                         "it takes the usual ports; TestBehindNginxOnlyTokensCount starts the same on free ones",
}

var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```")

// blocksOfTheDocuments are all blocks of commands, by name.
func blocksOfTheDocuments(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := map[string]string{}
	for _, file := range append(files, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
			name := nameOfBlock(strings.TrimPrefix(file, "../../"), block[1])
			if _, twice := blocks[name]; twice {
				t.Errorf("two blocks are called %q", name)
			}
			blocks[name] = block[1]
		}
	}
	return blocks
}

// nameOfBlock is made of the document and the first command, cut where it is long.
func nameOfBlock(document, text string) string {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); !strings.HasPrefix(line, "#") {
			return document + ": " + line[:min(len(line), 60)]
		}
	}
	return document + ": nothing"
}

// Each block of commands is played or has a reason why it is not, and both shells can read it.
func TestEveryBlockOfCommandsIsPlayedOrSaysWhyNot(t *testing.T) {
	t.Parallel()
	blocks := blocksOfTheDocuments(t)
	listed := slices.Concat(played, slices.Collect(maps.Keys(unplayed)))
	for name, text := range blocks {
		if !slices.Contains(listed, name) {
			t.Errorf("%s\nis neither played nor among those that are not: add it to played and play it, or to unplayed with a reason", name)
		}
		for shell := range shells {
			cmd := exec.CommandContext(t.Context(), shell, "-n")
			cmd.Stdin = strings.NewReader(text)
			if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
				t.Errorf("%s\n%s cannot read it: %v: %s", name, shell, err, out)
			}
		}
	}
	for _, name := range listed {
		if _, ok := blocks[name]; !ok {
			t.Errorf("no document has %s", name)
		}
	}
}

// TestTheDocumentsCommandsWorkAsTheyAre pastes the documents' commands into a shell, in the order in which a person would meet them.
// Only the port of the restored copy is another, and curl's settings lead the usual port to the started program.
func TestTheDocumentsCommandsWorkAsTheyAre(t *testing.T) {
	t.Parallel()
	for shell := range shells {
		t.Run(shell, func(t *testing.T) {
			t.Parallel()
			r := newReader(t, shell)
			r.followTour()
			r.administer()
			if onlyRoot(t) { // what stands in /var/lib/rouse
				r.backUpAndRestore()
			}
		})
	}
}

func (r *reader) followTour() {
	t := r.t
	r.paste(theTour)
	eventually(t, "the counter has counted", patience, func() bool { return slices.Contains(r.summariesOf("counter"), "counted to three") })
	if run := r.paste(theSlowAgent); !regexp.MustCompile(`(?m)^run_[0-9a-z]{26}$`).MatchString(run) {
		t.Errorf("it says %q", run)
	}
	if said := r.paste(theRoutine); !strings.Contains(said, `"source":"MANUAL"`) {
		t.Errorf("it says %s", said)
	}
	if said := r.paste(theTask); !strings.Contains(said, `"hold":"TASK_BLOCKED"`) || !strings.Contains(said, `"source":"TASK_BLOCKERS_RESOLVED"`) {
		t.Errorf("it says %s", said)
	}
	eventually(t, "the builder has built", patience, func() bool {
		said := r.enter("look")
		return r.t.Failed() || strings.Contains(said, `"state":"DONE"`) && strings.Contains(said, `"body":"Built."`)
	})
}

func (r *reader) administer() {
	if said := r.paste(theTokens); !strings.Contains(said, "rse_") || !strings.Contains(said, "laptop") {
		r.t.Errorf("it says %s", said)
	}
	if said := r.paste(thePruning); !strings.Contains(said, "WOULD BE REMOVED") || strings.Count(said, "REMOVED") != 2 {
		r.t.Errorf("it says %s", said)
	}
}

func (r *reader) backUpAndRestore() {
	t := r.t
	if said := r.paste(theLocalToken); !strings.Contains(said, " holds another token, tok_") || !strings.Contains(said, `"version":`) {
		t.Errorf("it says %s", said)
	}
	r.enter("ROUSE_DATABASE_URL='" + newHouse(t).url + "'")
	r.paste(theOwnBackup)
	r.enter("unset ROUSE_DATABASE_URL")
	r.paste(theBackup) // over the other dump

	address := fixedAddress(t)
	restored := strings.ReplaceAll(r.blocks[theRestore], restoreAddress, address)
	r.send(restored)
	banner := regexp.MustCompile(`(?m)^\s*API\s+http://` + regexp.QuoteMeta(address))
	eventually(t, "the restored copy serves", patience, func() bool { return len(banner.FindAllString(r.said(), -1)) == 2 }) // the first one was empty
	other := r.open(r.shell)
	other.paste("functions of the tour", fmt.Sprintf("D=/var/lib/rouse-restored\nAPI=http://%s/graphql\nTOKEN=$D/token\n", address)+functionsOf(r.blocks[theTour]))
	other.paste(thePause, r.blocks[thePause])
	agents := other.enter(`gq '{ workspace(slug: "demo") { agents(first: 100) { edges { node { name status } } } runs(first: 100, filter: {status: [CLAIMED]}) { edges { node { cancelRequestedAt } } } } }'`)
	if !strings.Contains(agents, `"name":"slow"`) || strings.Count(agents, `"status":"PAUSED"`) != strings.Count(agents, `"name":`) || strings.Contains(agents, `"cancelRequestedAt":null`) {
		t.Errorf("in the restored copy are %s", agents)
	}
	r.interrupt()
	r.check(theRestore, r.await("0", "130"), "curl: (7)", "curl: (22)") // what the loop says while it waits
}

// functionsOf is the part of the tour that makes its functions.
func functionsOf(tour string) string {
	_, functions, _ := strings.Cut(tour, "graphql\n")
	functions, _, _ = strings.Cut(functions, "\n\n")
	return functions
}
