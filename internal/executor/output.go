//go:build unix

package executor

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/retry"
)

// Bounds of what is kept of a run's output. What is beyond them is still read, so that the agent never blocks.
const (
	maxLine        = 8 << 10  // bytes of a line that reach the log
	maskReach      = 64 << 10 // bytes beyond a cut that the mask sees: a secret may be so long
	maskWindow     = maxLine + maskReach
	maxResultLine  = 256 << 10 // bytes of the result line
	maxTail        = 4 << 10
	maxRunLines    = domain.MaxRunLines / 2 // of a run's first attempt
	maxRunBytes    = domain.MaxRunBytes / 2
	readBufferSize = 32 << 10
)

// output cleans, masks, cuts and passes on the lines of one attempt, whichever stream they come from.
type output struct {
	sink Sink
	mask func(string) string

	mu     sync.Mutex // makes the calls of sink one after the other
	log    *logBudget
	tail   tail
	errors tail   // of standard error alone
	notice string // the last that stood in the agent's way, masked

	hear func(line string) string // the notice in a line of standard error, "" for none; nil: there are none

	deadline time.Time     // of the attempt
	hopeless chan struct{} // closed when the agent awaits the end of a limit that comes after it, and has done so for a while
	awaited  string        // the notice that told so

	last     []byte // the last line of stdout that is not blank, when it may be a result
	lastLong bool   // it is one but longer than maxResultLine
}

// logBudget is what an attempt's launches have kept of their output, and may keep.
type logBudget struct {
	allowed      domain.LogAllowance
	lines, bytes int64
	truncated    bool
}

func newLogBudget(req Request) *logBudget {
	if req.Log == (domain.LogAllowance{}) {
		req.Log = domain.AttemptLog(0, 0)
	}
	return &logBudget{allowed: req.Log}
}

func newOutput(req Request, sink Sink) *output {
	log := req.log
	if log == nil {
		log = newLogBudget(req)
	}
	return &output{sink: sink, mask: req.mask, log: log, hopeless: make(chan struct{})}
}

// take counts a line. keep says that it is kept, mark that it is the first that is not.
func (b *logBudget) take(size int64) (keep, mark bool) {
	if b.truncated {
		return false, false
	}
	if b.lines >= b.allowed.Lines || b.bytes+size > b.allowed.Bytes {
		b.truncated = true
		return false, true
	}
	b.lines, b.bytes = b.lines+1, b.bytes+size
	return true, false
}

// copyLines reads r to its end and emits each line. Memory stays flat however long a line is.
func (o *output) copyLines(stream domain.LogStream, r io.Reader) {
	keep := maskWindow
	if stream == domain.LogStreamStdout {
		keep = maxResultLine
	}
	split(r, keep, func(line []byte, total int64) { o.emit(stream, line, total) })
}

// split reads r to its end and passes on each line: at most keep bytes of it, and how long it is.
func split(r io.Reader, keep int, emit func(line []byte, total int64)) {
	s := splitter{keep: keep, emit: emit}
	buf := make([]byte, readBufferSize)
	for {
		n, err := r.Read(buf)
		s.write(buf[:n])
		if err != nil { // the end, or the reader was told to give up
			s.flush()
			return
		}
	}
}

func (o *output) emit(stream domain.LogStream, line []byte, total int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if stream == domain.LogStreamStdout {
		o.remember(line, total)
	}
	text := maskedLine(line, total, o.mask)
	o.tail.keep(text)
	if stream == domain.LogStreamStderr {
		o.errors.keep(text)
		if o.hear != nil {
			o.note(o.hear(text))
		}
	}
	keep, mark := o.log.take(int64(len(text)))
	switch {
	case keep:
		o.sink.Line(stream, text)
	case mark:
		o.sink.Line(domain.LogStreamSystem, o.log.allowed.CutMark()+"; what follows is read but not kept")
	}
}

// noticed remembers what stands in the agent's way.
func (o *output) noticed(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.note(cutText(o.mask(domain.StorableText(text)), maxTail/2))
}

// note is noticed for a masked text, when the output is locked.
func (o *output) note(text string) {
	if text == "" {
		return
	}
	o.notice = text
	if o.awaited == "" && outlasts(time.Now(), o.deadline, text) {
		o.awaited = text
		time.AfterFunc(endsItself, func() { close(o.hopeless) })
	}
}

// endsItself is how long an agent may take to end by itself, with its own words, when it has told of a limit that outlasts it.
const endsItself = 10 * time.Second

// outlasts says whether a notice tells of a limit that ends after the deadline: to await it is in vain.
func outlasts(now, deadline time.Time, notice string) bool {
	end, known := retry.ResetAt(now, notice, time.Local)
	return known && !deadline.IsZero() && end.After(deadline)
}

// inVain is what tells that the agent awaited a limit's end that comes too late; "" when nothing does.
func (o *output) inVain() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.awaited
}

func (o *output) lastNotice() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.notice
}

// remember keeps the line if it may be the result object.
func (o *output) remember(line []byte, total int64) {
	trimmed := domain.Bare(line)
	if len(trimmed) == 0 {
		return
	}
	o.last, o.lastLong = o.last[:0], false
	if trimmed[0] != '{' {
		return
	}
	if total > int64(len(line)) {
		o.lastLong = beginsResult(trimmed)
		return
	}
	o.last = append(o.last, trimmed...)
}

