//go:build unix

package executor

import (
	"runtime"
	"sync"
)

// spawner runs functions on one operating-system thread that lives as long as the server. The kernel sends the
// parent-death signal when the thread that started a process ends, not when the server does; Go ends idle threads of
// locked goroutines, so a child started from just anywhere could be killed in the middle of its work.
type spawner struct {
	once sync.Once
	jobs chan func()
}

// do runs f on the thread and returns when f has.
func (s *spawner) do(f func()) {
	s.once.Do(func() {
		s.jobs = make(chan func())
		go s.loop()
	})
	done := make(chan struct{})
	s.jobs <- func() { defer close(done); f() }
	<-done
}

func (s *spawner) loop() {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread() // without it the thread would end here and kill its children
	for job := range s.jobs {
		job()
	}
}

// close lets the thread go. No call of do may follow or be under way.
func (s *spawner) close() {
	s.once.Do(func() { s.jobs = make(chan func()) })
	close(s.jobs)
}
