// Command mutants finds changes of the code that no test notices. It changes the code of a package in one small place after the other (a mutant), runs the
// package's tests against each, and lists the mutants that no test fails for. All mutants of a package are compiled into one test
// program, which an environment variable makes one of them: so a mutant costs a run of the tests and no build.
package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// rulePackages are those whose tests must miss almost nothing: rules, and what strangers' words meet first.
var rulePackages = []string{"internal/domain", "internal/retry", "internal/cron", "internal/webhook", "internal/auth", "internal/secret", "internal/prompt"}

// options are the command line.
type options struct {
	packages []string
	folder   string        // of results, which make a broken-off run go on
	changed  string        // a commit: only lines changed since then
	sample   int           // at most so many mutants; 0: all
	limit    time.Duration // after which no further mutant is begun; 0: none
	explain  string        // the file that says why mutants survive
	least    float64       // share that must be killed
	out      io.Writer
}

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(1)
	}
}

func parse(args []string) (options, error) {
	var o options
	flags := flag.NewFlagSet("mutants", flag.ContinueOnError)
	flags.StringVar(&o.folder, "results", "bin/mutants", "folder of results; remove it to begin anew")
	flags.StringVar(&o.changed, "changed", "", "only lines changed since this commit")
	flags.IntVar(&o.sample, "sample", 0, "at most so many mutants, chosen evenly; 0: all")
	flags.DurationVar(&o.limit, "limit", 0, "begin no further mutant after this time; 0: no limit")
	flags.StringVar(&o.explain, "explain", "internal/mutants/survivors.txt", "why mutants survive")
	flags.Float64Var(&o.least, "least", 0.9, "share of mutants that must be killed")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if o.packages = flags.Args(); len(o.packages) == 0 {
		o.packages = rulePackages
	}
	for i, p := range o.packages {
		o.packages[i] = strings.TrimPrefix(filepath.ToSlash(filepath.Clean(p)), "./")
	}
	return o, nil
}

func run(args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	o.out = out
	reasons, err := readReasons(o.explain)
	if err != nil {
		return err
	}
	lines, err := changedLines(o.changed)
	if err != nil {
		return err
	}
	began := time.Now()
	var failed []error
	for _, name := range o.packages {
		p, err := load(name)
		if err != nil {
			return err
		}
		chosen := p.choose(o, lines)
		r, err := p.try(o, chosen, began)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		failed = append(failed, r.judge(o, reasons))
	}
	return errors.Join(failed...)
}
