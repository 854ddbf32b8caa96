package domain

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
)

// Fingerprint says which fires are the same for the concurrency policy: the hash, in hex, of routine, agent, template
// (nil: lightweight) and provided values (SPEC S4.6). Built-ins are left out, so that {{datetime}} in a title does not
// make every fire different (C212). The order of values does not matter; no values and nil are the same.
func Fingerprint(routineID, agentID string, template *TaskTemplate, provided map[string]string) string {
	if provided == nil {
		provided = map[string]string{}
	}
	canonical, err := json.Marshal(struct { // member order is fixed, map keys are sorted
		Routine  string            `json:"routine"`
		Agent    string            `json:"agent"`
		Template *TaskTemplate     `json:"template"`
		Provided map[string]string `json:"provided"`
	}{routineID, agentID, template, provided})
	if err != nil { // strings and booleans can always be written
		panic("domain: fingerprint: " + err.Error())
	}
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}
