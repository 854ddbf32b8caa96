package main

import (
	"bufio"
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// results are what became of a package's mutants, as far as it is known. They are kept in a file, a line for each.
type results struct {
	*sync.Mutex
	dir    string
	file   string
	fate   map[string]string // by key
	chosen []mutant
}

// known reads the results of runs before. They count for the same sources and tests alone.
func (p *pack) known(folder string) (results, error) {
	sum := sha256.New()
	files, err := filepath.Glob(filepath.Join(p.dir, "*.go"))
	if err != nil {
		return results{}, err
	}
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			return results{}, err
		}
		_, _ = fmt.Fprintf(sum, "%s %d\n%s", name, len(text), text)
	}
	r := results{Mutex: &sync.Mutex{}, dir: p.dir, fate: map[string]string{},
		file: filepath.Join(folder, fmt.Sprintf("%s-%x.tsv", strings.ReplaceAll(p.dir, "/", "_"), sum.Sum(nil)[:6]))}
	text, err := os.ReadFile(r.file)
	if errors.Is(err, fs.ErrNotExist) {
		return r, os.MkdirAll(folder, 0o755)
	}
	for line := range strings.Lines(string(text)) {
		if fate, key, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t"); ok {
			r.fate[key] = fate
		}
	}
	return r, err
}

// note keeps the fate of a mutant at once, so that nothing is lost when the run is broken off.
func (r results) note(m mutant, fate string) error {
	r.Lock()
	defer r.Unlock()
	r.fate[m.key()] = fate
	file, err := os.OpenFile(r.file, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(file, "%s\t%s\n", fate, m.key())
	return errors.Join(err, file.Close())
}

// judge prints what survived without a reason, and fails when there is such a one, or when too many survived at all. A sample only prints.
func (r results) judge(o options, reasons map[string]string) error {
	tried, dead, unexplained := 0, 0, []string{}
	for _, m := range r.chosen {
		switch fate := r.fate[m.key()]; fate {
		case "":
			continue
		case killed:
			dead++
		default:
			if reasons[m.key()] == "" {
				unexplained = append(unexplained, fmt.Sprintf("%s\t%s:%d\t%s", fate, m.file, m.line, m.key()))
			}
		}
		tried++
	}
	if tried == 0 {
		return nil
	}
	_, _ = fmt.Fprintf(o.out, "%s: %d of %d killed (%.1f %%), %d survivors without a reason\n", r.dir, dead, tried, 100*float64(dead)/float64(tried), len(unexplained))
	for _, line := range unexplained {
		_, _ = fmt.Fprintln(o.out, line)
	}
	switch share := float64(dead) / float64(tried); {
	case o.sample > 0: // a sample is for who reads the change
		return nil
	case share < o.least:
		return fmt.Errorf("%s: %.1f %% of its mutants are killed, and %.0f %% must be", r.dir, 100*share, 100*o.least)
	case len(unexplained) > 0:
		return fmt.Errorf("%s: no test notices %d mutants (above): write one that does, or say in %s why none can", r.dir, len(unexplained), o.explain)
	}
	return nil
}

// readReasons reads why mutants survive: a line with the reason, and behind it those that it holds for, indented.
func readReasons(path string) (map[string]string, error) {
	file, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	} else if err != nil {
		return nil, err
	}
	defer file.Close()
	reasons, reason := map[string]string{}, ""
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case line == "" || strings.HasPrefix(line, "#"):
		case strings.HasPrefix(line, "\t"):
			reasons[strings.TrimSpace(line)] = reason
		default:
			reason = line
		}
	}
	return reasons, lines.Err()
}

// choose are the mutants of the changed lines, or evenly chosen ones when that is too many.
func (p *pack) choose(o options, lines map[string]map[int]bool) []mutant {
	chosen := slices.Clone(p.mutants)
	if o.changed != "" {
		chosen = slices.DeleteFunc(chosen, func(m mutant) bool { return !lines[m.file][m.line] })
	}
	if share := max(1, o.sample/len(o.packages)); o.sample > 0 && len(chosen) > share {
		some := make([]mutant, 0, share)
		for i := range share {
			some = append(some, chosen[i*len(chosen)/share])
		}
		chosen = some
	}
	return chosen
}

var hunk = regexp.MustCompile(`^@@ -\S+ \+(\d+)(?:,(\d+))? @@`)

// changedLines are those that the work tree has and a commit has not, by file; nil without a commit.
func changedLines(commit string) (map[string]map[int]bool, error) {
	if commit == "" {
		return nil, nil
	}
	out, err := exec.Command("git", "diff", "--unified=0", "--no-color", "--no-ext-diff", "--no-prefix", commit, "--", "*.go").Output()
	if err != nil {
		return nil, fmt.Errorf("what changed since %s: %w", commit, err)
	}
	return linesOf(string(out)), nil
}

// linesOf reads a diff.
func linesOf(diff string) map[string]map[int]bool {
	all, file := map[string]map[int]bool{}, ""
	for line := range strings.Lines(diff) {
		line = strings.TrimSuffix(line, "\n")
		if name, ok := strings.CutPrefix(line, "+++ "); ok {
			file = name
			all[file] = map[int]bool{}
		}
		found := hunk.FindStringSubmatch(line)
		if found == nil {
			continue
		}
		from, _ := strconv.Atoi(found[1]) // digits
		count := 1
		if found[2] != "" {
			count, _ = strconv.Atoi(found[2]) // digits
		}
		for i := range count {
			all[file][from+i] = true
		}
	}
	return all
}
