//go:build unix

// Package remote is a worker on another machine (SPEC S7.1). It takes runs from a queue through the API, and runs their
// agents here. It reports through the API what the pool of a server would write into the store. The lease, the fence
// and the end of processes are those of internal/worker: this package is its store, over HTTP.
package remote

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"rouse.dev/rouse/internal/secret"
	"rouse.dev/rouse/internal/store"
)

// maxAnswer bounds what is read of an answer.
const maxAnswer = 8 << 20

// Client calls the API of one server.
type Client struct {
	endpoint string
	token    secret.String // empty: the server is on this machine and asks for none
	http     *http.Client

	ended atomic.Pointer[func(error)] // told that the token counts no more
}

// ErrTokenEnded says that the server does not know the worker's token, or not any more: no call will be answered again.
var ErrTokenEnded = errors.New("the server does not take this worker's token (any more): make another with rouse token create --scope EXECUTE, and start the worker with it")

// NewClient makes a client of the server at an address such as https://rouse.example.org.
func NewClient(server string, token secret.String) (*Client, error) {
	u, err := url.Parse(strings.TrimRight(server, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, fmt.Errorf("%q is no address of a server: give one such as https://rouse.example.org with --server", server)
	}
	if n, err := strconv.ParseUint(u.Port(), 10, 16); u.Port() != "" && (err != nil || n == 0) {
		return nil, fmt.Errorf("the port of %q is not one from 1 to 65535: give an address such as https://rouse.example.org:8443 with --server", server)
	}
	u.Path = strings.TrimSuffix(u.Path, graphqlPath) + graphqlPath
	return &Client{endpoint: u.String(), token: token, http: &http.Client{
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }, // the token is for this server alone
	}}, nil
}

const graphqlPath = "/graphql"

// Refused is an answer that will not change by asking again: the caller is not known, or may not do this.
type Refused struct {
	Message string
	Token   bool // it is the token that is not taken
}

// Error says what was refused and why.
func (r *Refused) Error() string { return r.Message }

// Is makes a refused token an ErrTokenEnded.
func (r *Refused) Is(target error) bool { return r.Token && target == ErrTokenEnded }

// unavailable is a server that cannot answer just now. It is a net.Error, so that the pool asks again.
type unavailable struct{ message string }

func (u *unavailable) Error() string   { return u.message }
func (u *unavailable) Timeout() bool   { return true }
func (u *unavailable) Temporary() bool { return true }

// answer is a GraphQL response.
type answer struct {
	Data   json.RawMessage
	Errors []struct {
		Message    string
		Extensions struct{ Code string }
	}
}

// do runs one operation and decodes its data into out.
func (c *Client) do(ctx context.Context, limit time.Duration, query string, variables map[string]any, out any) error {
	body, err := json.Marshal(map[string]any{"query": query, "variables": variables})
	if err != nil {
		return fmt.Errorf("encode a call of the API: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.endpoint, bytes.NewReader(body))
	if err != nil {
		return fmt.Errorf("make a call of the API: %w", err)
	}
	req.Header.Set("Content-Type", "application/json")
	if !c.token.IsEmpty() {
		req.Header.Set("Authorization", "Bearer "+c.token.Reveal())
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return err // a *url.Error, which says where and is a net.Error
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
	if err != nil {
		return &unavailable{"the server's answer broke off: " + err.Error()}
	}
	err = decodeAnswer(resp.StatusCode, text, out)
	if ended := c.ended.Load(); ended != nil && errors.Is(err, ErrTokenEnded) {
		(*ended)(err)
	}
	return err
}

// decodeAnswer tells data, passing trouble and refusals apart.
func decodeAnswer(status int, text []byte, out any) error {
	var a answer
	if err := json.Unmarshal(text, &a); err != nil {
		if status >= http.StatusInternalServerError || status == http.StatusTooManyRequests {
			return &unavailable{fmt.Sprintf("the server answers with status %d", status)}
		}
		return &Refused{Message: fmt.Sprintf("what answers is no rouse (status %d): check --server", status)}
	}
	if len(a.Errors) > 0 {
		e := a.Errors[0]
		switch e.Extensions.Code {
		case "INTERNAL", "TIMEOUT", "UNAVAILABLE", "TOO_MANY_REQUESTS":
			return &unavailable{"the server could not answer: " + e.Message}
		}
		return &Refused{Message: "the server refused: " + e.Message, Token: e.Extensions.Code == "UNAUTHENTICATED"}
	}
	if err := json.Unmarshal(a.Data, out); err != nil {
		return fmt.Errorf("read the server's answer: %w", err)
	}
	return nil
}

// userErrors are the problems of a payload.
type userErrors []struct{ Code, Message string }

// err is nil without problems, and store.ErrFenced for a lease that does not stand any more.
func (e userErrors) err() error {
	if len(e) == 0 {
		return nil
	}
	if e[0].Code == "STALE_LEASE" {
		return store.ErrFenced
	}
	return errors.New("the server says: " + e[0].Message)
}
