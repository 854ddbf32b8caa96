package sparing

import (
	"bytes"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestFailuresAreLoggedSparingly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		log := Log(slog.New(slog.NewTextHandler(&out, nil)))
		for range 500 {
			log.Error("webhook failed")
			log.With("trigger_id", "trg_1").WithGroup("more").Error("webhook failed")
		}
		if n := strings.Count(out.String(), "\n"); n != 10 || strings.Contains(out.String(), "left_out") {
			t.Errorf("%d lines:\n%s", n, &out)
		}
		out.Reset()
		time.Sleep(time.Minute)
		log.Error("webhook failed")
		log.Error("webhook failed")
		if got := out.String(); strings.Count(got, "\n") != 2 || strings.Count(got, "left_out_before=990") != 1 {
			t.Errorf("after a minute:\n%s", got)
		}
	})
}
