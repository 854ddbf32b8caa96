package archtest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestWhatIsCitedExists fails on a citation of a rule, case, criterion, scenario or decision that no page numbers: a reader
// who looks for it would look in vain.
func TestWhatIsCitedExists(t *testing.T) {
	known, err := Numbers(root)
	if err != nil {
		t.Fatal(err)
	}
	cited := map[string]int{}
	if err := EachCitingFile(root, func(where, text string) {
		for _, c := range Citations(text) {
			cited[c.What]++
			if !known[c.What] {
				t.Errorf("%s:%d cites %s, and no page in docs/ numbers it", where, c.Line, c.What)
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	if len(known) < 300 || len(cited) < 250 {
		t.Errorf("%d numbers and %d citations were found: the pages or the files were not read", len(known), len(cited))
	}
}

// TestEveryCaseIsShown fails on a case of docs/spec-cases.md that no test names.
func TestEveryCaseIsShown(t *testing.T) {
	known, err := Numbers(root)
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]bool{}
	if err := EachCitingFile(root, func(where, text string) {
		if strings.HasSuffix(where, "_test.go") {
			for _, c := range Citations(text) {
				shown[c.What] = true
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	for what := range known {
		if caseCited.MatchString(what) && !strings.HasPrefix(what, "AC-") && !shown[what] {
			t.Errorf("no test names the case %s", what)
		}
	}
}

func TestCitationsAreFoundInEveryForm(t *testing.T) {
	const text = "(SPEC S4.5, S1" + "3)\n// S10." + "7: bare, SPEC\n// S9\noffice-scheduler S2" + "4: a scenario, C99" + "9 and C1\n" +
		"queue rule 1" + "1, docs/wire.md rule 9" + "9; decision 9" + "9; AC-OFFICE-LOOP-" + "LIVENESS-006.1, not SP500, S7 or AC1D"
	var got []string
	for _, c := range Citations(text) {
		got = append(got, string(rune('0'+c.Line))+" "+c.What)
	}
	slices.Sort(got)
	want := []string{"1 S1" + "3", "1 S4.5", "2 S10." + "7", "3 S9", "4 C1", "4 C99" + "9", "4 office-scheduler S2" + "4",
		"5 AC-OFFICE-LOOP-" + "LIVENESS-006.1", "5 decision 9" + "9", "5 queue rule 1" + "1", "5 wire rule 9" + "9"}
	if !slices.Equal(got, want) {
		t.Errorf("found %q\nwant  %q", got, want)
	}
}

// goName is a name of Go code as the pages give it behind "Kept by:", with or without its package.
var goName = regexp.MustCompile("`(?:[a-z]+\\.)?([A-Za-z]\\w*)`")

// keepers is the part of a page's line that names code: what stands behind "Kept by:", and a row of a table whose second
// cell is a rule, as in docs/architecture.md.
func keepers(line string) string {
	if names, ok := strings.CutPrefix(line, "Kept by: "); ok {
		names, _, _ = strings.Cut(names, "Shown by: ")
		return names
	}
	if cells := strings.Split(line, " | "); len(cells) == 4 && ruleCited.MatchString(cells[1]) {
		return cells[2] + cells[3]
	}
	return ""
}

// TestThePagesNameCodeThatExists fails on a test that a page names and nobody wrote, and on code that a page names for a rule
// and that no Go file declares.
func TestThePagesNameCodeThatExists(t *testing.T) {
	tests, err := TestNames(root)
	if err != nil {
		t.Fatal(err)
	}
	declared, kept := map[string]bool{}, map[string]string{}
	declaration := regexp.MustCompile(`(?m)^(?:func (?:\([^)]*\) )?|type |const |var |\t)([A-Za-z]\w*)`)
	if err := EachCitingFile(root, func(where, text string) {
		switch {
		case strings.HasSuffix(where, ".go"):
			for _, m := range declaration.FindAllStringSubmatch(text, -1) {
				declared[m[1]] = true
			}
		case strings.HasPrefix(where, "docs/"):
			for _, m := range testName.FindAllStringSubmatch(text, -1) {
				if !tests[m[1]] {
					t.Errorf("%s names %s, which no test file has", where, m[1])
				}
			}
			for line := range strings.Lines(text) {
				for _, m := range goName.FindAllStringSubmatch(keepers(line), -1) {
					kept[m[1]] = where
				}
			}
		}
	}); err != nil {
		t.Fatal(err)
	}
	for name, where := range kept {
		if !declared[name] {
			t.Errorf("%s says that %s keeps a rule, and no Go file declares it", where, name)
		}
	}
	if len(kept) < 30 {
		t.Errorf("only %d names were found that keep a rule", len(kept))
	}
}

var (
	markdownLink = regexp.MustCompile(`\]\(([^()\s]+)\)`)
	heading      = regexp.MustCompile(`(?m)^#{1,6} (.+)$`)
	fenced       = regexp.MustCompile("(?ms)^```.*?^```")
	namedAnchor  = regexp.MustCompile(`<a id="([a-z-]+)">`)
	noAnchor     = regexp.MustCompile(`[^\p{L}\p{N}\s_-]`)
)

// TestLinksOfThePagesLeadSomewhere fails on a link to a file or a heading that is not there.
func TestLinksOfThePagesLeadSomewhere(t *testing.T) {
	pages := map[string]string{}
	if err := EachCitingFile(root, func(where, text string) {
		if strings.HasSuffix(where, ".md") {
			pages[where] = fenced.ReplaceAllString(text, "")
		}
	}); err != nil {
		t.Fatal(err)
	}
	for where, text := range pages {
		for _, m := range markdownLink.FindAllStringSubmatch(text, -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, anchor, _ := strings.Cut(m[1], "#")
			target := where
			if file != "" {
				target = filepath.ToSlash(filepath.Join(filepath.Dir(where), file))
			}
			if _, err := os.Stat(filepath.Join(root, target)); err != nil {
				t.Errorf("%s links to %s, which is not there", where, m[1])
			} else if anchor != "" && !slices.Contains(anchorsOf(pages[target]), anchor) {
				t.Errorf("%s links to %s, and %s has no such heading", where, m[1], target)
			}
		}
	}
}

// anchorsOf is the anchors that GitHub gives to a page's headings, and those that the page names itself.
func anchorsOf(page string) (list []string) {
	for _, m := range heading.FindAllStringSubmatch(page, -1) {
		list = append(list, strings.ReplaceAll(noAnchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-"))
	}
	for _, m := range namedAnchor.FindAllStringSubmatch(page, -1) {
		list = append(list, m[1])
	}
	return list
}
