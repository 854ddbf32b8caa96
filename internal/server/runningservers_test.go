package server

import (
	"errors"
	"slices"
	"testing"
	"time"
)

// PostgreSQL names a server that has ended until its sessions have noticed: a command that needs quiet waits for that.
func TestAServerThatHasJustEndedIsNotInTheWay(t *testing.T) {
	broken := errors.New("away")
	server := []string{"process 7 on host"}
	for name, of := range map[string]struct {
		listed [][]string // what each look finds; the last look is repeated
		err    error
		want   []string
	}{
		"no server":                       {listed: [][]string{nil}},
		"one whose sessions end":          {listed: [][]string{server, server, nil}},
		"one that goes on":                {listed: [][]string{server, server, server}, want: server},
		"a database that does not answer": {listed: [][]string{server}, err: broken},
	} {
		look, deadline := make(chan time.Time, len(of.listed)), make(chan time.Time)
		for range of.listed[1:] {
			look <- time.Time{}
		}
		looks := 0
		got, err := namesThatStay(func() ([]string, error) {
			looks++
			if looks == len(of.listed) {
				close(deadline)
			}
			return of.listed[min(looks, len(of.listed))-1], of.err
		}, look, deadline)
		if !slices.Equal(got, of.want) || !errors.Is(err, of.err) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}
