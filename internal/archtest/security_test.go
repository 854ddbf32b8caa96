package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestEveryRowOfSecurityHasATest fails on a row of docs/security.md that names no test, or one that does not exist.
func TestEveryRowOfSecurityHasATest(t *testing.T) {
	root := filepath.Join("..", "..")
	page, err := os.ReadFile(filepath.Join(root, "docs", "security.md"))
	if err != nil {
		t.Fatal(err)
	}
	names, err := TestNames(root)
	if err != nil {
		t.Fatal(err)
	}
	rows := SecurityRows(string(page))
	if len(rows) < 4 {
		t.Fatalf("the page has %d rows", len(rows))
	}
	for _, row := range rows {
		if len(row.Tests) == 0 {
			t.Errorf("no test shows: %s", row.Text)
		}
		for _, name := range row.Tests {
			if !names[name] {
				t.Errorf("%s does not exist, and should show: %s", name, row.Text)
			}
		}
	}
}

func TestOnlyTheLastCellOfARowNamesItsTests(t *testing.T) {
	rows := SecurityRows("text with `TestNoRow`\n\n| who | shown by |\n|---|:--|\n| `TestInAnotherCell` | `TestOne` and `TestTwo` |\n| nobody | – |\n\n| a | b |\n|--|--|\n| x | `TestThree` |\n")
	var got []string
	for _, row := range rows {
		got = append(got, row.Tests...)
	}
	if len(rows) != 3 || !slices.Equal(got, []string{"TestOne", "TestTwo", "TestThree"}) {
		t.Errorf("%d rows with %v", len(rows), got)
	}
}
