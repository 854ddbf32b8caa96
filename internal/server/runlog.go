package server

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"time"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/internal/auth"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/edge"
	"rouse.dev/rouse/internal/store/reads"
	"rouse.dev/rouse/internal/xid"
)

// runLogPath is where the log of a run is served as text.
const runLogPath = "GET /runs/{id}/log"

// Bounds of a log that is served as text.
const (
	logPage      = 200              // lines that are in memory at once
	logWriteTime = 10 * time.Second // in which a reader takes a page
	logHead      = "Rouse-Log-Cursor"
)

// logReader reads runs' logs.
type logReader interface {
	RunHead(ctx context.Context, runID xid.ID, lines bool) (reads.RunHead, error)
	LogAfter(ctx context.Context, runID xid.ID, after reads.LogPosition, limit int) ([]reads.LogRow, error)
	LogSize(ctx context.Context, runID xid.ID, after, upTo reads.LogPosition) (int64, error)
}

// runLogs serves the logs of runs as text: a line for each line of output, as they are stored, with secrets masked. A log only grows,
// so that a reader goes on where it was, by the bytes that it has (Range) or by the cursor that it was given (?after=).
type runLogs struct {
	gatekeeper *gatekeeper
	strangers  *edge.Strangers
	runs       *ent.Client // of the API: it shows each caller its own runs alone
	logs       logReader
	log        *slog.Logger
}

// ServeHTTP answers with the log as it is at this instant.
func (l *runLogs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, status, why := l.judge(r)
	if status != http.StatusOK {
		l.strangers.Wait(r.Context())
		if status == http.StatusUnauthorized {
			w.Header().Set("WWW-Authenticate", "Bearer")
		}
		answer(w, status, why+"\n")
		return
	}
	after, err := logCursor(r.URL.Query().Get("after"))
	if err != nil {
		answer(w, http.StatusBadRequest, err.Error()+"\n")
		return
	}
	id := xid.ID(r.PathValue("id"))
	if status, why := l.sees(ctx, id); status != http.StatusOK {
		answer(w, status, why+"\n")
		return
	}
	l.send(w, r.WithContext(ctx), id, after)
}

// judge finds who asks, as the API does.
func (l *runLogs) judge(r *http.Request) (ctx context.Context, status int, why string) {
	token, err := edge.Bearer(r.Header.Get("Authorization"))
	if err != nil {
		return nil, http.StatusUnauthorized, err.Error()
	}
	ctx, err = l.gatekeeper.authenticate(r.Context(), edge.Credentials{Token: token})
	if refused, ok := errors.AsType[*edge.Error](err); ok && refused.Code == edge.CodeUnauthenticated {
		return nil, http.StatusUnauthorized, refused.Message
	}
	if err != nil {
		return nil, http.StatusServiceUnavailable, "the server ends, or its database does not answer: ask again in a few seconds"
	}
	caller, _ := auth.FromContext(ctx)
	if !caller.AllowsAny(domain.TokenScopeRead, domain.TokenScopeRun) {
		return nil, http.StatusForbidden, "this needs scope READ, which the token does not have; make one with it"
	}
	edge.Proved(r.Context(), token)
	return ctx, http.StatusOK, ""
}

// sees says whether the caller sees the run: by a run's token its own alone.
func (l *runLogs) sees(ctx context.Context, id xid.ID) (status int, why string) {
	const gone = "there is no such run for this caller"
	if caller, _ := auth.FromContext(ctx); caller.Kind == auth.KindRun && caller.RunID != id {
		return http.StatusNotFound, gone
	}
	_, err := l.runs.Run.Get(ctx, id)
	switch {
	case ent.IsNotFound(err):
		return http.StatusNotFound, gone
	case err != nil:
		l.log.ErrorContext(ctx, "a run was not read for its log", "run_id", id, "error", err)
		return http.StatusServiceUnavailable, "the database does not answer: ask again in a few seconds"
	}
	return http.StatusOK, ""
}

