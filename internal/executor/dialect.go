//go:build unix

package executor

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/preset"
	"rouse.dev/rouse/internal/xid"
)

// dialect is how a command is talked to: plainly, or as its preset wants it. It serves one launch.
type dialect struct {
	preset bool
	spec   preset.Preset
	reader preset.Reader
	named  func(session string) // told each session that the agent names
}

// dialectOf finds the preset of a request's command.
func dialectOf(req Request) (*dialect, *Failure) {
	spec := req.Spec.Command
	if spec.Preset == "" {
		return &dialect{}, nil
	}
	found, ok := preset.Find(spec.Preset)
	if !ok {
		return nil, permanentLaunch("the preset %q is not known to this version of rouse; it knows %s", spec.Preset, strings.Join(preset.Names(), ", "))
	}
	return &dialect{preset: true, spec: found, reader: found.NewReader(req.mask)}, nil
}

// again is the dialect for another launch of the same command.
func (d *dialect) again(req Request) *dialect {
	return &dialect{preset: d.preset, spec: d.spec, reader: d.spec.NewReader(req.mask)}
}

// commandLine is the command's arguments and what it gets on standard input. cleanUp is to be called after its end.
func (d *dialect) commandLine(req Request, o Options) (argv []string, prompt string, cleanUp func(), _ *Failure) {
	given, cleanUp := req.Spec.Command.Argv, func() {}
	if !d.preset {
		return given, req.Prompt, cleanUp, nil
	}
	argv = d.spec.Argv(given, req.ResumeSessionID)
	if d.spec.PromptFile == "" {
		return argv, req.Prompt, cleanUp, nil
	}
	file, err := o.promptFile(req.RunID, req.Attempt, req.Prompt)
	if err != nil {
		return nil, "", cleanUp, launchFailure(err, "the prompt could not be written to a file for the agent: %v", err)
	}
	return append(argv, d.spec.PromptFile, file), "", func() { _ = os.Remove(file) }, nil // a file in the temporary folder
}

// promptFile writes a prompt where the agent's account alone can read it. It is named after its attempt, so that the next
// server finds it should this one be killed.
func (o Options) promptFile(run xid.ID, attempt int, prompt string) (path string, err error) {
	file, err := os.CreateTemp("", promptFiles(o.Installation, run.String(), strconv.Itoa(attempt)))
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(prompt)
	if err == nil && o.Credential != nil {
		err = file.Chown(int(o.Credential.Uid), int(o.Credential.Gid))
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}

// promptFiles is a pattern of the names of an attempt's prompt files.
func promptFiles(installation, run, attempt string) string {
	return "rouse-prompt-" + installation + "." + run + "." + attempt + "-*"
}

// removePromptFiles removes what a launch, or all launches of an attempt, left in the temporary folder. A file that cannot be
// removed is of no harm to the run, which must not wait for it.
func removePromptFiles(launch string) {
	parts := strings.Split(launch, "/")
	if len(parts) < 4 || strings.ContainsAny(launch, `*?[\`) {
		return
	}
	files, _ := filepath.Glob(filepath.Join(os.TempDir(), promptFiles(parts[0], parts[1], parts[2]))) // the pattern is a good one
	for _, file := range files {
		_ = os.Remove(file)
	}
}

// reading is how standard output is read.
func (d *dialect) reading(out *output, mask func(string) string) func(io.Reader) {
	if !d.preset {
		return func(r io.Reader) { out.copyLines(domain.LogStreamStdout, r) }
	}
	return func(r io.Reader) {
		split(r, maxMessage, func(line []byte, total int64) { d.event(out, mask, line, total) })
	}
}

// event takes one line of the agent's output: its words go to the log as STDOUT, what it does as SYSTEM.
func (d *dialect) event(out *output, mask func(string) string, line []byte, total int64) {
	if total > int64(len(line)) {
		out.say(fmt.Sprintf("a line of the agent's output was longer than %d MiB and could not be read", maxMessage>>20))
		return
	}
	before := d.reader.Report().Session
	lines, ok := d.reader.Read(line)
	if !ok {
		out.emit(domain.LogStreamStdout, line, total)
		return
	}
	if now := d.reader.Report().Session; now != before && domain.SessionIDFits(now) && mask(now) == now {
		d.named(now)
	}
	for _, l := range lines {
		stream := domain.LogStreamSystem
		if l.Said {
			stream = domain.LogStreamStdout
		}
		out.emit(stream, []byte(l.Text), int64(len(l.Text)))
	}
}

// read makes the result. said is true for a result object on the last line of the agent's words; without one these are
// the result.
func (d *dialect) read(result *Result, out *output, req Request) (said bool) {
	report := d.reader.Report()
	result.Tail = out.tailText()
	result.Resumable = d.spec.CanResume() && report.Session != "" && result.SessionID == report.Session
	object, said := parseResult(out.last)
	switch {
	case said:
		result.Object = domain.CleanResult(object, req.mask).(map[string]any)
		result.Usage = usageOf(object, req.mask)
	case report.Text != "":
		result.Object = map[string]any{"message": maskedText(report.Text, maxAnswer, req.mask)}
	}
	result.Usage = out.cutUsage(mergeUsage(result.Usage, report.Usage.Masked(req.mask)))
	return said
}

// judge decides whether the attempt succeeded; nil is success. What the agent's last event says counts more than the exit
// code, and a result object more than that.
func (d *dialect) judge(ctx context.Context, result Result, said bool, out *output, end ending, state *os.ProcessState, l limits) *Failure {
	report := d.reader.Report()
	switch {
	case end.stopped:
		return endedFromOutside(ctx)
	case said && domain.ReportedError(result.Object) == "" && hasOutcome(result.Object):
		return nil
	case said && domain.ReportedError(result.Object) != "":
		return reported(domain.ReportedError(result.Object))
	case report.Error != "":
		f := reported(maskedText(report.Error, maxTail, out.mask))
		if wait := time.Until(report.LimitedUntil); wait > 0 {
			f.Code, f.RetryAfter = domain.RunErrorCodeRateLimited, wait
		}
		return f
	case out.cutResult() != nil:
		return out.cutResult()
	case report.Ended && !end.timedOut:
		return nil
	}
	result.Object = nil // words alone do not excuse an exit code
	return judge(ctx, result, out, end, state, l)
}

// resumeFailed reports whether an attempt seems to have failed because its session is gone: the agent ended by itself
// before it said or did anything.
func (d *dialect) resumeFailed(req Request, f *Failure) bool {
	if !d.preset || req.ResumeSessionID == "" || !d.spec.CanResume() || d.reader.Report().Begun {
		return false
	}
	return f.Code == domain.RunErrorCodeCrash || f.Code == domain.RunErrorCodeOther
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}
