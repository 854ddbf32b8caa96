package archtest

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// A word in quotes in a statement of the store is one of the vocabulary, or PostgreSQL's own: a word that was misspelled would find
// no row, and no test would say why.
func TestAWordInAStatementIsOfTheVocabulary(t *testing.T) {
	known := enumWords(t)
	for _, own := range []string{"INSERT"} {
		known[own] = true
	}
	statements(t, func(place, text string) {
		for _, m := range quotedWord.FindAllStringSubmatch(text, -1) {
			if !known[m[1]] {
				t.Errorf("%s: no enum of internal/domain has the word %s", place, m[1])
			}
		}
	})
}

// Many parameters in no order are counted wrong sooner or later.
func TestTheParametersOfALongStatementRise(t *testing.T) {
	statements(t, func(place, text string) {
		seen := parametersOf(sqlComment.ReplaceAllString(text, ""))
		if len(seen) >= 9 && !slices.IsSorted(seen) {
			t.Errorf("%s: the parameters come in the order %v: number them as they come, and sort the arguments so", place, seen)
		}
	})
}

// Who reads a statement with more than four parameters learns from the statement itself what each of them is: from a comment
// in it, from the columns into which they are inserted, or from the column that each is set to or compared with.
func TestTheParametersOfALongStatementAreNamed(t *testing.T) {
	statements(t, func(place, text string) {
		bare := sqlComment.ReplaceAllString(text, "")
		if len(parametersOf(bare)) <= 4 {
			return
		}
		named := parametersOf(strings.Join(sqlComment.FindAllString(text, -1), "\n"))
		if len(named) == 0 && onlyNamesLeft(insertsThem.ReplaceAllString(bare, "")) {
			return
		}
		missing := slices.DeleteFunc(parametersOf(bare), func(n int) bool { return slices.Contains(named, n) })
		if len(missing) > 0 {
			t.Errorf("%s: nothing says what the parameters %v are: begin the statement with a comment like -- $1 run, $2 attempt", place, missing)
		}
	})
}

// onlyNamesLeft says whether each parameter stands once, beside the column that says what it is.
func onlyNamesLeft(statement string) bool {
	return len(byColumn.FindAllString(statement, -1)) == len(parameter.FindAllString(statement, -1))
}

// parametersOf lists the numbers of a text's parameters, each where it comes first.
func parametersOf(text string) (seen []int) {
	for _, m := range parameter.FindAllStringSubmatch(text, -1) {
		if n, _ := strconv.Atoi(m[1]); !slices.Contains(seen, n) {
			seen = append(seen, n)
		}
	}
	return seen
}

// Lines of statements are short, since each clause has one of its own: who looks for what a statement filters by reads down, not
// across, and a diff shows the condition that changed.
func TestAClauseOfALongStatementHasItsOwnLine(t *testing.T) {
	statements(t, func(place, text string) {
		for line := range strings.Lines(text) {
			if line = strings.TrimRight(line, "\n"); len(line) > longestLine {
				t.Errorf("%s: %d characters in one line: begin a new one before FROM, WHERE, JOIN and the like\n%s", place, len(line), line)
			}
		}
	})
}

// longestLine is how long a line of a statement may be, without the Go in it.
const longestLine = 130

var (
	sqlComment  = regexp.MustCompile(`--[^\n]*`)
	insertsThem = regexp.MustCompile(`^\s*(INSERT INTO \w+ \([^)]*\))?\s*VALUES \([^()]*(\([^()]*(\([^()]*\)[^()]*)*\)[^()]*)*\)`)
	byColumn    = regexp.MustCompile(`\b\w+ (=|<|>|<=|>=|<>) (ANY\()?\$\d+\b`)
	quotedWord  = regexp.MustCompile(`'([A-Z][A-Z_]{2,})'`)
	parameter   = regexp.MustCompile(`\$(\d+)`)
	beginning   = regexp.MustCompile(`\b(SELECT|INSERT|UPDATE|DELETE|WITH)\b`)
)

// statements gives the statements of the store, each as its texts in order; what is put in between them is left out.
func statements(t *testing.T, f func(place, text string)) {
	t.Helper()
	found := 0
	err := filepath.WalkDir(root+"/internal/store", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		fset := token.NewFileSet()
		syntax, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(syntax, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			text := textOf(e)
			if text == "" {
				return true
			}
			if beginning.MatchString(text) {
				found++
			}
			f(fset.Position(e.Pos()).String(), text)
			return false
		})
		return nil
	})
	if err != nil || found < 100 {
		t.Fatalf("%d statements of the store were found: %v", found, err)
	}
}

// textOf joins the raw texts of an expression; "" where it has none.
func textOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BinaryExpr:
		return textOf(e.X) + textOf(e.Y)
	case *ast.BasicLit:
		if e.Kind == token.STRING && strings.HasPrefix(e.Value, "`") {
			return strings.Trim(e.Value, "`")
		}
	}
	return ""
}

// enumWords are the values of the constants of internal/domain.
func enumWords(t *testing.T) map[string]bool {
	t.Helper()
	words := map[string]bool{}
	for _, f := range source(t) {
		if f.folder != "internal/domain" {
			continue
		}
		ast.Inspect(f.syntax, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for _, v := range spec.Values {
				if lit, ok := v.(*ast.BasicLit); ok && lit.Kind == token.STRING {
					word, err := strconv.Unquote(lit.Value)
					if err != nil {
						t.Fatal(err)
					}
					words[word] = true
				}
			}
			return true
		})
	}
	if len(words) == 0 {
		t.Fatal("no words were found in internal/domain")
	}
	return words
}
