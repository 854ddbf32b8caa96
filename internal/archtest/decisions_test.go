package archtest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDecisionsAreNumberedAndListed fails on two records with one number, and on one that the list leaves out: a text that
// says "decision 20" has to mean one page.
func TestDecisionsAreNumberedAndListed(t *testing.T) {
	folder := filepath.Join("..", "..", "docs", "decisions")
	list, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	records, err := filepath.Glob(filepath.Join(folder, "0*.md"))
	if err != nil || len(records) < 20 {
		t.Fatalf("%d records were found: %v", len(records), err)
	}
	for i, path := range records {
		name := filepath.Base(path)
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		number, title, _ := strings.Cut(strings.TrimPrefix(strings.SplitN(string(text), "\n", 2)[0], "# "), ". ")
		if want := fmt.Sprint(i + 1); number != want || !strings.HasPrefix(name, fmt.Sprintf("%04d-", i+1)) {
			t.Errorf("%s is headed with number %s, want %s: the next free number, in both", name, number, want)
		}
		if line := fmt.Sprintf("\n%s. [%s](%s)\n", number, title, name); !strings.Contains(string(list), line) {
			t.Errorf("the list has no line %q", strings.TrimSpace(line))
		}
	}
}
