package edge

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
)

// checkOrigin refuses web pages of other origins that AllowOrigin does not allow, and lets browsers know of those it does (CORS). It comes before
// everything else, so that a page reads the errors it meets, too. Nothing here needs credentials of the browser's own: callers send a token.
func (s *Server) checkOrigin(h http.Header, r *http.Request) *refusal {
	h.Add("Vary", "Origin")
	origin := r.Header.Get("Origin")
	if origin == "" || sameOrigin(origin, r.Host) {
		return nil
	}
	if s.options.AllowOrigin == nil || !s.options.AllowOrigin(origin) {
		return refuse(http.StatusForbidden, CodeForbidden, "%s", strangeOrigin(origin))
	}
	h.Set("Access-Control-Allow-Origin", origin)
	h.Set("Access-Control-Expose-Headers", "X-Request-Id, Retry-After, WWW-Authenticate")
	if r.Method == http.MethodOptions {
		allowPreflight(h, r)
	}
	return nil
}

// allowPreflight answers what a browser asks before a page's request. Any header may be sent: none makes this server act by itself. Authorization
// is named because "*" does not include it, Content-Type for browsers that do not know "*".
func allowPreflight(h http.Header, r *http.Request) {
	h.Set("Access-Control-Allow-Methods", "GET, POST")
	h.Set("Access-Control-Allow-Headers", "Authorization, Content-Type, *")
	h.Set("Access-Control-Max-Age", "600")
	if r.Header.Get("Access-Control-Request-Private-Network") == "true" { // a public page that calls a server at home
		h.Set("Access-Control-Allow-Private-Network", "true")
	}
}

// strangeOrigin is the refusal of another origin. It names the origin and the setting that allows it.
func strangeOrigin(origin string) string {
	if origin == "null" {
		return "this page has no origin of its own (a file, or a sandboxed frame), so no setting can let it in: serve it over HTTP and allow that origin with --allow-origin"
	}
	origin = clip(origin)
	return fmt.Sprintf("pages of %q may not call this server; if they are yours, start it with --allow-origin %s (ROUSE_ALLOW_ORIGINS)", origin, origin)
}

// sameOrigin compares the host only: behind a proxy that ends TLS the server does not know its scheme.
func sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Host != "" && strings.EqualFold(u.Host, host)
}
