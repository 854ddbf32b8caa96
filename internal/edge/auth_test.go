package edge

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/auth"
)

// tokens lets in "good"; each other token fails in its way.
func tokens(ctx context.Context, c Credentials) (context.Context, error) {
	switch c.Token {
	case "good":
		return ctx, nil
	case "ended":
		return auth.WithPrincipal(ctx, auth.Principal{Kind: auth.KindRun, Ended: true}), nil
	case "panic":
		panic("the secret of the check")
	case "nothing":
		return nil, nil
	case "narrow":
		return nil, &Error{Code: CodeForbidden, Message: "this token may not call from here"}
	case "away":
		return nil, errAway
	case "broken":
		return nil, errors.New("pq: connection refused")
	}
	return nil, &Error{Code: CodeUnauthenticated, Message: "send a valid token: Authorization: Bearer rse_…"}
}

// Whoever goes away while its token is looked up is no failure of the server: a flood of them would fill the log.
func TestWhoGoesAwayBeforeItIsKnownIsNoLine(t *testing.T) {
	f := newFixture(t, Options{Authenticate: func(ctx context.Context, _ Credentials) (context.Context, error) { return nil, ctx.Err() }})
	ctx, leave := context.WithCancel(t.Context())
	leave()
	f.askAs(ctx, "good")
	if f.log.String() != "" {
		t.Error(f.log)
	}
}

func TestAuthenticationOnHTTP(t *testing.T) {
	f := newFixture(t, Options{Authenticate: tokens, PresentError: translate})
	tests := []struct {
		name, header string
		status       int
		code         string
		challenge    string
	}{
		{"a good token", "Bearer good", 200, "", ""},
		{"the scheme in small letters", "bearer good", 200, "", ""},
		{"no header", "", 401, CodeUnauthenticated, "Bearer"},
		{"a bad token", "Bearer bad", 401, CodeUnauthenticated, `Bearer error="invalid_token"`},
		{"another scheme", "Basic Z29vZA==", 401, CodeUnauthenticated, "Bearer"},
		{"a scheme without a token", "Bearer ", 401, CodeUnauthenticated, "Bearer"},
		{"a token for something else", "Bearer narrow", 403, CodeForbidden, ""},
		{"a failure of the server", "Bearer broken", 500, CodeInternal, ""},
		{"a server that cannot look the token up just now", "Bearer away", 503, CodeUnavailable, ""},
		{"a panic of the server", "Bearer panic", 500, CodeInternal, ""},
		{"an authenticator that forgets its context", "Bearer nothing", 500, CodeInternal, ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			for _, accept := range []string{mediaJSON, mediaGraphQL} {
				r := newPost(requestBody("{hello}", nil))
				r.Header.Set("Accept", accept)
				if tt.header != "" {
					r.Header.Set("Authorization", tt.header)
				}
				got := do(t, f, r)
				if got.status != tt.status || got.code() != tt.code || got.header.Get("WWW-Authenticate") != tt.challenge {
					t.Errorf("status %d, challenge %q: %s", got.status, got.header.Get("WWW-Authenticate"), got.text)
				}
				if tt.status != 200 && got.hasData() || strings.Contains(got.text, "pq:") {
					t.Errorf("body: %s", got.text)
				}
			}
		})
	}
	if log := f.log.String(); !strings.Contains(log, "connection refused") || strings.Contains(log, "Bearer") {
		t.Errorf("log: %s", log)
	}
}

func TestAuthenticationComesBeforeTheBodyIsRead(t *testing.T) {
	f := newFixture(t, Options{Authenticate: tokens})
	body := &countingReader{}
	if r := do(t, f, newPost(body)); r.status != 401 || body.reads != 0 {
		t.Errorf("status %d after %d reads", r.status, body.reads)
	}
}

type countingReader struct{ reads int }

func (c *countingReader) Read(p []byte) (int, error) { c.reads++; return len(p), nil }

func TestInitToken(t *testing.T) {
	tests := []struct {
		payload, token string
		ok, bad        bool
	}{
		{``, "", true, false},
		{`null`, "", true, false},
		{`{}`, "", true, false},
		{`{"Authorization":"Bearer abc"}`, "abc", true, false},
		{`{"authorization":"bearer abc"}`, "abc", true, false},
		{`{"token":"abc"}`, "abc", true, false},
		{`{"headers":{"token":5}}`, "", true, false},
		{`{"token":5}`, "", true, true},
		{`{"token":""}`, "", true, true},
		{`{"token":" "}`, "", true, true},
		{`{"token":null}`, "", true, true},
		{`{"Authorization":["Bearer abc"]}`, "", true, true},
		{`{"Authorization":""}`, "", true, true},
		{`{"authorization":null,"token":"one"}`, "", true, true},
		{`{"Authorization":"Bearer one","token":{}}`, "", true, true},
		{`{"Authorization":"abc"}`, "", true, true},
		{`{"token":"one","Authorization":"Bearer two"}`, "two", true, false},
		{`[]`, "", false, false},
		{`"Bearer abc"`, "", false, false},
	}
	for _, tt := range tests {
		token, ok, err := initToken(json.RawMessage(tt.payload))
		if token != tt.token || ok != tt.ok || (err != nil) != tt.bad {
			t.Errorf("%s: %q %v %v", tt.payload, token, ok, err)
		}
	}
}
