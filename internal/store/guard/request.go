package guard

import "rouse.dev/rouse/internal/domain"

// Unrouted says in SQL of a wakeup request that no run has it yet. Like Due it has no alias.
const Unrouted = `status = '` + string(domain.WakeupStatusQueued) + `' AND run_id IS NULL`

// UnroutedOf is Unrouted of a row with this alias, where several tables are joined.
func UnroutedOf(alias string) string {
	return alias + `.status = '` + string(domain.WakeupStatusQueued) + `' AND ` + alias + `.run_id IS NULL`
}

// RequestLives says in SQL of a wakeup request that its run, should it have one, has not ended with it. Like Due it has no alias.
const RequestLives = `status IN ('` + string(domain.WakeupStatusQueued) + `', '` + string(domain.WakeupStatusClaimed) + `', '` + string(domain.WakeupStatusCoalesced) + `')`
