package guard

import "rouse.dev/rouse/internal/domain"

// Unrouted says in SQL of a wakeup request that it is QUEUED and no run has it yet. Like Due it has no alias. The column follows
// from the others.
const Unrouted = `unrouted`

// RequestLives says in SQL of a wakeup request that its run, should it have one, has not ended with it. Like Due it has no alias.
const RequestLives = `status IN ('` + string(domain.WakeupStatusQueued) + `', '` + string(domain.WakeupStatusClaimed) + `', '` + string(domain.WakeupStatusCoalesced) + `')`
