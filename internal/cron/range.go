package cron

import (
	"strconv"
	"strings"
)

// stepped is a range of a field's values with a step. People write a range that falls, such as 22-2, when they mean the
// hours around midnight: the range goes over the end of the field.
type stepped struct {
	from, to, step int
	named          bool // written with a name, and so shown with names
}

// rangeOf reads the two ends of a range, and says whether both are there and values of the field. Sunday at the end of a
// range is the day behind Saturday: SAT-SUN is two days.
func (f field) rangeOf(from, to string, step int) (stepped, bool) {
	first, ok := f.number(from)
	last, isValue := f.number(to)
	r := stepped{first, last, step, !isNumber(from) || !isNumber(to)}
	if f.isWeek() && last == 0 && !isNumber(to) && first > 0 {
		r.to = 7
	}
	return r, ok && isValue
}

func isNumber(text string) bool { return text != "" && text[0] >= '0' && text[0] <= '9' }

// values is the values of a range that rises.
func (r stepped) values() []int {
	var values []int
	for v := r.from; v <= r.to; v += r.step {
		values = append(values, v)
	}
	return values
}

// set is a set of days of the week; 7 is 0.
func set(days []int) uint64 {
	var bits uint64
	for _, day := range days {
		bits |= 1 << (day % 7)
	}
	return bits
}

// falls refuses a range that falls, and says how one that goes over the end of the field is written.
func (f field) falls(item string, r stepped) error {
	return invalid("%s: a range rises, and %q falls: write one that goes over the end as %q", f.name, item, f.overTheEnd(r))
}

// overTheEnd writes a range that goes over the end of the field: as two ranges, or with a step as a list.
func (f field) overTheEnd(r stepped) string {
	size := f.max - f.min + 1
	if f.isWeek() {
		r.from, size = r.from%7, 7
	}
	if r.from <= r.to { // it began with 7, which is the first day
		return f.written(r.from, r.to, r.named)
	}
	if r.step == 1 {
		return f.written(r.from, f.min+size-1, r.named) + "," + f.written(f.min, r.to, r.named)
	}
	var items []string
	for _, v := range (stepped{r.from, r.to + size, r.step, r.named}).values() {
		items = append(items, f.spell(f.min+(v-f.min)%size, r.named))
	}
	return strings.Join(items, ",")
}

// written is a range, or the value where it is one only.
func (f field) written(from, to int, named bool) string {
	if from == to {
		return f.spell(from, named)
	}
	return f.spell(from, named) + "-" + f.spell(to, named)
}

func (f field) spell(value int, named bool) string {
	if named {
		return f.names[value-f.min]
	}
	return strconv.Itoa(value)
}