// tail is the last lines of something, at most maxTail bytes.
type tail struct {
	lines []string
	bytes int
}

func (t *tail) keep(text string) {
	if len(text) > maxTail/2 {
		text = cutText(text, maxTail/2)
	}
	t.lines = append(t.lines, text)
	t.bytes += len(text) + 1
	for t.bytes > maxTail {
		t.bytes -= len(t.lines[0]) + 1
		t.lines = t.lines[1:]
	}
}

func (t *tail) text() string { return strings.TrimSpace(strings.Join(t.lines, "\n")) }

func (o *output) tailText() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.tail.text()
}

// errorText is the end of standard error.
func (o *output) errorText() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.errors.text()
}

// cutResult is the failure of an attempt whose result was too long to be read, so that its actions and its cost are
// unknown; nil for any other attempt. Trying again would do the work again, for a result as long.
func (o *output) cutResult() *Failure {
	if !o.lastLong {
		return nil
	}
	return &Failure{Code: domain.RunErrorCodeOther, Permanent: true, Message: fmt.Sprintf(
		"the last line is a result of more than %d KiB, of which nothing can be taken: let the agent write long texts elsewhere and a summary into the result, then retry the run", maxResultLine>>10)}
}

// cutUsage is what such a result says of the attempt's use.
func (o *output) cutUsage(told *Usage) *Usage {
	if !o.lastLong || told != nil {
		return told
	}
	return domain.UnreadUsage("the result, with what it says of the attempt's use, is too long to be read")
}

// say adds a line of rouse's own, outside the bounds.
func (o *output) say(text string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.sink.Line(domain.LogStreamSystem, cutText(o.mask(domain.StorableText(text)), maxLine))
}

// told is say for what may be nothing.
func (o *output) told(text string) {
	if text != "" {
		o.say(text)
	}
}

// splitter cuts a stream into lines, keeping at most keep bytes of each and counting the rest.
type splitter struct {
	keep  int
	emit  func(line []byte, total int64)
	buf   []byte
	total int64
	cr    bool // a carriage return was dropped beyond keep and may end the line
}

func (s *splitter) write(p []byte) {
	for len(p) > 0 {
		part, rest, found := bytes.Cut(p, []byte{'\n'})
		s.add(part)
		if found {
			s.end()
		}
		p = rest
	}
}

func (s *splitter) add(part []byte) {
	if len(part) == 0 {
		return
	}
	s.total += int64(len(part))
	s.cr = part[len(part)-1] == '\r'
	if room := s.keep - len(s.buf); room > 0 {
		s.buf = append(s.buf, part[:min(room, len(part))]...)
	}
}

func (s *splitter) end() {
	line, total := s.buf, s.total
	if s.cr {
		if total == int64(len(line)) {
			line = line[:len(line)-1]
		}
		total--
	}
	s.emit(line, total)
	s.buf, s.total, s.cr = s.buf[:0], 0, false
	if cap(s.buf) > maskWindow {
		s.buf = nil // one huge line does not keep its memory for the rest of the run
	}
}

func (s *splitter) flush() {
	if s.total > 0 {
		s.end()
	}
}

// maskedLine makes the log's text of a line of total bytes, of which line holds the first ones.
func maskedLine(line []byte, total int64, mask func(string) string) string {
	if total <= maxLine {
		return cutText(mask(domain.StorableText(string(line))), maxLine)
	}
	shared := maskedStart(string(line[:min(len(line), maskWindow)]), maxLine, mask)
	mark := fmt.Sprintf(" [… line cut, %d bytes long]", total)
	return cutRunes(shared, maxLine-len(mark)) + mark
}

// maskedText masks a text and cuts it to limit bytes. Of a longer one it should hold maskReach bytes more.
func maskedText(text string, limit int, mask func(string) string) string {
	if len(text) <= limit {
		return cutText(mask(domain.StorableText(text)), limit)
	}
	return cutRunes(maskedStart(text, limit, mask), limit-len(cutMark)) + cutMark
}

// maskedStart is what may be shown of the first limit bytes of a text that is cut there. A secret that crosses the cut must not show its
// first half: where the mask of the short text and the mask of the longer one differ, a secret began, so only what both share is shown.
func maskedStart(text string, limit int, mask func(string) string) string {
	return commonPrefix(mask(domain.StorableText(text[:limit])), mask(domain.StorableText(text)))
}

func commonPrefix(a, b string) string {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return a[:i]
		}
	}
	return a[:n]
}

const cutMark = " [… cut]"

// cutText shortens s to at most limit bytes, marked, at a rune boundary.
func cutText(s string, limit int) string { return domain.CutText(s, limit, cutMark) }

// cutRunes is the longest prefix of s of at most limit bytes that ends at a rune boundary.
func cutRunes(s string, limit int) string {
	if len(s) <= limit {
		limit = len(s)
	}
	for limit > 0 && limit < len(s) && !utf8.RuneStart(s[limit]) {
		limit--
	}
	s = s[:limit]
	// The prefix itself may end within a rune.
	if r, size := utf8.DecodeLastRuneInString(s); r == utf8.RuneError && size == 1 {
		for len(s) > 0 && !utf8.RuneStart(s[len(s)-1]) {
			s = s[:len(s)-1]
		}
		if len(s) > 0 {
			s = s[:len(s)-1]
		}
	}
	return s
}
