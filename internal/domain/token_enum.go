package domain

import "io"

// TokenScope is what a token allows.
type TokenScope string

const (
	TokenScopeRead    TokenScope = "READ"    // read
	TokenScopeOperate TokenScope = "OPERATE" // fire, wake, pause, comment, approve
	TokenScopeAdmin   TokenScope = "ADMIN"   // manage routines, agents, budgets, tokens
	TokenScopeExecute TokenScope = "EXECUTE" // report progress of runs
	TokenScopeRun     TokenScope = "RUN"     // the agent of one live run (SPEC S7.4)
)

var tokenScopeValues = []TokenScope{
	TokenScopeRead,
	TokenScopeOperate,
	TokenScopeAdmin,
	TokenScopeExecute,
	TokenScopeRun,
}

// Values lists every TokenScope, for the database check and the API enum.
func (TokenScope) Values() []string { return enumValues(tokenScopeValues) }

// MarshalGQL writes the value as the API spells it.
func (v TokenScope) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *TokenScope) UnmarshalGQL(in any) error { return unmarshalEnum(v, in, tokenScopeValues) }
