package domain

import (
	"testing"
	"time"
)

func TestAfterLoss(t *testing.T) {
	launched := func(losses int) LossFacts { return LossFacts{Launched: true, Losses: losses} }
	for _, c := range []struct {
		name string
		loss LossFacts
		want Loss
	}{
		{"S8.4 an attempt that had not launched never counts", LossFacts{}, Loss{Fate: FateRequeue}},
		{"S8.4 nor after four losses", LossFacts{Losses: 4}, Loss{Fate: FateRequeue, Losses: 4}},
		{"C83 after the first loss the run waits 10 s", launched(0), Loss{FateRetry, 1, 10 * time.Second}},
		{"C83 after the second a minute", launched(1), Loss{FateRetry, 2, time.Minute}},
		{"S8.4 after the third five minutes", launched(2), Loss{FateRetry, 3, 5 * time.Minute}},
		{"S8.4 after the fourth fifteen", launched(3), Loss{FateRetry, 4, 15 * time.Minute}},
		{"S8.4 the fifth fails it", launched(4), Loss{Fate: FateFail, Losses: 5}},
		{"more than that, too", launched(9), Loss{Fate: FateFail, Losses: 10}},
		{"C305 a cancel that was asked is honoured by rescue", LossFacts{Launched: true, CancelRequested: true}, Loss{Fate: FateCancel}},
		{"C305 also at the fifth, and when it had not launched", LossFacts{Losses: 4, CancelRequested: true}, Loss{Fate: FateCancel, Losses: 4}},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := AfterLoss(c.loss); got != c.want {
				t.Errorf("got %+v, want %+v", got, c.want)
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
