package modelserver

import (
	"encoding/json"
	"regexp"
	"strings"
)

var idOf = regexp.MustCompile(`\{\{id of ([^}]+)\}\}`)

// fit fills in what a step leaves open: the name of a tool by those that were offered, and ids by the request's body.
func (s Step) fit(tools []string, body []byte) Step {
	if s.Kind != Tool {
		return s
	}
	if ending, open := strings.CutPrefix(s.Tool, "*"); open {
		for _, offered := range tools {
			if strings.HasSuffix(offered, ending) {
				_, name, typed := strings.Cut(offered, ":")
				if s.Tool = name; !typed {
					s.Tool = offered
				}
				break
			}
		}
	}
	s.Input = json.RawMessage(idOf.ReplaceAllStringFunc(string(s.Input), func(marker string) string {
		name := regexp.QuoteMeta(idOf.FindStringSubmatch(marker)[1])
		found := regexp.MustCompile(`([a-z]+_[0-9a-z]{26})\\*",\\*"name\\*":\\*"` + name + `\\*"`).FindSubmatch(body)
		if found == nil {
			return marker
		}
		return string(found[1])
	}))
	return s
}
