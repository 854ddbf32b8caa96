package preset

import (
	"bytes"
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
)

// maxDetail is the most bytes of a tool's input that a line shows.
const maxDetail = 300

// maxText is the most bytes that are kept of an agent's last words: a result object of 256 KiB, and words before it.
const maxText = 320 << 10

// state is what every reader keeps.
type state struct {
	told Report
	used *domain.Tally // nil until the agent told of its use
	mask func(string) string
}

// Report is what the lines so far say.
func (s *state) Report() Report {
	out := s.told
	out.Text = strings.TrimSpace(out.Text)
	if s.used != nil {
		out.Usage = s.used.Usage()
	}
	return out
}

// uses is what the agent used so far, to add to.
func (s *state) uses() *domain.Tally {
	if s.used == nil {
		s.used = &domain.Tally{}
	}
	return s.used
}

// session notes the session's id.
func (s *state) session(id string) {
	if id != "" {
		s.told.Session = id
	}
}

// say notes words of the agent that stand by themselves, and makes their lines.
func (s *state) say(text string) []Line {
	text = strings.TrimRight(text, "\r\n")
	if strings.TrimSpace(text) == "" {
		return nil
	}
	s.told.Begun, s.told.Text = true, head(text)
	return linesOf(true, "", text)
}

// do notes something that the agent did, and makes its line.
func (s *state) do(text string) []Line {
	s.told.Begun = true
	return []Line{{Text: strings.ReplaceAll(text, "\n", " ")}}
}

// think makes lines of what the agent thinks.
func (s *state) think(text string) []Line {
	if strings.TrimSpace(text) == "" {
		return nil
	}
	s.told.Begun = true
	return linesOf(false, "thinks: ", strings.TrimSpace(text))
}

func linesOf(said bool, prefix, text string) []Line {
	var out []Line
	for line := range strings.SplitSeq(text, "\n") {
		out = append(out, Line{Said: said, Text: prefix + strings.TrimRight(line, "\r")})
	}
	return out
}

// object reads a line that is one JSON object.
func object(line []byte, into any) bool {
	line = domain.Bare(line)
	return len(line) > 0 && line[0] == '{' && json.Unmarshal(line, into) == nil
}

// short is a part of a line, masked and then shortened: half a secret would not be found any more.
func (s *state) short(text string) string {
	return domain.CutText(s.mask(text), maxDetail, " [… cut]")
}

// head is the beginning of an agent's words.
func head(text string) string { return text[:min(len(text), maxText)] }

// detail is the input of a tool, shortened.
func (s *state) detail(input json.RawMessage) string {
	if len(input) == 0 || string(input) == "{}" || string(input) == "null" {
		return ""
	}
	var compact bytes.Buffer
	if json.Compact(&compact, input) != nil {
		return ""
	}
	return " " + s.short(compact.String())
}

// either is a message that some versions write as an object and some as text.
type either struct {
	Text   string
	Status int // with which the model's provider refused a request; 0 when it does not say
	// When it may be asked again, as it says in its answer's header Retry-After: after a while, or at an instant.
	Wait  time.Duration
	Until time.Time
}

// UnmarshalJSON takes both.
func (e *either) UnmarshalJSON(raw []byte) error {
	if json.Unmarshal(raw, &e.Text) == nil {
		return nil
	}
	var o struct {
		Name    string
		Type    string
		Message string
		Data    struct {
			Message         string
			StatusCode      domain.Said
			ResponseHeaders map[string]string
		}
	}
	if json.Unmarshal(raw, &o) != nil {
		e.Text = string(raw)
		return nil
	}
	if n, ok := o.Data.StatusCode.Value.(json.Number); ok {
		status, _ := n.Int64() // 0 for what is no status
		e.Status = int(status)
	}
	e.readRetryAfter(o.Data.ResponseHeaders["retry-after"])
	for _, text := range []string{o.Message, o.Data.Message, o.Name, o.Type, string(raw)} {
		if text != "" {
			e.Text = text
			break
		}
	}
	return nil
}

// httpDate is the form of dates in headers; the zone is always GMT.
const httpDate = "Mon, 02 Jan 2006 15:04:05 GMT"

// readRetryAfter takes the header Retry-After of a provider's answer: seconds, or a date.
func (e *either) readRetryAfter(value string) {
	value = strings.TrimSpace(value)
	if seconds, err := strconv.ParseInt(value, 10, 32); err == nil {
		e.Wait = max(0, time.Duration(seconds)*time.Second)
		return
	}
	if at, err := time.Parse(httpDate, value); err == nil {
		e.Until = at
	}
}
