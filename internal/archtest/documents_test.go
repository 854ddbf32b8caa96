package archtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var (
	quoted          = regexp.MustCompile(`'[^']*'|"(?:[^"\\]|\\.)*"`)
	shellBlock      = regexp.MustCompile("(?ms)^```sh\n(.*?)^```")
	trailingComment = regexp.MustCompile(`\S\s+#\s`)
	// quietComment is a comment that zsh may read as a command, as it does in a terminal: it must hold nothing that opens a
	// quote, a pattern or another command, or the lines behind it are lost.
	quietComment = regexp.MustCompile(`^#[^'"()\x60;&|<>*?\[\]{}$!\\]*$`)
	// bareWildcard is a ? or * outside of quotes, which zsh refuses when no file matches.
	bareWildcard = regexp.MustCompile(`(^|\s)[^\s'"]*[?*][^\s'"]*(\s|$)`)
)

// The commands of README and docs can be pasted into a terminal with bash or zsh: they are whole, and no comment stands
// behind a command, where zsh takes it for arguments.
func TestCommandsOfTheDocumentsCanBePasted(t *testing.T) {
	files, err := filepath.Glob("../../docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := 0
	for _, file := range append(files, "../../README.md", "../../CONTRIBUTING.md") {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, block := range shellBlock.FindAllStringSubmatch(string(text), -1) {
			blocks++
			for _, problem := range cannotBePasted(t, block[1]) {
				t.Errorf("%s: %s", strings.TrimPrefix(file, "../../"), problem)
			}
		}
	}
	if blocks < 15 {
		t.Errorf("only %d blocks of commands were found", blocks)
	}
}

// cannotBePasted says what is wrong with a block of commands.
func cannotBePasted(t *testing.T, block string) (problems []string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "bash", "-n")
	cmd.Stdin = strings.NewReader(block)
	if out, err := cmd.CombinedOutput(); err != nil {
		problems = append(problems, "bash cannot read it: "+string(out))
	}
	var commands strings.Builder
	for line := range strings.Lines(block) {
		comment := strings.TrimSpace(line)
		if !strings.HasPrefix(comment, "#") {
			commands.WriteString(line)
		} else if !quietComment.MatchString(comment) {
			problems = append(problems, "zsh would read more in this comment than words: "+comment)
		}
	}
	for line := range strings.Lines(quoted.ReplaceAllString(commands.String(), "x")) {
		line = strings.TrimRight(line, "\n")
		switch {
		case trailingComment.MatchString(line):
			problems = append(problems, "a comment stands behind a command, where zsh takes it for arguments: "+line)
		case bareWildcard.MatchString(line):
			problems = append(problems, "zsh takes ? and * outside of quotes for a pattern of files: "+line)
		}
	}
	return problems
}

func TestWhatCannotBePastedIsFound(t *testing.T) {
	for block, fine := range map[string]bool{
		"make run\n": true, "# starts everything, with a demo\nmake run\n": true, "curl 'http://x/?a=1' | sh -c \"ls *\"\n": true,
		"make run # starts it\n": false, "# it's here\nmake\n": false, "echo 'a\n": false, "curl http://x/?a=1\n": false, "# see (this)\n": false, "echo 'a\n * b'\n": true, "echo 'a\n b' # c\n": false,
	} {
		if got := cannotBePasted(t, block); (len(got) == 0) != fine {
			t.Errorf("%q: %v", block, got)
		}
	}
}
