//go:build unix

package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"runtime"
	"strings"
	"testing"
	"testing/iotest"
	"time"
	"unicode/utf8"

	"rouse.dev/rouse/internal/domain"
)

const secret = "hunter2-hunter2-hunter2"

func maskSecret(s string) string { return strings.ReplaceAll(s, secret, "***") }

func linesOf(r io.Reader, mask func(string) string) *recorder {
	sink := &recorder{}
	newOutput(Request{Mask: mask}, sink).copyLines(domain.LogStreamStdout, r)
	return sink
}

func TestLines(t *testing.T) {
	long := strings.Repeat("x", 2*maxLine)
	for _, test := range []struct {
		name string
		in   string
		want []string
	}{
		{"nothing", "", nil},
		{"one", "a\n", []string{"a"}},
		{"no final newline", "a\nb", []string{"a", "b"}},
		{"an empty line", "a\n\nb\n", []string{"a", "", "b"}},
		{"carriage return and newline", "a\r\nb\r\n", []string{"a", "b"}},
		{"a carriage return within", "10%\r20%\n", []string{"10%\r20%"}},
		{"invalid UTF-8", "a\xff\xfeb\n", []string{"a\uFFFDb"}},
		{"NUL", "a\x00b\n", []string{"a\uFFFDb"}},
		{"exactly 8 KiB", strings.Repeat("x", maxLine) + "\n", []string{strings.Repeat("x", maxLine)}},
		{"8 KiB and a carriage return", strings.Repeat("x", maxLine) + "\r\n", []string{strings.Repeat("x", maxLine)}},
		{"too long", long + "\nnext\n", []string{strings.Repeat("x", maxLine-len(" [… line cut, 16384 bytes long]")) + " [… line cut, 16384 bytes long]", "next"}},
		{"a secret", "the key is " + secret + "!\n", []string{"the key is ***!"}},
	} {
		for _, reader := range []struct {
			name string
			wrap func(io.Reader) io.Reader
		}{{"whole", func(r io.Reader) io.Reader { return r }}, {"by byte", iotest.OneByteReader}} {
			t.Run(test.name+" "+reader.name, func(t *testing.T) {
				got := linesOf(reader.wrap(strings.NewReader(test.in)), maskSecret).lines
				if len(got) != len(test.want) {
					t.Fatalf("got %d lines %.200q, want %d", len(got), got, len(test.want))
				}
				for i := range got {
					if got[i] != "STDOUT "+test.want[i] {
						t.Errorf("line %d: got %.100q…, %d bytes", i, got[i], len(got[i]))
					}
				}
			})
		}
	}
}

func TestASecretOverTheCutShowsNoPartOfItself(t *testing.T) {
	long := strings.Repeat(secret, 5) // longer than the mark of the cut, which would hide the end of a short one
	mask := func(s string) string { return strings.ReplaceAll(s, long, "***") }
	for at := maxLine - 2*len(long); at <= maxLine+1; at++ {
		line := strings.Repeat("x", at) + long + strings.Repeat("y", 100) + "\n"
		got := linesOf(strings.NewReader(line), mask).lines[0]
		if strings.Contains(got, "hu") {
			t.Fatalf("at %d: …%q", at, got[len(got)-80:])
		}
	}
}

func TestCutsAtARuneBoundary(t *testing.T) {
	for shift := range 4 {
		got := linesOf(strings.NewReader(strings.Repeat("x", shift)+strings.Repeat("😀", maxLine)), maskSecret).lines[0]
		if !utf8.ValidString(got) || strings.ContainsRune(got, utf8.RuneError) || len(got) > maxLine+len("STDOUT ") {
			t.Errorf("shift %d: %d bytes, …%q", shift, len(got), got[len(got)-60:])
		}
	}
}

// endless yields n bytes of one line.
type endless struct{ left int }

func (e *endless) Read(p []byte) (int, error) {
	if e.left == 0 {
		return 0, io.EOF
	}
	n := min(len(p), e.left)
	for i := range p[:n] {
		p[i] = 'x'
	}
	e.left -= n
	return n, nil
}

func TestAHugeLineNeedsLittleMemory(t *testing.T) {
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	got := linesOf(&endless{100 << 20}, maskSecret)
	runtime.ReadMemStats(&after)
	if used := after.TotalAlloc - before.TotalAlloc; used > 16<<20 {
		t.Errorf("%d MiB allocated for one line", used>>20)
	}
	if len(got.lines) != 1 || !strings.HasSuffix(got.lines[0], "[… line cut, 104857600 bytes long]") {
		t.Errorf("got %d lines", len(got.lines))
	}
}

