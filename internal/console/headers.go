package console

import (
	"net/http"
	"regexp"
	"strings"
)

// setSecurityHeaders allows the page its own files and the API of its own origin, and nobody to frame it. Styles need 'unsafe-inline'
// because the editor makes style elements as it runs; scripts and workers are files only. Workers obey the policy of their own
// response, so every answer carries it.
func setSecurityHeaders(header http.Header, r *http.Request) {
	header.Set("Content-Security-Policy", contentSecurityPolicy(r.Host))
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Referrer-Policy", "no-referrer")
	header.Set("X-Frame-Options", "DENY")
	header.Set("Cross-Origin-Opener-Policy", "same-origin")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=(), payment=(), usb=()")
}

// hostPattern is a host name or address with an optional port; nothing in it can end a directive of the policy.
var hostPattern = regexp.MustCompile(`^(?:[A-Za-z0-9.-]+|\[[0-9A-Fa-f:.]+\])(?::[0-9]+)?$`)

// contentSecurityPolicy names the socket's origin beside 'self', which older browsers do not take to include ws: and wss:.
func contentSecurityPolicy(host string) string {
	connect := "connect-src 'self'"
	if hostPattern.MatchString(host) {
		connect += " ws://" + host + " wss://" + host
	}
	return strings.Join([]string{
		"default-src 'none'",
		"script-src 'self'",
		"worker-src 'self'",
		"style-src 'self' 'unsafe-inline'",
		"img-src 'self' data:",
		"font-src 'self'",
		connect,
		"base-uri 'none'",
		"form-action 'none'",
		"frame-ancestors 'none'",
	}, "; ")
}
