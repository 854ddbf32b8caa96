package domain

// TokenScope is what a token allows.
//
//rouse:enum
type TokenScope string

const (
	TokenScopeRead    TokenScope = "READ"    // read
	TokenScopeOperate TokenScope = "OPERATE" // fire, wake, pause, comment, approve
	TokenScopeAdmin   TokenScope = "ADMIN"   // manage routines, agents, budgets, tokens
	TokenScopeExecute TokenScope = "EXECUTE" // report progress of runs
	TokenScopeRun     TokenScope = "RUN"     // the agent of one live run (SPEC S7.4)
)
