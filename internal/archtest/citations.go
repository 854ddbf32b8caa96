package archtest

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Citation is a rule, case or record that a file names, and the line that names it.
type Citation struct {
	What string // as Numbers spells it: "S3.5", "C82", "queue rule 5", "decision 20"
	Line int
}

// The forms of citations. A section such as S13 counts only behind SPEC, because scenarios have numbers of that form, too.
var (
	ruleCited      = regexp.MustCompile(`\bS\d{1,2}\.\d{1,2}\b`)
	sectionsCited  = regexp.MustCompile(`\bSPEC(?:(?:[,;:\s]|//|and |to )+S\d{1,2}(?:\.\d{1,2})?\b)+`)
	section        = regexp.MustCompile(`\bS\d{1,2}(?:\.\d{1,2})?\b`)
	caseCited      = regexp.MustCompile(`\bC\d{1,3}\b`)
	criterionCited = regexp.MustCompile(`\bAC-OFFICE-LOOP-LIVENESS-\d{3}(?:\.\d{1,2})?\b`)
	pageRuleCited  = regexp.MustCompile(`(?i)\b(queue|wire)(?:\.md)?,? rules? (\d+)\b`)
	scenarioCited  = regexp.MustCompile(`\b(?:office-scheduler|run-scheduling|lifecycle-plan) [SRP]\d+\b`)
	decisionCited  = regexp.MustCompile(`\b[Dd]ecision (\d+)\b`)
)

// The forms in which the pages number what can be cited.
var (
	ruleHeading     = regexp.MustCompile(`(?m)^#{2,3} (S\d{1,2}(?:\.\d{1,2})?) `)
	caseRow         = regexp.MustCompile(`(?m)^\| (C\d{1,3}) \|`)
	pageRuleHeading = regexp.MustCompile(`(?m)^## Rule (\d+)\. `)
	decisionHeading = regexp.MustCompile(`^# (\d+)\. `)
)

// Citations lists what a text cites. One thing that is cited twice on a line counts once.
func Citations(text string) []Citation {
	var list []Citation
	seen := map[Citation]bool{}
	add := func(at int, what string) {
		c := Citation{what, 1 + strings.Count(text[:at], "\n")}
		if !seen[c] {
			seen[c], list = true, append(list, c)
		}
	}
	for _, form := range []*regexp.Regexp{ruleCited, caseCited, criterionCited, scenarioCited} {
		for _, m := range form.FindAllStringIndex(text, -1) {
			add(m[0], text[m[0]:m[1]])
		}
	}
	for _, m := range sectionsCited.FindAllStringIndex(text, -1) {
		for _, s := range section.FindAllStringIndex(text[m[0]:m[1]], -1) {
			add(m[0]+s[0], text[m[0]+s[0]:m[0]+s[1]])
		}
	}
	for _, m := range pageRuleCited.FindAllStringSubmatchIndex(text, -1) {
		add(m[0], strings.ToLower(text[m[2]:m[3]])+" rule "+text[m[4]:m[5]])
	}
	for _, m := range decisionCited.FindAllStringSubmatchIndex(text, -1) {
		add(m[0], "decision "+text[m[2]:m[3]])
	}
	return list
}

// Numbers is all that may be cited, by what the pages under root number. It fails when a page numbers one thing twice.
func Numbers(root string) (map[string]bool, error) {
	n := numbers{root: root, known: map[string]bool{}}
	n.read("docs/spec.md", ruleHeading, "")
	n.read("docs/spec-cases.md", caseRow, "")
	n.read("docs/queue.md", pageRuleHeading, "queue rule ")
	n.read("docs/wire.md", pageRuleHeading, "wire rule ")
	records, err := filepath.Glob(filepath.Join(root, "docs", "decisions", "0*.md"))
	n.fail(err)
	for _, record := range records {
		n.read("docs/decisions/"+filepath.Base(record), decisionHeading, "decision ")
	}
	for _, criterion := range Criteria() {
		n.known[criterion] = true
		n.known[criterion[:strings.LastIndex(criterion, ".")]] = true // the requirement
	}
	scenarios, err := ListedScenarios(filepath.Join(root, "docs", "scenarios.md"))
	n.fail(err)
	for scenario := range scenarios {
		n.known[scenario] = true
	}
	return n.known, n.err
}

type numbers struct {
	root  string
	known map[string]bool
	err   error // the first
}

func (n *numbers) fail(err error) {
	if n.err == nil {
		n.err = err
	}
}

func (n *numbers) read(page string, form *regexp.Regexp, prefix string) {
	text, err := os.ReadFile(filepath.Join(n.root, page))
	n.fail(err)
	for _, m := range form.FindAllSubmatch(text, -1) {
		what := prefix + string(m[1])
		if n.known[what] {
			n.fail(fmt.Errorf("%s numbers %s twice", page, what))
		}
		n.known[what] = true
	}
}

// EachCitingFile reads the files under root that may cite: Go, SDL, SQL, pages, and the descriptions of the API. Generated
// code is left out.
func EachCitingFile(root string, look func(where, text string)) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		where, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		where = filepath.ToSlash(where)
		if d.IsDir() {
			if name := d.Name(); where != "." && (strings.HasPrefix(name, ".") || name == "node_modules" || name == "dist" || where == "internal/console/web/build" || strings.HasPrefix(where, "ent/") && where != "ent/schema") {
				return filepath.SkipDir
			}
			return nil
		}
		switch ext := filepath.Ext(path); {
		case ext != ".go" && ext != ".graphql" && ext != ".sql" && ext != ".md" && where != "ent/descriptions.txt",
			strings.HasSuffix(path, ".generated.go"), strings.HasPrefix(where, "ent/") && ext == ".go" && !strings.HasPrefix(where, "ent/schema/"):
			return nil
		}
		text, err := os.ReadFile(path)
		if err == nil {
			look(where, string(text))
		}
		return err
	})
}
