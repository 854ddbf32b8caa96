package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// helper is what a package with mutants is given. Nothing is mutated without the variable; with the other one the program notes which
// mutants its tests come by.
const helper = `package %s

import (
	"fmt"
	"os"
	"strconv"
	"sync/atomic"
)

var (
	mutantActive, _ = strconv.Atoi(os.Getenv("ROUSE_MUTANT"))
	mutantsMet      [%d]atomic.Bool
	mutantsNoted    = func() *os.File {
		file, err := os.OpenFile(os.Getenv("ROUSE_MUTANTS_MET"), os.O_WRONLY|os.O_APPEND, 0)
		if err != nil {
			return nil
		}
		return file
	}()
)

func mutantNot(id int) bool {
	if mutantsNoted != nil && !mutantsMet[id].Swap(true) {
		fmt.Fprintln(mutantsNoted, id)
	}
	return id != mutantActive
}

func mutantOr[T any](id int, as, other T) T {
	if mutantNot(id) {
		return as
	}
	return other
}

func mutantZero[T any](id int, as T) T {
	var zero T
	return mutantOr(id, as, zero)
}

func mutantWord[T ~string](id int, as T) T { return mutantOr(id, as, as+"\x00never") }
`

// insertion is text that is put into a file.
type insertion struct {
	at, length, order int // length and order of what it begins or ends
	ends              bool
	text              string
}

// mutated is the text of a file with all its mutants.
func mutated(source []byte, mutants []mutant) string {
	var all []insertion
	for i, m := range mutants {
		before := strings.ReplaceAll(m.before, "%d", fmt.Sprint(m.id))
		all = append(all, insertion{m.from, m.to - m.from, i, false, before}, insertion{m.to, m.to - m.from, i, true, m.after})
	}
	slices.SortStableFunc(all, func(a, b insertion) int {
		switch {
		case a.at != b.at:
			return cmp.Compare(a.at, b.at)
		case a.ends != b.ends:
			if a.ends {
				return -1
			}
			return 1
		case a.ends: // the inner one ends first
			return cmp.Or(cmp.Compare(a.length, b.length), cmp.Compare(b.order, a.order))
		}
		return cmp.Or(cmp.Compare(b.length, a.length), cmp.Compare(a.order, b.order))
	})
	var text strings.Builder
	from := 0
	for _, i := range all {
		text.Write(source[from:i.at])
		text.WriteString(i.text)
		from = i.at
	}
	text.Write(source[from:])
	return text.String()
}
