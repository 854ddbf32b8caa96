package archtest

import (
	"go/ast"
	"regexp"
	"strings"
)

// SecurityRow is a row of docs/security.md: who may do what from where, and the tests that show it.
type SecurityRow struct {
	Text  string
	Tests []string
}

// testName is a test as the page names it.
var testName = regexp.MustCompile("`(Test\\w+)`")

// SecurityRows reads the rows of every table of a page; what counts is the last cell.
func SecurityRows(page string) (rows []SecurityRow) {
	body := false // below the line of dashes of a table
	for line := range strings.Lines(page) {
		line = strings.TrimSpace(line)
		switch {
		case !strings.HasPrefix(line, "|"):
			body = false
		case strings.Trim(line, "|-: ") == "":
			body = true
		case body:
			cells := strings.Split(strings.Trim(line, "| "), "|")
			row := SecurityRow{Text: line}
			for _, m := range testName.FindAllStringSubmatch(cells[len(cells)-1], -1) {
				row.Tests = append(row.Tests, m[1])
			}
			rows = append(rows, row)
		}
	}
	return rows
}

// TestNames lists the test functions under root.
func TestNames(root string) (map[string]bool, error) {
	names := map[string]bool{}
	return names, eachTestFile(root, func(_ string, file *ast.File) {
		for _, f := range functionsOf(file) {
			if f.Recv == nil && strings.HasPrefix(f.Name.Name, "Test") {
				names[f.Name.Name] = true
			}
		}
	})
}
