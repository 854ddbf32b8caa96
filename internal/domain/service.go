package domain

import (
	"fmt"
	"time"
)

// DefaultServiceGrace is how long an agent service that was asked to end has for its report, unless its executor says otherwise.
const DefaultServiceGrace = 30 * time.Second

// EndGrace is how long the service has for its report, once a run that it accepted was asked to end.
func (s *HTTPSpec) EndGrace() time.Duration {
	if s.Grace == nil {
		return DefaultServiceGrace
	}
	return *s.Grace
}

// AfterServiceTime decides about an attempt that an agent service has accepted, when the time of its lease is up. asked
// says that the service was asked to end before, so that its grace is over, too.
func AfterServiceTime(asked, cancelRequested bool, grace time.Duration) Fate {
	switch {
	case !asked && grace > 0:
		return FateAsk
	case cancelRequested:
		return FateCancel
	}
	return FateRetry
}

// ServiceTimeout is the message of an attempt whose service did not end it in time.
func ServiceTimeout(timeout time.Duration) string {
	return fmt.Sprintf("the agent service did not end the run within its timeout of %s: raise the executor's timeout if the work takes longer", timeout)
}
