package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// What became of a mutant.
const (
	killed   = "killed"   // a test failed, or never ended
	survived = "survived" // all tests passed
	unmet    = "unmet"    // no test came by: it survives
)

// program is the test program of a package with all its mutants.
type program struct {
	path, dir string
	took      time.Duration    // without any of them
	met       map[int][]string // by which tests
}

// build compiles it in a folder and runs it once as it is.
func (p *pack) build(folder string) (*program, error) {
	replace := map[string]string{}
	put := func(name, text string) error {
		from, err := filepath.Abs(name)
		if err != nil {
			return err
		}
		replace[from] = filepath.Join(folder, strings.ReplaceAll(name, "/", "_"))
		return os.WriteFile(replace[from], []byte(text), 0o644)
	}
	var problems []error
	for name, source := range p.sources {
		var here []mutant
		for _, m := range p.mutants {
			if m.file == name {
				here = append(here, m)
			}
		}
		problems = append(problems, put(name, mutated(source, here)))
	}
	problems = append(problems, put(p.dir+"/mutants_helper.go", fmt.Sprintf(helper, p.name, len(p.mutants)+1)))
	overlay, err := json.Marshal(map[string]any{"Replace": replace})
	if err := errors.Join(append(problems, err, os.WriteFile(filepath.Join(folder, "overlay.json"), overlay, 0o644))...); err != nil {
		return nil, err
	}
	t := &program{path: filepath.Join(folder, "test"), dir: p.dir, met: map[int][]string{}}
	build := exec.Command("go", "test", "-c", "-vet=off", "-overlay", filepath.Join(folder, "overlay.json"), "-o", t.path, "./"+p.dir)
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("build it with its mutants: %w: %s", err, bytes.TrimSpace(out))
	}
	return t, t.asItIs(filepath.Join(folder, "met"))
}

// asItIs runs the tests without a mutant, each by itself, and notes which mutants it meets.
func (t *program) asItIs(met string) error {
	list, err := t.run(context.Background(), "-test.list=.")
	if err != nil {
		return fmt.Errorf("list its tests: %w: %s", err, list)
	}
	for _, test := range strings.Fields(string(list)) {
		if err := os.WriteFile(met, nil, 0o644); err != nil {
			return err
		}
		began := time.Now()
		if out, err := t.run(context.Background(), only(test), "ROUSE_MUTANTS_MET="+met); err != nil {
			return fmt.Errorf("%s fails without a mutant: %w: %s", test, err, out)
		}
		t.took += time.Since(began)
		if err := t.note(test, met); err != nil {
			return err
		}
	}
	return nil
}

// note reads which mutants a test met.
func (t *program) note(test, met string) error {
	file, err := os.Open(met)
	if err != nil {
		return err
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	for lines.Scan() {
		id, err := strconv.Atoi(lines.Text())
		if err != nil {
			return err
		}
		t.met[id] = append(t.met[id], test)
	}
	return lines.Err()
}

// only names tests for -test.run.
func only(tests ...string) string { return "-test.run=^(" + strings.Join(tests, "|") + ")$" }

func (t *program) run(ctx context.Context, which string, environment ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, t.path, which, "-test.failfast", "-test.short")
	cmd.Dir, cmd.Env, cmd.WaitDelay = t.dir, append(os.Environ(), environment...), time.Second
	return cmd.CombinedOutput()
}

// fate runs the tests that meet a mutant with it. They fail, or they pass; those that take ten times as long as all should hang.
func (t *program) fate(m mutant) string {
	if len(t.met[m.id]) == 0 {
		return unmet
	}
	ctx, cancel := context.WithTimeout(context.Background(), 10*t.took+5*time.Second)
	defer cancel()
	if _, err := t.run(ctx, only(t.met[m.id]...), "ROUSE_MUTANT="+strconv.Itoa(m.id)); err != nil {
		return killed
	}
	return survived
}

// try runs the chosen mutants, but those whose fate is known from a run before with the same sources.
func (p *pack) try(o options, chosen []mutant, began time.Time) (results, error) {
	r, err := p.known(o.folder)
	if err != nil {
		return r, err
	}
	todo := slices.DeleteFunc(slices.Clone(chosen), func(m mutant) bool { return r.fate[m.key()] != "" })
	r.chosen = chosen
	if len(todo) == 0 {
		return r, nil
	}
	folder, err := os.MkdirTemp("", "rouse-mutants-")
	if err != nil {
		return r, err
	}
	defer func() { _ = os.RemoveAll(folder) }() // what is left of it is in the way of nobody
	t, err := p.build(folder)
	if err != nil {
		return r, err
	}
	_, _ = fmt.Fprintf(o.out, "%s: %d mutants, %d of them to try; its tests take %v\n", p.dir, len(chosen), len(todo), t.took.Round(time.Millisecond))
	queue := make(chan mutant)
	var workers sync.WaitGroup
	var problems errorList
	for range runtime.GOMAXPROCS(0) {
		workers.Go(func() {
			for m := range queue {
				problems.add(r.note(m, t.fate(m)))
			}
		})
	}
	for _, m := range todo {
		if o.limit > 0 && time.Since(began) > o.limit {
			break
		}
		queue <- m
	}
	close(queue)
	workers.Wait()
	return r, problems.joined()
}

type errorList struct {
	sync.Mutex
	all []error
}

func (l *errorList) add(err error) {
	l.Lock()
	defer l.Unlock()
	l.all = append(l.all, err)
}

func (l *errorList) joined() error { return errors.Join(l.all...) }
