// Package graphtest runs operations against the API in one process, without HTTP, for tests.
package graphtest

import (
	"bytes"
	"context"
	"encoding/json"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/executor"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"rouse.dev/rouse/internal/auth"
)

// Client runs operations as one caller.
type Client struct {
	t      testing.TB
	exec   *executor.Executor
	caller auth.Principal
}

// New makes a client of a schema. Errors of resolvers keep their codes in extensions.code; others are shown as they are.
func New(t testing.TB, schema graphql.ExecutableSchema, caller auth.Principal) *Client {
	return &Client{t, executor.New(schema), caller}
}

// As is the same API for another caller.
func (c *Client) As(caller auth.Principal) *Client { return &Client{c.t, c.exec, caller} }

// Try runs a query or mutation and returns its data, which is nil for a request error, and its errors.
func (c *Client) Try(ctx context.Context, query string, variables map[string]any) (json.RawMessage, gqlerror.List) {
	next, ctx, errs := c.start(ctx, query, variables)
	if errs != nil {
		return nil, errs
	}
	response := next(ctx)
	return response.Data, response.Errors
}

// Do runs a query or mutation that must succeed and decodes its data into out. Numbers stay numbers, nulls zero values.
func (c *Client) Do(ctx context.Context, query string, variables map[string]any, out any) {
	c.t.Helper()
	data, errs := c.Try(ctx, query, variables)
	if len(errs) > 0 {
		c.t.Fatalf("%s: %v", query, errs)
	}
	if err := json.Unmarshal(data, out); err != nil {
		c.t.Fatalf("%s: decode %s: %v", query, data, err)
	}
}

// Subscribe starts a subscription. Each call of next waits for one response: its data, or the errors that it was refused
// with; both are nil at the end of the stream.
func (c *Client) Subscribe(ctx context.Context, query string, variables map[string]any) (next func() (json.RawMessage, gqlerror.List)) {
	responses, ctx, errs := c.start(ctx, query, variables)
	return func() (json.RawMessage, gqlerror.List) {
		if errs != nil {
			return nil, errs
		}
		response := responses(ctx)
		if response == nil {
			return nil, nil
		}
		return bytes.Clone(response.Data), response.Errors
	}
}

func (c *Client) start(ctx context.Context, query string, variables map[string]any) (graphql.ResponseHandler, context.Context, gqlerror.List) {
	if c.caller.Kind != "" {
		ctx = auth.WithPrincipal(ctx, c.caller)
	}
	ctx = graphql.StartOperationTrace(ctx)
	oc, errs := c.exec.CreateOperationContext(ctx, &graphql.RawParams{Query: query, Variables: throughJSON(c.t, variables)})
	if errs != nil {
		return nil, ctx, errs
	}
	next, ctx := c.exec.DispatchOperation(ctx, oc)
	return next, ctx, nil
}

// throughJSON gives variables the types they have when they come over the wire.
func throughJSON(t testing.TB, variables map[string]any) map[string]any {
	t.Helper()
	text, err := json.Marshal(variables)
	if err != nil {
		t.Fatalf("encode variables: %v", err)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var out map[string]any
	if err := decoder.Decode(&out); err != nil {
		t.Fatalf("decode variables: %v", err)
	}
	return out
}
