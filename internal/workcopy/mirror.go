package workcopy

import "time"

// MirrorKeep is how long a mirror stays after its last use: the next working copy of its repository would have to fetch all of it again.
const MirrorKeep = 30 * 24 * time.Hour

// Mirror is what is known of a repository's mirror.
type Mirror struct {
	Copies   int       // working copies whose commits are in it
	Branches bool      // it has branches, of working copies that somebody removed by hand: their commits may be nowhere else
	UsedAt   time.Time // it was brought up to date
}

// Goes says whether the mirror is removed: nobody has used it for long, and it has nothing that its repository has not. Branches may be
// looked for last.
func (m Mirror) Goes(now time.Time) bool {
	return m.Copies == 0 && !m.Branches && !now.Before(m.UsedAt.Add(MirrorKeep))
}
