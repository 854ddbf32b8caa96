package mcpserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"time"

	"rouse.dev/rouse/internal/secret"

	"rouse.dev/rouse/internal/pause"
)

// API is the GraphQL API of one server, called with the token of a run.
type API struct {
	address string
	token   secret.String
	http    *http.Client
	pauses  []time.Duration // before a call that got no answer is made again
}

// NewAPI makes a client of the API at an address such as http://127.0.0.1:8080/graphql.
func NewAPI(address string, token secret.String) (*API, error) {
	u, err := url.Parse(address)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, errors.New("ROUSE_API_URL is no address of an API: rouse sets it for the agents that it starts, such as http://127.0.0.1:8080/graphql")
	}
	if token.IsEmpty() {
		return nil, errors.New("ROUSE_RUN_TOKEN is not set: rouse sets it for the agents that it starts, and an agent's program has to hand it on to its tools")
	}
	return &API{address: u.String(), token: token, pauses: []time.Duration{200 * time.Millisecond, time.Second, 3 * time.Second, 6 * time.Second},
		http: &http.Client{
			Timeout:       time.Minute,
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token is for this server alone
		}}, nil
}

// maxAnswer bounds what is read of an answer, in bytes.
const maxAnswer = 8 << 20

// response is what the API answers.
type response struct {
	Data   json.RawMessage
	Errors []struct {
		Message    string
		Extensions struct{ Code string }
	}
}

// errNoAnswer is a call that was not answered. It may have been carried out.
var errNoAnswer = errors.New("rouse did not answer")

// call runs one operation and decodes its data into out. A call without an answer is made again: what it asks for is done once (an
// idempotency key, or a state that is there already).
func (a *API) call(ctx context.Context, query string, variables map[string]any, out any) error {
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return fmt.Errorf("encode a call of the API: %w", err)
	}
	for try := 0; ; try++ {
		data, err := a.send(ctx, body)
		if err == nil {
			return json.Unmarshal(data, out)
		}
		if !errors.Is(err, errNoAnswer) || try == len(a.pauses) || !pause.For(ctx, a.pauses[try]) {
			return err
		}
	}
}

// passing are codes of errors that pass.
var passing = []string{"INTERNAL", "TIMEOUT", "UNAVAILABLE", "TOO_MANY_REQUESTS"}

func (a *API) send(ctx context.Context, body []byte) (json.RawMessage, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, a.address, bytes.NewReader(body))
	if err != nil {
		return nil, fmt.Errorf("make a call of the API: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+a.token.Reveal())
	resp, err := a.http.Do(req)
	if err != nil {
		return nil, fmt.Errorf("%w (%w)", errNoAnswer, err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return nil, fmt.Errorf("%w (its answer broke off: %w)", errNoAnswer, err)
	}
	var r response
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, fmt.Errorf("%w (status %d at %s)", errNoAnswer, resp.StatusCode, a.address)
	}
	if len(r.Errors) == 0 {
		return r.Data, nil
	}
	first := r.Errors[0]
	if slices.Contains(passing, first.Extensions.Code) {
		return nil, fmt.Errorf("%w (%s)", errNoAnswer, first.Message)
	}
	return nil, &refusal{code: first.Extensions.Code, message: first.Message}
}
