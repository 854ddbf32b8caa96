package server

import (
	"context"
	"time"
)

const (
	presenceBeat  = 15 * time.Second
	presenceLimit = 3 * time.Second // for the word that the process ends
)

// showPresence tells the database of this process at once and then at each beat, until the front stops, so that the API can list the
// processes and say who executes a run. The log of an outage is the listener's business: a beat that is missed is no news beside it.
func (s *Server) showPresence() {
	p := s.presence
	s.front.serving.Go(func() {
		beat := time.NewTicker(presenceBeat)
		defer beat.Stop()
		for {
			if err := s.store.ProcessRuns(s.front.base, p); err != nil && s.front.base.Err() == nil {
				s.log.Debug("the processes are not told that this one runs; the next beat tries again", "error", err)
			}
			select {
			case <-beat.C:
			case <-s.front.base.Done():
				return
			}
		}
	})
}

// endPresence tells the database that this process has ended. Without it, the process is listed until an hour after its last beat.
func (s *Server) endPresence() error {
	ctx, cancel := context.WithTimeout(context.Background(), presenceLimit)
	defer cancel()
	if err := s.store.ProcessEnds(ctx, s.presence.ID); err != nil {
		s.log.Warn("the other processes are not told that this one has ended", "error", err)
	}
	return nil
}
