package archtest

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestEveryScenarioHasATest fails on a scenario that not exactly one test plays, or that docs/scenarios.md tells otherwise
// than its test does; `make scenarios` prints them all.
func TestEveryScenarioHasATest(t *testing.T) {
	root := filepath.Join("..", "..")
	found, err := ScenarioTests(root)
	if err != nil {
		t.Fatal(err)
	}
	listed, err := ListedScenarios(filepath.Join(root, "docs", "scenarios.md"))
	if err != nil {
		t.Fatal(err)
	}
	all := Scenarios()
	for _, scenario := range all {
		played := found[scenario]
		if len(played) != 1 {
			t.Errorf("%s is played by %d tests, want one: %v", scenario, len(played), played)
			continue
		}
		t.Logf("%s → %s: %s", scenario, played[0].File, played[0].Sentence)
		if listed[scenario] != played[0].Sentence {
			t.Errorf("docs/scenarios.md tells %s as %q, its test as %q", scenario, listed[scenario], played[0].Sentence)
		}
	}
	for scenario := range found {
		if !slices.Contains(all, scenario) {
			t.Errorf("%v carry the number of a scenario that does not exist: %s", found[scenario], scenario)
		}
	}
	for scenario := range listed {
		if !slices.Contains(all, scenario) {
			t.Errorf("docs/scenarios.md lists a scenario that does not exist: %s", scenario)
		}
	}
}

func TestOnlyNamesCountForAScenario(t *testing.T) {
	dir := t.TempDir()
	source := `package x
func TestIt(t *testing.T) {
	t.Run("office-scheduler ` + `S1: it is played", func(t *testing.T) { t.Errorf("office-scheduler ` + `S2: failed") })
	for _, c := range []struct{ name string }{{"run-scheduling ` + `R3: as a row"}, {"of run-scheduling ` + `R4: in the middle"}} { _ = c }
	// office-scheduler ` + `S5: is a remark
}
func part(t *testing.T) { t.Run("lifecycle-plan ` + `P4: of another", nil) }
`
	document := filepath.Join(dir, "scenarios.md")
	for name, text := range map[string]string{filepath.Join(dir, "x_test.go"): source, document: "| scenario | told |\n|---|---|\n| run-scheduling R3 | as a row | more |\n"} {
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	found, err := ScenarioTests(dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for scenario, played := range found {
		got = append(got, scenario+": "+played[0].Sentence)
	}
	slices.Sort(got)
	if want := []string{"lifecycle-plan " + "P4: of another", "office-scheduler " + "S1: it is played", "run-scheduling " + "R3: as a row"}; !slices.Equal(got, want) {
		t.Errorf("found %q, want %q", got, want)
	}
	if listed, err := ListedScenarios(document); err != nil || len(listed) != 1 || listed["run-scheduling R3"] != "as a row" {
		t.Errorf("listed %q, %v", listed, err)
	}
}
