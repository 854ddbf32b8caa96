package notify

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/outbound"
	"rouse.dev/rouse/internal/retry"
	"rouse.dev/rouse/internal/store"
)

// answerShown is how much of a refusal is kept, in bytes.
const answerShown = 400

// post sends JSON to an address, signed where there is a secret. A redirect is not followed: it could lead anywhere.
func (s *Sender) post(ctx context.Context, address, key string, n domain.Notice, body []byte) store.Sent {
	request, err := http.NewRequestWithContext(outbound.WithScheme(ctx, address), http.MethodPost, address, bytes.NewReader(body))
	if err != nil {
		return store.Sent{Detail: "the channel's address cannot be called: give another one with updateNotificationChannel"}
	}
	request.GetBody = nil
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("User-Agent", "rouse")
	if key != "" {
		outbound.SignStandard(request.Header, key, n.ID.String(), s.Now(), body)
	}
	answer, err := s.client.Do(request)
	if err != nil {
		return connectionFailure(ctx, err)
	}
	defer answer.Body.Close() // it was only read
	text, _ := io.ReadAll(io.LimitReader(answer.Body, answerShown))
	return s.judge(answer, string(text))
}

// judge reads an answer as Standard Webhooks say: 2xx is taken, 410 is never again, all else is tried again.
func (s *Sender) judge(answer *http.Response, text string) store.Sent {
	status := answer.StatusCode
	if status >= 200 && status < 300 {
		return delivered(status)
	}
	sent := store.Sent{Status: status, Detail: fmt.Sprintf("the receiver answered %d", status)}
	if text = strings.Join(strings.Fields(domain.StorableText(text)), " "); text != "" {
		sent.Detail += ": " + text
	}
	switch {
	case status == http.StatusGone:
		sent.Never = true
		sent.Detail += ": it wants no more of these; correct the channel's target"
	case status >= 300 && status < 400:
		sent.Detail += ": redirects are not followed; give the channel the address that it leads to"
	case status == http.StatusTooManyRequests || status == http.StatusServiceUnavailable:
		sent.Delivered = retry.Delivered{After: s.retryAfter(answer.Header.Get("Retry-After"))}
	}
	return sent
}

// retryAfter reads seconds or a date; 0: neither.
func (s *Sender) retryAfter(text string) time.Duration {
	if seconds, err := strconv.ParseUint(text, 10, 31); err == nil {
		return time.Duration(seconds) * time.Second
	}
	if at, err := http.ParseTime(text); err == nil {
		return max(at.Sub(s.Now()), 0)
	}
	return 0
}
