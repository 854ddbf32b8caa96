package archtest

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// How a test names the acceptance criterion that it proves: in the name of a subtest or of a row, or in that of the function
// itself, where one may carry several: …_001_1_and_2_….
var (
	criterionForm    = regexp.MustCompile(`AC-OFFICE-LOOP-LIVENESS-\d{3}\.\d{1,2}\b`)
	criterionFunc    = regexp.MustCompile(`AC_OFFICE_LOOP_LIVENESS_(\d{3})((?:_(?:and_)?\d{1,2})+)_`)
	criterionNumbers = regexp.MustCompile(`\d+`)
)

// criteriaOf is the criteria that a function's name carries.
func criteriaOf(name string) (list []string) {
	for _, m := range criterionFunc.FindAllStringSubmatch(name, -1) {
		for _, n := range criterionNumbers.FindAllString(m[2], -1) {
			list = append(list, "AC-OFFICE-LOOP-LIVENESS-"+m[1]+"."+n)
		}
	}
	return list
}

// Criteria are the acceptance criteria of the loop's liveness, in order: five requirements with so many each.
func Criteria() []string {
	var list []string
	for requirement, n := range []int{8, 11, 9, 17, 9} {
		for i := range n {
			list = append(list, fmt.Sprintf("AC-OFFICE-LOOP-LIVENESS-%03d.%d", requirement+1, i+1))
		}
	}
	return list
}

// CriteriaTests finds, under root, the tests whose names carry a criterion: names of subtests and of rows in tables. What a
// test says when it fails is no name.
func CriteriaTests(root string) (map[string][]string, error) {
	found := map[string][]string{}
	return found, eachTestFile(root, func(where string, file *ast.File) {
		for _, f := range functionsOf(file) {
			if !strings.HasPrefix(f.Name.Name, "Test") {
				continue
			}
			carried := criteriaOf(f.Name.Name)
			for _, name := range namesIn(f.Body) {
				carried = append(carried, criterionForm.FindAllString(name, -1)...)
			}
			for _, criterion := range carried {
				if test := filepath.Dir(where) + " " + f.Name.Name; !slices.Contains(found[criterion], test) {
					found[criterion] = append(found[criterion], test)
				}
			}
		}
	})
}

// eachTestFile parses the test files under root; where is a file's path from there.
func eachTestFile(root string, look func(where string, file *ast.File)) error {
	return filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() && (d.Name() == "node_modules" || path == filepath.Join(root, "ent")) {
			if err == nil {
				err = filepath.SkipDir
			}
			return err
		}
		if !strings.HasSuffix(path, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		where, err := filepath.Rel(root, path)
		if err != nil {
			return err
		}
		look(where, file)
		return nil
	})
}

// functionsOf are a file's functions that have a body.
func functionsOf(file *ast.File) (list []*ast.FuncDecl) {
	for _, decl := range file.Decls {
		if f, ok := decl.(*ast.FuncDecl); ok && f.Body != nil {
			list = append(list, f)
		}
	}
	return list
}

// reports are the calls whose texts are said when a test fails.
var reports = []string{"Error", "Errorf", "Fatal", "Fatalf", "Log", "Logf", "Skip", "Skipf"}

// namesIn is the texts of a test's body that can be names.
func namesIn(body ast.Node) []string {
	var names []string
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.CallExpr:
			if f, ok := n.Fun.(*ast.SelectorExpr); ok && slices.Contains(reports, f.Sel.Name) {
				return false
			}
		case *ast.BasicLit:
			if n.Kind == token.STRING {
				names = append(names, n.Value)
			}
		}
		return true
	})
	return names
}
