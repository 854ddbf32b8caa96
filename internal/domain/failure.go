package domain

// RefusesAccount says that a provider refuses the account that an agent uses. Trying again cannot help before a person has changed
// that (SPEC S8.8).
func (v RunErrorCode) RefusesAccount() bool {
	return v == RunErrorCodeAuth || v == RunErrorCodeBilling
}