func TestOutputBeyondTheBoundIsReadAndMarkedOnce(t *testing.T) {
	for _, test := range []struct {
		name  string
		in    string
		lines int
	}{
		{"fewer, since earlier attempts of the run kept some", strings.Repeat("a\n", maxRunLines+10), 7000},
		{"lines", strings.Repeat("a\n", maxRunLines+10), maxRunLines},
		{"bytes", strings.Repeat(strings.Repeat("b", maxLine)+"\n", maxRunBytes/maxLine+10), maxRunBytes / maxLine},
	} {
		t.Run(test.name, func(t *testing.T) {
			sink := &recorder{}
			req := Request{Mask: maskSecret}
			if test.lines == 7000 {
				req.Log = domain.AttemptLog(domain.MaxRunLines-2*7000, 0)
			}
			out := newOutput(req, sink)
			out.copyLines(domain.LogStreamStdout, strings.NewReader(test.in+`{"summary":"still read"}`))
			last := sink.lines[len(sink.lines)-1]
			if len(sink.lines) != test.lines+1 || !strings.HasPrefix(last, "SYSTEM output truncated") {
				t.Fatalf("got %d lines, the last %q", len(sink.lines), last)
			}
			if object, ok := parseResult(out.last); !ok || object["summary"] != "still read" {
				t.Error("the result beyond the bound was lost")
			}
		})
	}
}

func TestNothingLeavesUnmasked(t *testing.T) {
	c := newCommand(t, Options{})
	sink := &recorder{}
	req := shell(fmt.Sprintf(`echo %[1]s; echo %[1]s >&2; echo '{"summary":"used %[1]s","%[1]s":[{"deep":"%[1]s"}]}'`, secret))
	req.Mask = maskSecret
	result, err := c.Run(context.Background(), req, sink)
	if err != nil || strings.Contains(fmt.Sprint(result), "hunter") || strings.Contains(sink.text(), "hunter") {
		t.Fatalf("C229: got %v, %v, %q", result, err, sink.text())
	}
	sink = &recorder{}
	req = shell(fmt.Sprintf(`echo '{"summary":"done","session_id":"%s"}'`, secret))
	req.Mask = maskSecret
	result, err = c.Run(context.Background(), req, sink)
	if err != nil || result.SessionID != sink.sessions[0] || len(sink.sessions) != 1 || result.Resumable || strings.Contains(fmt.Sprint(result), "hunter") {
		t.Fatalf("C229, a secret as session id: got %+v, %v, sessions %v", result, err, sink.sessions)
	}
	req = shell(`echo '{"result":{"pin":8675309123,"pins":[8675309123,1.5,12345678901234567890123]}}'`)
	req.Mask = func(s string) string { return strings.ReplaceAll(s, "8675309123", "***") }
	result, err = c.Run(context.Background(), req, &recorder{})
	if got := compactJSON(result.Object); err != nil || got != `{"result":{"pin":"***","pins":["***",1.5,12345678901234567890123]}}` {
		t.Fatalf("C229, a secret as number: got %s, %v", got, err)
	}
	req = shell(fmt.Sprintf(`echo %s; exit 1`, secret))
	req.Mask = maskSecret
	_, err = c.Run(context.Background(), req, &recorder{})
	if strings.Contains(fmt.Sprint(err), "hunter") || !strings.Contains(err.Error(), "***") {
		t.Fatalf("C229: got %v", err)
	}
	req = shell(`true`)
	req.Mask, req.Spec.Command.Argv = maskSecret, []string{"/" + secret}
	_, err = c.Run(context.Background(), req, &recorder{})
	if strings.Contains(fmt.Sprint(err), "hunter") {
		t.Fatalf("C229: got %v", err)
	}
}

