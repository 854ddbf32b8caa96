package edge

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

const friend = "https://console.example.com"

func allowFriend(origin string) bool { return origin == friend }

func TestOrigins(t *testing.T) {
	tests := []struct {
		name, origin string
		allow        func(string) bool
		status       int
		cors, why    string
	}{
		{"no origin", "", nil, 200, "", ""},
		{"its own origin", "https://rouse.example.com", nil, 200, "", ""},
		{"its own host behind a proxy that ends TLS", "http://ROUSE.example.com", nil, 200, "", ""},
		{"another port", "https://rouse.example.com:8443", nil, 403, "", "--allow-origin https://rouse.example.com:8443"},
		{"another origin", friend, nil, 403, "", "--allow-origin https://console.example.com (ROUSE_ALLOW_ORIGINS)"},
		{"another origin that is allowed", friend, allowFriend, 200, friend, ""},
		{"another origin that is not", "https://evil.example", allowFriend, 403, "", "--allow-origin https://evil.example"},
		{"a sandboxed page", "null", allowFriend, 403, "", "no origin of its own"},
		{"nonsense", "://", allowFriend, 403, "", "may not call"},
		{"more than an origin", "https://" + strings.Repeat("x", 5000), allowFriend, 403, "", "…"},
	}
	for _, tt := range tests {
		for _, method := range []string{http.MethodPost, http.MethodOptions} {
			t.Run(method+" of "+tt.name, func(t *testing.T) {
				f := newFixture(t, Options{AllowOrigin: tt.allow})
				r := newPost(requestBody("{hello}", nil))
				r.Host, r.Method = "rouse.example.com", method
				if tt.origin != "" {
					r.Header.Set("Origin", tt.origin)
				}
				want := tt.status
				if method == http.MethodOptions && want == 200 {
					want = http.StatusNoContent
				}
				got := do(t, f, r)
				if got.status != want || got.header.Get("Access-Control-Allow-Origin") != tt.cors || !slices.Contains(got.header.Values("Vary"), "Origin") {
					t.Errorf("status %d, headers %v", got.status, got.header)
				}
				if tt.status == 403 && (got.code() != CodeForbidden || !strings.Contains(got.text, tt.why) || len(got.text) > 1000) {
					t.Errorf("body: %s", got.text)
				}
			})
		}
	}
}

// A browser asks before each POST with JSON or a token.
func TestPreflightsAreAnsweredWithoutAToken(t *testing.T) {
	f := newFixture(t, Options{AllowOrigin: allowFriend, Authenticate: tokens})
	r := httptest.NewRequest(http.MethodOptions, "/graphql", nil)
	r.Header.Set("Origin", friend)
	r.Header.Set("Access-Control-Request-Method", "POST")
	r.Header.Set("Access-Control-Request-Headers", "authorization,content-type,x-client")
	r.Header.Set("Access-Control-Request-Private-Network", "true")
	got := do(t, f, r)
	for name, want := range map[string]string{"Access-Control-Allow-Origin": friend, "Access-Control-Allow-Methods": "GET, POST", "Access-Control-Max-Age": "600",
		"Access-Control-Allow-Headers": "Authorization, Content-Type, *", "Access-Control-Allow-Private-Network": "true", "Access-Control-Allow-Credentials": ""} {
		if got.status != 204 || got.header.Get(name) != want {
			t.Errorf("status %d, %s: %q, want %q", got.status, name, got.header.Get(name), want)
		}
	}
}

// A front end can only tell its user what went wrong if its browser lets it read the answer.
func TestErrorsAreReadableForPagesThatMayCall(t *testing.T) {
	f := newFixture(t, Options{AllowOrigin: allowFriend, Authenticate: tokens, PresentError: translate})
	for _, tt := range []struct {
		name, token, body string
		status            int
	}{
		{"no token", "", `{"query":"{hello}"}`, 401},
		{"a token for something else", "narrow", `{"query":"{hello}"}`, 403},
		{"a failure of the server", "broken", `{"query":"{hello}"}`, 500},
		{"the database is away", "away", `{"query":"{hello}"}`, 503},
		{"no JSON", "good", `{`, 400},
		{"too much", "good", `{"query":"` + strings.Repeat(" ", 300<<10) + `"}`, 413},
	} {
		t.Run(tt.name, func(t *testing.T) {
			r := newPost(strings.NewReader(tt.body))
			r.Header.Set("Origin", friend)
			if tt.token != "" {
				r.Header.Set("Authorization", "Bearer "+tt.token)
			}
			got := do(t, f, r)
			if got.status != tt.status || got.header.Get("Access-Control-Allow-Origin") != friend || !strings.Contains(got.header.Get("Access-Control-Expose-Headers"), "X-Request-Id") {
				t.Errorf("status %d, headers %v: %s", got.status, got.header, got.text)
			}
		})
	}
}
