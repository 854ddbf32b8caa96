// Package graph is the GraphQL API. It reads rows through a client that shows each caller only its own workspace, and
// changes rows by one call of the store for each mutation. Resolvers are thin: parse, call, answer. Limits, page sizes
// and the form of errors are the edge's business.
package graph

import (
	"context"
	"log/slog"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"rouse.dev/rouse/ent"
	"rouse.dev/rouse/graph/model"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/topic"
	"rouse.dev/rouse/internal/xid"
)

// Resolver is what the fields of the API need.
type Resolver struct {
	Store   *store.Store
	Reader  *ent.Client // refuses mutations and adds the caller's workspace to every query
	Signals Signals
	Sealer  Sealer
	// Launches opens what workers are given.
	Launches Launches
	// Tester looks whether executors work.
	Tester Tester
	// Notifier tests notification channels.
	Notifier Notifier
	// Leaving is closed when the process begins to end. Workers that wait for a run are then sent away. Nil: never.
	Leaving <-chan struct{}
	// URL is where the API is served, e.g. http://127.0.0.1:8080, for commands that people copy.
	URL string
	// WebhookURL is where webhooks are served; "": at URL.
	WebhookURL string
	// Process says how this process is doing.
	Process func() model.ProcessInfo
	// OperationCost is what the operation that the context belongs to was measured at.
	OperationCost func(context.Context) model.OperationCost
	// EndStream makes a subscription end with an error; it is called just before the subscription's channel is closed.
	EndStream func(context.Context, error)
	Log       *slog.Logger
	// Poll is the longest time a subscription goes without looking at the database; 0: 5 s.
	Poll time.Duration
	// Patience is how long a LOG stream waits for its reader to take one item; 0: 8 s. It must be below the time after
	// which the edge closes a socket that does not take a message, or nobody learns where to go on.
	Patience time.Duration

	topics  *topic.Topics // of the subscriptions
	singles *singles      // of all requests
}

// Signals says when to look at a run or a feed again. A signal only says "look", and may be lost, so readers poll, too.
type Signals interface {
	// WatchRun gives a channel of capacity 1 that holds at most one signal that the run, its events or its log may have
	// changed, or that signals may have been lost. Watching ends with ctx.
	WatchRun(ctx context.Context, runID xid.ID) <-chan struct{}
	// WatchActivity is WatchRun for new entries in the feed of a workspace.
	WatchActivity(ctx context.Context, workspaceID xid.ID) <-chan struct{}
	// WatchOffers is WatchRun for runs that a workspace offers to workers.
	WatchOffers(ctx context.Context, workspaceID xid.ID) <-chan struct{}
}

// Sealer encrypts a value that only the record it is bound to may use. boundTo is "<record id>/<name of the value>".
type Sealer interface {
	Seal(plaintext, boundTo string) (string, error)
}

// Notifier makes one attempt to deliver a notice to a channel.
type Notifier interface {
	Send(ctx context.Context, channelID xid.ID, target domain.NotificationTarget, n domain.Notice) store.Sent
}

// Launches opens what a launch seals.
type Launches interface {
	// Environment is what the agent of a launch is given, in plain text. Its error names the variable and holds no secret.
	Environment(l *store.Launch) ([]*model.EnvironmentVariable, error)
	// Mask hides sealed values in a text.
	Mask(sets []domain.SealedSet) func(string) string
}

// NewSchema makes the API. Poll, Patience and Log have defaults, the rest must be there.
func NewSchema(r Resolver) graphql.ExecutableSchema {
	if r.Poll == 0 {
		r.Poll = 5 * time.Second
	}
	if r.Patience == 0 {
		r.Patience = 8 * time.Second
	}
	if r.Log == nil {
		r.Log = slog.Default()
	}
	r.topics, r.singles = &topic.Topics{}, newSingles(r.Reader)
	if r.Reader != nil {
		r.Reader.Intercept(ent.InterceptFunc(expectSiblings))
	}
	return schema{NewExecutableSchema(Config{Resolvers: &r, Directives: DirectiveRoot{Requires: r.requires}}), &r}
}

// schema gives each response loaders of its own, so that a stream never answers from an older response's rows.
type schema struct {
	graphql.ExecutableSchema
	resolver *Resolver
}

// Exec runs one operation.
func (s schema) Exec(ctx context.Context) graphql.ResponseHandler {
	operation := graphql.GetOperationContext(ctx)
	refused := bareWords(operation)
	if refused == nil {
		refused = narrow(ctx, s.Schema(), operation)
	}
	if refused != nil {
		return graphql.OneShot(&graphql.Response{Errors: gqlerror.List{refused}})
	}
	if operation.Operation.Operation == ast.Subscription {
		return s.subscribe(ctx, operation)
	}
	next := s.ExecutableSchema.Exec(ctx)
	return func(ctx context.Context) *graphql.Response { return next(s.resolver.withLoaders(ctx)) }
}

// subscribe starts a subscription. Each of its responses is written with loaders of its own.
func (s schema) subscribe(ctx context.Context, operation *graphql.OperationContext) graphql.ResponseHandler {
	out := &stream{key: keyOf(ctx, operation)}
	next := s.ExecutableSchema.Exec(withStream(ctx, out))
	write := func(ctx context.Context) *graphql.Response { return next(s.resolver.withLoaders(ctx)) }
	return func(ctx context.Context) *graphql.Response { return s.resolver.respond(ctx, out, write) }
}
