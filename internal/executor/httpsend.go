//go:build unix

package executor

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptrace"

	"rouse.dev/rouse/internal/outbound"
)

// post sends the request, on the first of several connections that can be made.
func (h *HTTP) post(ctx context.Context, c *httpCall, body []byte) (*http.Response, error) {
	pause := httpPause
	for try := 1; ; try++ {
		connected, answer, err := h.send(ctx, c, body)
		if err == nil || connected || try == httpTries || ctx.Err() != nil || lasting(err) {
			return answer, err
		}
		c.notes = append(c.notes, fmt.Sprintf("the agent service was not reached and was tried again: %v", outbound.PlainURLError(err)))
		h.pause(ctx, pause)
		pause *= 2
	}
}

// lasting reports whether a connection will not be made the next second either.
func lasting(err error) bool {
	return errors.As(err, new(*outbound.RefusedAddress)) || errors.As(err, new(*tls.CertificateVerificationError))
}

// send makes one connection and sends the request on it. The session is recorded when the request was written, hence
// before the answer, which may take as long as the agent works.
func (h *HTTP) send(ctx context.Context, c *httpCall, body []byte) (connected bool, _ *http.Response, _ error) {
	wrote, got := make(chan struct{}, 1), make(chan struct{}, 1)
	traced := httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{
		GotConn: func(httptrace.GotConnInfo) { notify(got) },
		WroteRequest: func(info httptrace.WroteRequestInfo) {
			if info.Err == nil {
				notify(wrote)
			}
		},
	})
	request, err := h.request(traced, c.req, body)
	if err != nil {
		return true, nil, err
	}
	replies := make(chan reply, 1)
	go func() {
		answer, err := h.client.Do(request) //nolint:bodyclose // read closes it
		replies <- reply{answer, err}
	}()
	r := awaitReply(wrote, replies, c.launched)
	select {
	case <-got:
		connected = true
	default:
	}
	return connected, r.answer, r.err
}

// reply is what came of a request.
type reply struct {
	answer *http.Response
	err    error
}

// awaitReply waits for what comes of a request, and calls launched once the request was written, at the latest before it returns. A request that
// was written may have begun its work, however soon its connection breaks (SPEC S8.2).
func awaitReply(wrote <-chan struct{}, replies <-chan reply, launched func()) reply {
	select {
	case <-wrote:
		launched()
		return <-replies
	case r := <-replies:
		if r.err == nil || len(wrote) > 0 { // both had come, and select takes any of two
			launched()
		}
		return r
	}
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (h *HTTP) request(ctx context.Context, req Request, body []byte) (*http.Request, error) {
	request, err := http.NewRequestWithContext(outbound.WithScheme(ctx, req.Spec.HTTP.URL), http.MethodPost, req.Spec.HTTP.URL, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.GetBody = nil
	for _, v := range req.Headers {
		request.Header.Set(v.Name, v.Value)
	}
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Accept-Encoding", "identity")
	request.Header.Set("User-Agent", "rouse")
	request.Header.Set("X-Rouse-Run", fmt.Sprintf("%s/%d", req.RunID, req.Attempt))
	if req.Secret != "" {
		signRequest(request.Header, req, h.now(), body)
	}
	return request, nil
}
