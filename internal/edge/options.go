package edge

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/99designs/gqlgen/graphql"
)

// Options configures a Server; its zero value is a server without authentication, for callers of the same origin only.
type Options struct {
	// Authenticate turns credentials into the context operations run in. On HTTP it is called once a request, on a
	// socket once, at connection_init. An *Error that it returns is shown to the caller: code FORBIDDEN gives 403,
	// UNAVAILABLE 503 or close code 1013, any other 401. Any other error goes through PresentError; when that returns
	// nil, it is a server error: 500, or close code 1013. The context must descend from the one given. When it is
	// cancelled while the socket is open, because the token was revoked or expired, the socket is closed with 4403. Use
	// context.AfterFunc on the given context to release what watches the token. Nil: every caller is let in.
	Authenticate func(context.Context, Credentials) (context.Context, error)
	// AllowOrigin says whether a web page of this origin ("https://console.example.com") may call; the server's own origin always may.
	// Nil: no other origin may.
	AllowOrigin func(origin string) bool
	// Strangers bounds what callers cost who have not been authenticated; nil means without bounds.
	Strangers *Strangers
	// Refused translates an error that refuses what the caller asks; nil means that the error is not a refusal. It is
	// asked before PresentError, and also while arguments are read, where a scope may be missing for a field of an
	// input.
	Refused func(error) *Error
	// PresentError translates an error of a resolver or of Authenticate into one the caller may see; nil means that it is a server error.
	PresentError func(context.Context, error) *Error
	// Extensions run after the limits, in this order: metrics, traces.
	Extensions []graphql.HandlerExtension
	// Limits holds the bounds; each zero field means its default.
	Limits Limits
	// Log takes the causes of server errors, with keys request_id, path and error. Nil: slog.Default().
	Log *slog.Logger
}

// Credentials is what a caller showed.
type Credentials struct {
	// Token is the bearer token, without "Bearer"; empty when none was sent.
	Token string
	// RemoteAddr is the peer's address, "host:port".
	RemoteAddr string
	// Socket is true for a WebSocket, whose context lives as long as the socket.
	Socket bool
}

// Limits bounds requests, documents, operations and sockets. Zero means the default in parentheses.
type Limits struct {
	BodyBytes     int64 // of a POST body, and of the variables of a GET (256 KiB)
	DocumentBytes int   // of the query text (32 KiB)
	Tokens        int   // of the query text, comments included (2,000)
	Selections    int   // in one selection set (200)
	Repeats       int   // of one field name in one document; validation compares each with each (200)
	Fragments     int   // in one document (50)
	Aliases       int   // in one document (30)
	RootFields    int   // of one operation, fragments expanded (20)
	Mutations     int   // root fields of one mutation (10)
	Depth         int   // nested fields; introspection has a limit of its own (12)
	InputDepth    int   // lists and objects within each other in a variable or a literal; what reads inputs recurses (64)
	Cost          int   // see costWalk (5,000)
	ListSize      int   // what a list without first, last or multiplier counts for (5)
	PageDefault   int   // size of a page when neither first nor last is given and @page does not say (25)
	PageMax       int   // largest page when @page does not say (100)
	CachedQueries int   // parsed and validated documents kept (256)
	Errors        int   // in one response (10)
	PerAgent      int   // requests at once by the tokens of one agent's runs; others wait (2)
	Agents        int   // operations at once by those of all agents (8)

	QueryTimeout    time.Duration // (15 s)
	MutationTimeout time.Duration // (30 s)
	BodyTimeout     time.Duration // to receive a body (10 s)
	WriteTimeout    time.Duration // to hand a response or a socket message to the peer; slower peers are cut off (10 s)

	Subscriptions int           // operations at once on one socket (100)
	MessageBytes  int64         // of one socket message (256 KiB)
	InitTimeout   time.Duration // from the upgrade to connection_init (10 s)
	PingInterval  time.Duration // between pings; a peer that does not answer within WriteTimeout is cut off (20 s)
}

// withDefaults fills in what is zero.
func (l Limits) withDefaults() Limits {
	return Limits{
		BodyBytes:     cmp.Or(l.BodyBytes, 256<<10),
		DocumentBytes: cmp.Or(l.DocumentBytes, 32<<10),
		Tokens:        cmp.Or(l.Tokens, 2000),
		Selections:    cmp.Or(l.Selections, 200),
		Repeats:       cmp.Or(l.Repeats, 200),
		Fragments:     cmp.Or(l.Fragments, 50),
		Aliases:       cmp.Or(l.Aliases, 30),
		RootFields:    cmp.Or(l.RootFields, 20),
		Mutations:     cmp.Or(l.Mutations, 10),
		Depth:         cmp.Or(l.Depth, 12),
		InputDepth:    cmp.Or(l.InputDepth, 64),
		Cost:          cmp.Or(l.Cost, 5000),
		ListSize:      cmp.Or(l.ListSize, 5),
		PageDefault:   cmp.Or(l.PageDefault, 25),
		PageMax:       cmp.Or(l.PageMax, 100),
		CachedQueries: cmp.Or(l.CachedQueries, 256),
		Errors:        cmp.Or(l.Errors, 10),
		PerAgent:      cmp.Or(l.PerAgent, 2),
		Agents:        cmp.Or(l.Agents, 8),

		QueryTimeout:    cmp.Or(l.QueryTimeout, 15*time.Second),
		MutationTimeout: cmp.Or(l.MutationTimeout, 30*time.Second),
		BodyTimeout:     cmp.Or(l.BodyTimeout, 10*time.Second),
		WriteTimeout:    cmp.Or(l.WriteTimeout, 10*time.Second),

		Subscriptions: cmp.Or(l.Subscriptions, 100),
		MessageBytes:  cmp.Or(l.MessageBytes, 256<<10),
		InitTimeout:   cmp.Or(l.InitTimeout, 10*time.Second),
		PingInterval:  cmp.Or(l.PingInterval, 20*time.Second),
	}
}
