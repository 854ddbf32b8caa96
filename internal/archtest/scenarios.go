package archtest

import (
	"fmt"
	"go/ast"
	"os"
	"regexp"
	"strconv"
	"strings"
)

// scenarioForm is how a test names the scenario that it plays: "office-scheduler S1: an office task is assigned …".
var scenarioForm = regexp.MustCompile(`^((?:office-scheduler S|run-scheduling R|lifecycle-plan P)\d+): (.+)$`)

// scenarioRow is a row of the table in docs/scenarios.md.
var scenarioRow = regexp.MustCompile(`(?m)^\| ((?:office-scheduler S|run-scheduling R|lifecycle-plan P)\d+) \| (.+?) \|`)

// Scenarios are the scenarios of the specification's sources, and the tests that the plan of the scheduler's lifecycle
// asks for, in order.
func Scenarios() []string {
	var list []string
	for _, source := range []struct {
		name string
		n    int
	}{{"office-scheduler S", 24}, {"run-scheduling R", 8}, {"lifecycle-plan P", 5}} {
		for i := range source.n {
			list = append(list, fmt.Sprint(source.name, i+1))
		}
	}
	return list
}

// Played is a test of a scenario.
type Played struct {
	File     string
	Sentence string // the rest of its name
}

// ScenarioTests finds, under root, the names of tests that carry a scenario.
func ScenarioTests(root string) (map[string][]Played, error) {
	found := map[string][]Played{}
	return found, eachTestFile(root, func(where string, file *ast.File) {
		for _, f := range functionsOf(file) {
			for _, literal := range namesIn(f.Body) {
				name, err := strconv.Unquote(literal)
				if m := scenarioForm.FindStringSubmatch(name); err == nil && m != nil {
					found[m[1]] = append(found[m[1]], Played{where, m[2]})
				}
			}
		}
	})
}

// ListedScenarios reads the table of a document: scenario to sentence.
func ListedScenarios(document string) (map[string]string, error) {
	text, err := os.ReadFile(document)
	if err != nil {
		return nil, err
	}
	listed := map[string]string{}
	for _, m := range scenarioRow.FindAllStringSubmatch(string(text), -1) {
		listed[m[1]] = strings.TrimSpace(m[2])
	}
	return listed, nil
}
