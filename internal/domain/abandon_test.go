package domain

import "testing"

func TestAfterAbandonment(t *testing.T) {
	for _, c := range []struct {
		name         string
		abandonments int
		cancel       bool
		want         Fate
	}{
		{"C83 the first lost lease re-queues the run", 1, false, FateRequeue},
		{"C83 the second too", 2, false, FateRequeue},
		{"C83 the third fails it", 3, false, FateFail},
		{"C305 a cancel that was asked is honoured by rescue", 1, true, FateCancel},
		{"C305 also at the third", 3, true, FateCancel},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := AfterAbandonment(c.abandonments, c.cancel); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestAfterFailure(t *testing.T) {
	for _, c := range []struct {
		name                      string
		giveUp, permanent, cancel bool
		want                      Fate
	}{
		{"a failure is retried", false, false, false, FateRetry},
		{"C81 the fifth gives up", true, false, false, FateFail},
		{"a permanent one gives up at once", false, true, false, FateFail},
		{"C305 a cancel that was asked is honoured by retry", false, false, true, FateCancel},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := AfterFailure(c.giveUp, c.permanent, c.cancel); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
