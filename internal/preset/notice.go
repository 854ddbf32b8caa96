package preset

import "regexp"

// notice is how a program tells on standard error that it makes a request again by itself; a zero one finds nothing.
type notice struct {
	form *regexp.Regexp // its group is what stands in the way
	says string         // what that is, before the group, where the program's own words do not say it
}

var (
	geminiNotice   = notice{form: regexp.MustCompile(`^(Attempt [0-9]+ failed.+)`)}
	opencodeNotice = notice{form: regexp.MustCompile(`^timestamp=\S+ level=ERROR .*\bsmall=false .*\berror\.error="((?:[^"\\]|\\.)*)"`)}
	qwenNotice     = notice{form: regexp.MustCompile(`^\[qwen-code\] (Waiting for API capacity\.\.\. attempt [0-9]+, retry in [0-9]+s)`), says: "rate limit or overload: "}
)

// in is what a line tells of such a request; "" for any other line.
func (n notice) in(line string) string {
	if n.form == nil {
		return ""
	}
	if m := n.form.FindStringSubmatch(line); m != nil {
		return n.says + m[1]
	}
	return ""
}
