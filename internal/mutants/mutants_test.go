package main

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module is a package of two functions with tests: they notice all changes of the one and nearly none of the other.
func module(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{
		"go.mod": "module example.com/rules\n\ngo 1.26\n",
		"rules/rules.go": `package rules

type Word string

const Known Word = "known"

var steps = map[string]int{"one": 1}

// May says who may.
func May(age int, word Word) (bool, int) {
	n := steps["one"]
	switch word {
	case Known:
		n++
	}
	return age >= 18 && word != "", n
}

func Missed(a, b int) int {
	if a > b {
		a = b // a comment
	}
	return a + b
}
`,
		"rules/rules_test.go": `package rules

import "testing"

func TestMay(t *testing.T) {
	for _, c := range []struct {
		age  int
		word Word
		may  bool
		n    int
	}{{18, Known, true, 2}, {17, Known, false, 2}, {18, "", false, 1}, {19, "x", true, 1}} {
		if may, n := May(c.age, c.word); may != c.may || n != c.n {
			t.Errorf("%+v: %t %d", c, may, n)
		}
	}
	Missed(1, 2)
}
`,
	} {
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMutantsThatNoTestNoticesAreFoundAndOthersAreNot(t *testing.T) {
	module(t)
	err := run([]string{"-results", "results", "-explain", "none.txt", "rules"}, t.Output())
	if err == nil || !strings.Contains(err.Error(), "of its mutants are killed") {
		t.Errorf("what no test notices is no failure: %v", err)
	}
	fates := fatesIn(t)
	for key, want := range map[string]string{
		"May: age >= 18 → age > 18": killed, "May: age >= 18 → age < 18": killed, "May: 18 → 18+1": killed, `May: word != "" → word == ""`: killed,
		`May: age >= 18 && word != "" → age >= 18`: killed, "May: n++ left out": killed, "May: case Known never": killed, `(package): "one": 1 left out`: killed,
		"Missed: a + b → a - b": survived, "Missed: a > b → a >= b": survived, "Missed: a = b left out": unmet,
	} {
		if got := fates["rules/rules.go "+key]; got != want {
			t.Errorf("%s is %q, want %s", key, got, want)
		}
	}
	if text, err := os.ReadFile("rules/rules.go"); err != nil || strings.Contains(string(text), "mutant") {
		t.Errorf("the sources were changed: %v", err)
	}
}

// fatesIn reads the one file of results.
func fatesIn(t *testing.T) map[string]string {
	t.Helper()
	files, err := filepath.Glob("results/*.tsv")
	if err != nil || len(files) != 1 {
		t.Fatalf("results %v, %v", files, err)
	}
	text, err := os.ReadFile(files[0])
	if err != nil {
		t.Fatal(err)
	}
	fates := map[string]string{}
	for line := range strings.Lines(string(text)) {
		fate, key, _ := strings.Cut(strings.TrimSpace(line), "\t")
		if fates[key] != "" {
			t.Errorf("two mutants are called %s", key)
		}
		fates[key] = fate
	}
	return fates
}

func TestAReasonHoldsForTheMutantsBehindIt(t *testing.T) {
	module(t)
	if err := run([]string{"-results", "results", "-explain", "none.txt", "rules"}, t.Output()); err == nil {
		t.Fatal("what no test notices is no failure")
	}
	text := "# why\nNobody asks for it.\n"
	for key, fate := range fatesIn(t) {
		if fate != killed {
			text += "\t" + key + "\n"
		}
	}
	if err := os.WriteFile("reasons.txt", []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"-results", "results", "-explain", "reasons.txt", "-least", "0.1", "rules"}, t.Output()); err != nil {
		t.Errorf("with a reason for each: %v", err)
	}
	_, all, _ := strings.Cut(text, "\t")
	if err := os.WriteFile("reasons.txt", []byte("Nobody.\n\t"+all[strings.Index(all, "\t")+1:]), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := run([]string{"-results", "results", "-explain", "reasons.txt", "-least", "0.1", "rules"}, t.Output()); err == nil || !strings.Contains(err.Error(), "1 mutants") {
		t.Errorf("with a reason too few: %v", err)
	}
}

func TestChangedLinesAreReadFromADiff(t *testing.T) {
	const diff = `diff --git internal/a.go internal/a.go
--- internal/a.go
+++ internal/a.go
@@ -1,2 +3,2 @@ func a() {
+x
+y
@@ -9 +10 @@
+z
@@ -20,3 +19,0 @@
-gone
diff --git b.go b.go
--- /dev/null
+++ b.go
@@ -0,0 +1,2 @@
+package b
+
`
	got := linesOf(diff)
	for file, want := range map[string][]int{"internal/a.go": {3, 4, 10}, "b.go": {1, 2}} {
		if lines := slices.Sorted(maps.Keys(got[file])); !slices.Equal(lines, want) {
			t.Errorf("of %s lines %v, want %v", file, lines, want)
		}
	}
}

func TestASampleIsChosenEvenly(t *testing.T) {
	p := &pack{mutants: make([]mutant, 10)}
	for i := range p.mutants {
		p.mutants[i].id, p.mutants[i].line, p.mutants[i].file = i+1, i, "a.go"
	}
	ids := func(o options, lines map[string]map[int]bool) (list []int) {
		for _, m := range p.choose(o, lines) {
			list = append(list, m.id)
		}
		return list
	}
	if got := ids(options{packages: []string{"a", "b"}, sample: 10}, nil); !slices.Equal(got, []int{1, 3, 5, 7, 9}) {
		t.Errorf("five of ten are %v", got)
	}
	if got := ids(options{packages: []string{"a"}, changed: "HEAD"}, map[string]map[int]bool{"a.go": {4: true, 7: true}}); !slices.Equal(got, []int{5, 8}) {
		t.Errorf("of the changed lines are %v", got)
	}
}

// Insertions nest as what they are put around does.
func TestMutantsOfOneTextNest(t *testing.T) {
	got := mutated([]byte("x = a + b + c;"), []mutant{
		{id: 1, from: 0, to: 13, before: "S%d{", after: "}"}, {id: 2, from: 4, to: 13, before: "O%d(", after: ")"}, {id: 3, from: 4, to: 13, before: "P%d(", after: ")"},
		{id: 4, from: 4, to: 9, before: "I%d(", after: ")"}, {id: 5, from: 12, to: 13, before: "L%d[", after: "]"},
	})
	if want := "S1{x = O2(P3(I4(a + b) + L5[c]))};"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
