package outbound

import (
	"net/http"
)

const headerBytes = 64 << 10 // of an answer

// Client is an HTTP client that calls public addresses and those of allow, follows no redirect, and sends nothing twice.
func (a Addresses) Client() *http.Client {
	transport := &http.Transport{
		DialContext:            a.Dial,
		TLSHandshakeTimeout:    connectTime,
		MaxResponseHeaderBytes: headerBytes,
		DisableKeepAlives:      true, // a request is never sent again on another connection behind our back
		DisableCompression:     true, // what is read is what is bounded
		ForceAttemptHTTP2:      true,
		Proxy:                  nil, // a proxy would dial addresses that nobody checks
	}
	return &http.Client{
		Transport:     transport,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}
