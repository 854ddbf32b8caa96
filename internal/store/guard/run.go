package guard

import (
	"strings"

	"rouse.dev/rouse/internal/domain"
)

// Due says in SQL of a run that it is due: it waits for nothing but its turn (SPEC S3.9). It has no alias: it is of the
// innermost FROM, which has runs alone.
const Due = `status = '` + string(domain.RunStatusQueued) + `' AND parked_reason IS NULL`

// Oldest is the order in which runs take their turns.
const Oldest = ` ORDER BY requested_at, id`

// Head selects the head of an agent's lane in SQL, its oldest due run: requested_at and id. agentID is an expression.
func Head(agentID string) string {
	return `SELECT requested_at, id FROM runs WHERE agent_id = ` + agentID + ` AND ` + Due + Oldest + ` LIMIT 1`
}

// LongParked says in SQL that a run is parked for one of domain.LongParked.
var LongParked = `parked_reason IN ('` + joined(domain.LongParked, "', '") + `')`

func joined[T ~string](list []T, between string) string {
	texts := make([]string, len(list))
	for i, v := range list {
		texts[i] = string(v)
	}
	return strings.Join(texts, between)
}
