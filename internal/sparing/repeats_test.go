package sparing

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestWhatRepeatsIsToldOncePerPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := slog.New(slog.NewTextHandler(&out, nil))
		minute, good := Repeats{Pause: time.Minute}, Repeats{}
		for _, step := range []struct {
			after      time.Duration
			err        error
			told, once int // lines of the one with a pause, and of the one without
		}{
			{0, errors.New("a"), 1, 1},
			{time.Second, errors.New("a"), 0, 0},
			{0, fmt.Errorf("%w, %w", errors.New("a"), errors.New("b")), 1, 1},
			{0, errors.Join(errors.New("a"), errors.Join(errors.New("b"), errors.New("c"))), 1, 1},
			{58 * time.Second, errors.New("a"), 0, 0},
			{time.Second, errors.New("a"), 1, 0},
			{0, nil, 0, 0},
		} {
			time.Sleep(step.after)
			for _, one := range []struct {
				r    *Repeats
				want int
			}{{&minute, step.told}, {&good, step.once}} {
				out.Reset()
				one.r.Warn(log, "again", step.err)
				if got := strings.Count(out.String(), "\n"); got != one.want {
					t.Errorf("%v: %d lines, want %d:\n%s", step.err, got, one.want, &out)
				}
			}
		}
	})
}

func TestRepeatsAreBounded(t *testing.T) {
	var out bytes.Buffer
	var r Repeats
	for i := range 2 * mostTexts {
		r.Warn(slog.New(slog.NewTextHandler(&out, nil)), "again", fmt.Errorf("number %d", i))
	}
	if got := strings.Count(out.String(), "\n"); got != mostTexts {
		t.Errorf("%d lines, want %d", got, mostTexts)
	}
}
