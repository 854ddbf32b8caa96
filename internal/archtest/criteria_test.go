package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestEveryCriterionHasATest fails on an acceptance criterion without a test that carries its number; `make criteria` prints
// them all.
func TestEveryCriterionHasATest(t *testing.T) {
	found, err := CriteriaTests(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	all := Criteria()
	if len(all) != 54 {
		t.Fatalf("there are %d criteria, want 54", len(all))
	}
	page, err := os.ReadFile(filepath.Join("..", "..", "docs", "criteria.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, criterion := range all {
		t.Log(criterion, "→", found[criterion])
		if row := "\n| " + criterion[len("AC-OFFICE-LOOP-LIVENESS-"):] + " | "; !strings.Contains(string(page), row) {
			t.Errorf("docs/criteria.md has no row that says what %s is", criterion)
		}
		if len(found[criterion]) == 0 {
			t.Errorf("%s has no test", criterion)
		}
	}
	for criterion := range found {
		if !slices.Contains(all, criterion) {
			t.Errorf("%v carry the number of a criterion that does not exist: %s", found[criterion], criterion)
		}
	}
}

func TestOnlyNamesCountForACriterion(t *testing.T) {
	dir := t.TempDir()
	source := `package x
func TestIt(t *testing.T) {
	t.Run("AC-OFFICE-LOOP-` + `LIVENESS-001.1 does", func(t *testing.T) { t.Errorf("AC-OFFICE-LOOP-` + `LIVENESS-001.2 failed") })
	for _, c := range []struct{ name string }{{"AC-OFFICE-LOOP-` + `LIVENESS-001.10 and AC-OFFICE-LOOP-` + `LIVENESS-001.3"}} { _ = c }
	// AC-OFFICE-LOOP-` + `LIVENESS-001.4 is a remark
}
func TestAC_OFFICE_LOOP_` + `LIVENESS_002_1_and_2_AreNamedSo(t *testing.T) {}
func helper() string { return "AC-OFFICE-LOOP-` + `LIVENESS-001.5" }
`
	if err := os.WriteFile(filepath.Join(dir, "x_test.go"), []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	found, err := CriteriaTests(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for criterion := range found {
		got = append(got, criterion[len(criterion)-6:])
	}
	slices.Sort(got)
	if want := []string{"-001.1", "-001.3", "-002.1", "-002.2", "001.10"}; !slices.Equal(got, want) {
		t.Errorf("found %v, want %v", got, want)
	}
}
