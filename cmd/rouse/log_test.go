package main

import (
	"bytes"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/config"
)

func TestTheLogWritesDurationsForPeopleInEachFormat(t *testing.T) {
	for format, want := range map[string]string{"text": "took=3s", "json": `"took":"3s"`} {
		var out bytes.Buffer
		c := config.Default()
		c.LogFormat = format
		logger(c, &out).Info("run ended", "took", 3*time.Second)
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s: %s", format, out.String())
		}
	}
}
