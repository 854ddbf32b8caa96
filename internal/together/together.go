// Package together says how many tests of a package run at a time. Go's own number is that of the processors, which is right for
// tests that compute. Tests of processes, and those that ask a database, mostly wait.
package together

import (
	"flag"
	"strconv"
)

// Run lets n of the tests that call t.Parallel run at a time, unless -parallel says otherwise. It is called in TestMain, before
// the tests begin.
func Run(n int) error {
	if !flag.Parsed() {
		flag.Parse()
	}
	const name = "test.parallel"
	told := false
	flag.Visit(func(f *flag.Flag) { told = told || f.Name == name })
	if told {
		return nil
	}
	return flag.Set(name, strconv.Itoa(n))
}