// send writes the log after a place, up to what is stored now.
func (l *runLogs) send(w http.ResponseWriter, r *http.Request, id xid.ID, after reads.LogPosition) {
	head, err := l.logs.RunHead(r.Context(), id, true)
	var size int64
	if err == nil {
		size, err = l.logs.LogSize(r.Context(), id, after, head.Line)
	}
	if err != nil {
		l.log.ErrorContext(r.Context(), "a log was not measured", "run_id", id, "error", err)
		answer(w, http.StatusServiceUnavailable, "the database does not answer: ask again in a few seconds\n")
		return
	}
	h := w.Header()
	h.Set("Content-Type", "text/plain; charset=utf-8")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", "no-store")
	h.Set("Accept-Ranges", "bytes")
	if head.Line.UpTo(after) { // nothing is new, so the reader keeps its place
		h.Set(logHead, fmt.Sprintf("%d.%d", after.Attempt, after.Seq))
	} else {
		h.Set(logHead, fmt.Sprintf("%d.%d", head.Line.Attempt, head.Line.Seq))
	}
	skip, ranged := firstByte(r.Header.Get("Range"))
	switch {
	case ranged && skip >= size:
		h.Set("Content-Range", fmt.Sprintf("bytes */%d", size))
		answer(w, http.StatusRequestedRangeNotSatisfiable, "the log has no byte at that place yet: it has "+strconv.FormatInt(size, 10)+"\n")
		return
	case ranged:
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", skip, size-1, size))
		h.Set("Content-Length", strconv.FormatInt(size-skip, 10))
		w.WriteHeader(http.StatusPartialContent)
	default:
		h.Set("Content-Length", strconv.FormatInt(size, 10))
	}
	if r.Method == http.MethodHead {
		return
	}
	if err := l.copy(w, r, id, after, head.Line, skip); err != nil {
		l.log.WarnContext(r.Context(), "a log was sent in part; its reader sees that bytes are missing, and may go on", "run_id", id, "error", err)
	}
}

// copy writes the lines after one place up to another, but the first bytes, page by page.
func (l *runLogs) copy(w http.ResponseWriter, r *http.Request, id xid.ID, after, upTo reads.LogPosition, skip int64) error {
	control := http.NewResponseController(w)
	defer func() { _ = control.SetWriteDeadline(time.Time{}) }() // the connection may serve other requests; one that is gone cannot
	for {
		lines, err := l.logs.LogAfter(r.Context(), id, after, logPage)
		if err != nil || len(lines) == 0 {
			return err
		}
		var page strings.Builder
		for _, line := range lines {
			if !line.UpTo(upTo) {
				break
			}
			page.WriteString(line.Text)
			page.WriteByte('\n')
		}
		text := page.String()
		cut := min(skip, int64(len(text)))
		skip -= cut
		if err := control.SetWriteDeadline(time.Now().Add(logWriteTime)); err != nil && !errors.Is(err, http.ErrNotSupported) {
			return fmt.Errorf("set the time that the reader has: %w", err)
		}
		if _, err := w.Write([]byte(text[cut:])); err != nil {
			return fmt.Errorf("write to the reader: %w", err)
		}
		if after = lines[len(lines)-1].LogPosition; !after.UpTo(upTo) || len(lines) < logPage {
			return nil
		}
	}
}

// firstByte is the place at which a reader wants to go on, of a range with an open end. Others are not served: the whole is sent.
func firstByte(header string) (int64, bool) {
	spec, ok := strings.CutPrefix(header, "bytes=")
	first, open := strings.CutSuffix(spec, "-")
	n, err := strconv.ParseInt(first, 10, 64)
	return n, ok && open && err == nil && n >= 0
}

// logCursor reads a place in a log, attempt and line with a point between; "" is the beginning.
func logCursor(text string) (at reads.LogPosition, err error) {
	if text == "" {
		return at, nil
	}
	attempt, line, _ := strings.Cut(text, ".")
	n, attemptErr := strconv.ParseUint(attempt, 10, 31)
	m, lineErr := strconv.ParseUint(line, 10, 63)
	if attemptErr != nil || lineErr != nil {
		return at, fmt.Errorf("after is a place in the log such as 1.120, as the header %s of an answer gives it; leave it out to begin at the start", logHead)
	}
	return reads.LogPosition{Attempt: int(n), Seq: int64(m)}, nil
}