// A result that is too long to be read is lost with its actions and its cost, so that it is no success; another long line is.
func TestAResultThatIsTooLongIsAFailure(t *testing.T) {
	long := func(start, end string) string {
		return `printf '%s' '` + start + `'; head -c 1100000 /dev/zero | tr '\0' x; echo '` + end + `'`
	}
	c := newCommand(t, Options{})
	result, err := c.Run(context.Background(), shell(long(`{"n":[1,{"x":2}],"summary":"`, `"}`)), &recorder{})
	if failure := failureOf(t, err); !failure.Permanent || !strings.Contains(failure.Message, "a result of more than 256 KiB") || result.Usage == nil || !result.Usage.CostUnread {
		t.Errorf("got %+v, %+v", failure, result.Usage)
	}
	for name, start := range map[string]string{"a log record": `{"level":"info","message":"`, "some other object": `{"summaries":{"summary":1},"text":"`, "words in braces": `{summary: `} {
		if _, err := c.Run(context.Background(), shell(long(start, `"}`)), &recorder{}); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzLines(f *testing.F) {
	f.Add([]byte("a\r\n\xffb\x00\n"), int64(1))
	f.Add([]byte(strings.Repeat("é", maxLine)+secret), int64(7))
	f.Fuzz(func(t *testing.T, raw []byte, seed int64) {
		random := rand.New(rand.NewSource(seed))
		var parts []io.Reader
		for rest := raw; len(rest) > 0; {
			n := 1 + random.Intn(len(rest))
			parts = append(parts, strings.NewReader(string(rest[:n])))
			rest = rest[n:]
		}
		for _, line := range linesOf(io.MultiReader(parts...), maskSecret).lines {
			text := strings.TrimPrefix(line, "STDOUT ")
			if len(text) > maxLine || !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\n") || strings.Contains(text, secret) {
				t.Fatalf("got %q", text)
			}
		}
	})
}

func FuzzParseResult(f *testing.F) {
	for _, s := range []string{`{"summary":"x"}`, `{"error":{"a":1}}`, `{"usage":{"input_tokens":-1,"cost_usd":1e300}}`, `{"is_error":true}`, `{"actions":[]}`, `[]`, `{"result":"\u0000"}`, `{"result":[1e400,-0,1e-400,123456789012345678901234567890]}`, `{"result":1} {}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		object, ok := parseResult(raw)
		if !ok {
			return
		}
		usageOf(object, func(s string) string { return s })
		domain.ResultSession(object)
		if !hasOutcome(object) && domain.ReportedError(object) == "" && object["usage"] == nil {
			t.Fatalf("a result that says nothing: %v", object)
		}
		if clean := compactJSON(domain.CleanResult(object, maskSecret)); strings.Contains(clean, `\u0000`) && !strings.Contains(string(raw), `\\u0000`) {
			t.Fatalf("NUL is left: %s", clean)
		}
	})
}

func TestParseResultRefusesDepth(t *testing.T) {
	deep := `{"result":` + strings.Repeat("[", 100) + strings.Repeat("]", 100) + `}`
	if _, ok := parseResult([]byte(deep)); ok {
		t.Error("a result a hundred deep was taken")
	}
}

func TestRegistry(t *testing.T) {
	registry := NewRegistry(newCommand(t, Options{}), nil)
	for _, test := range []struct {
		name string
		spec domain.ExecutorSpec
		says string
	}{
		{"command", domain.ExecutorSpec{Command: &domain.CommandSpec{}}, ""},
		{"echo", domain.ExecutorSpec{Echo: &domain.EchoSpec{}}, ""},
		{"none", domain.ExecutorSpec{}, "no executor is set"},
		{"acp", domain.ExecutorSpec{ACP: &domain.ACPSpec{}}, ""},
		{"http", domain.ExecutorSpec{HTTP: &domain.HTTPSpec{}}, ""},
		{"pull", domain.ExecutorSpec{Pull: &domain.PullSpec{}}, `"pull" is not available in this version`},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, err := registry.Find(test.spec)
			if test.says == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if failure := failureOf(t, err); !failure.Permanent || !strings.Contains(failure.Message, test.says) {
				t.Fatalf("got %+v", failure)
			}
		})
	}
}

func TestEcho(t *testing.T) {
	req := Request{Prompt: "one\ntwo " + secret, Mask: maskSecret, Spec: domain.ExecutorSpec{Echo: &domain.EchoSpec{}}}
	sink := &recorder{}
	result, err := Echo{}.Run(context.Background(), req, sink)
	if err != nil || sink.text() != "STDOUT one\nSTDOUT two ***" || len(sink.sessions) != 0 || result.SessionID == "" || !result.SessionUntold {
		t.Fatalf("got %+v, %v, %q", result, err, sink.text())
	}
	if result.Object["message"] != "one\ntwo ***" || !strings.Contains(result.Object["summary"].(string), "no agent ran") {
		t.Fatalf("got %v", result.Object)
	}
	why := errors.New("cancelled")
	ctx, cancel := context.WithCancelCause(context.Background())
	req.Spec.Echo.Delay = time.Hour
	sink = &recorder{onSession: func() { cancel(why) }}
	if result, err := (Echo{}).Run(ctx, req, sink); !errors.Is(err, why) || !result.Launched || len(sink.sessions) != 1 || result.SessionID != sink.sessions[0] || result.SessionUntold {
		t.Fatalf("cancelled while it waits: got %+v, %v", result, err)
	}
	if result, err := (Echo{}).Run(ctx, req, &recorder{}); !errors.Is(err, why) || result.Launched {
		t.Fatalf("cancelled before: got %+v, %v", result, err)
	}
}

func TestAClosedExecutorLaunchesNothing(t *testing.T) {
	c := NewCommand(Options{WorkRoot: t.TempDir()})
	for range 2 {
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	}
	_, err := c.Run(context.Background(), shell(`true`), &recorder{})
	if failure := failureOf(t, err); failure.Permanent || !errors.Is(err, errClosed) {
		t.Fatalf("got %+v", failure)
	}
}
