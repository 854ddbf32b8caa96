package preset

import (
	"regexp"
	"strconv"
	"strings"
)

// aider reads the text of `aider --message-file`. It has no events: its last line about tokens is taken, and the rest is
// its words.
type aider struct{ state }

// aiderTokens is such as "Tokens: 2.1k sent, 1.0k cache write, 118 received. Cost: $0.0082 message, $0.0123 session."
var aiderTokens = regexp.MustCompile(`^Tokens: ([0-9.,]+[kM]?) sent,.*?([0-9.,]+[kM]?) received\.(?: Cost: \$[0-9.,]+ message, \$([0-9.,]+) session\.)?`)

// Read takes one line; all are shown as they are.
func (a *aider) Read(line []byte) ([]Line, bool) {
	text := strings.TrimRight(string(line), "\r")
	if m := aiderTokens.FindStringSubmatch(text); m != nil {
		a.uses().Input("tokens sent", amount(m[1]))
		a.uses().Output("tokens received", amount(m[2]))
		if m[3] != "" {
			a.uses().SetCost("the session's cost", amount(m[3])) // of the session so far, which is this launch
		}
		return []Line{{Text: text}}, true
	}
	if strings.TrimSpace(text) != "" {
		a.told.Begun = true
	}
	if len(a.told.Text) < maxText {
		a.told.Text = head(a.told.Text + text + "\n")
	}
	return []Line{{Said: true, Text: text}}, true
}

// amount reads 118, 1,234, 2.1k and 1.2M; what it cannot read it returns as it is.
func amount(text string) any {
	factor := 1.0
	switch {
	case strings.HasSuffix(text, "k"):
		factor = 1e3
	case strings.HasSuffix(text, "M"):
		factor = 1e6
	}
	n, err := strconv.ParseFloat(strings.ReplaceAll(strings.TrimRight(text, "kM"), ",", ""), 64)
	if err != nil {
		return text
	}
	return n * factor
}
