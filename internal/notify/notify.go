// Package notify makes one attempt to tell somebody: a POST, or a letter by SMTP. What is told, and when it is tried again, is
// settled elsewhere. What it says of an attempt holds no secret.
package notify

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/outbound"
	"rouse.dev/rouse/internal/retry"
	"rouse.dev/rouse/internal/secret"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
)

// attemptTime bounds one attempt.
const attemptTime = 15 * time.Second

// Opener opens what is sealed for a place.
type Opener interface {
	Open(sealed, place string) (string, error)
}

// Options are what a Sender needs. Roots nil: those of the system.
type Options struct {
	Secrets Opener
	Allow   outbound.Addresses // beside public ones
	Roots   *x509.CertPool
	Now     func() time.Time // nil: time.Now
}

// Sender delivers. It is safe for concurrent use.
type Sender struct {
	Options
	client *http.Client
}

// New makes a sender.
func New(o Options) *Sender {
	if o.Now == nil {
		o.Now = time.Now
	}
	client := o.Allow.Client()
	if transport, ok := client.Transport.(*http.Transport); ok && o.Roots != nil {
		transport.TLSClientConfig = tlsOf(o.Roots, "")
	}
	return &Sender{Options: o, client: client}
}

// Send makes one attempt to deliver a notice to a channel.
func (s *Sender) Send(ctx context.Context, channelID xid.ID, target domain.NotificationTarget, n domain.Notice) (sent store.Sent) {
	ctx, cancel := context.WithTimeout(ctx, attemptTime)
	defer cancel()
	began := time.Now()
	open, values, err := s.open(channelID, target)
	mask := secret.NewMasker(values...).Mask
	if err != nil {
		sent = failed(err)
	} else {
		sent = s.send(ctx, open, n)
	}
	sent.Detail, sent.Took = mask(sent.Detail), time.Since(began)
	return sent
}

// open is a target with its secrets in plain text, and these.
func (s *Sender) open(channelID xid.ID, target domain.NotificationTarget) (domain.NotificationTarget, []string, error) {
	target = target.Clone()
	var values []string
	var problem error
	target.EachSecret(func(name string, sealed *string) {
		plain, err := s.Secrets.Open(*sealed, domain.SealPlace(channelID, name))
		if err != nil {
			problem = fmt.Errorf("the channel's %s cannot be opened: the key that sealed it is another one: give it again with updateNotificationChannel", name)
			return
		}
		*sealed, values = plain, append(values, plain)
	})
	return target, values, problem
}

func (s *Sender) send(ctx context.Context, t domain.NotificationTarget, n domain.Notice) store.Sent {
	var body []byte
	var err error
	switch {
	case t.Webhook != nil:
		if body, err = n.WebhookBody(); err == nil {
			return s.post(ctx, t.Webhook.URL, t.Webhook.Secret, n, body)
		}
	case t.Slack != nil:
		if body, err = n.SlackBody(t.Slack.Template); err == nil {
			return s.post(ctx, t.Slack.URL, "", n, body)
		}
	case t.JSON != nil:
		if body, err = n.JSONBody(t.JSON.Template); err == nil {
			return s.post(ctx, t.JSON.URL, "", n, body)
		}
	case t.Email != nil:
		return s.mail(ctx, *t.Email, n)
	default:
		err = errors.New("the channel delivers nowhere")
	}
	return failed(err)
}

func failed(err error) store.Sent { return store.Sent{Detail: err.Error()} }

// connectionFailure explains an error of the network, without the address that it may name.
func connectionFailure(ctx context.Context, err error) store.Sent {
	var refused *outbound.RefusedAddress
	var dns *net.DNSError
	switch {
	case errors.As(err, &refused):
		return failed(refused)
	case errors.As(err, &dns):
		return store.Sent{Detail: "the name of the receiver is not known: correct the channel's target, or the machine's name service"}
	case ctx.Err() != nil:
		return store.Sent{Detail: fmt.Sprintf("the receiver did not answer within %s: see whether it runs, and whether this machine reaches it", attemptTime)}
	}
	return store.Sent{Detail: fmt.Sprintf("the receiver was not reached: %v: see whether it runs, and correct the channel's target", outbound.PlainURLError(err))}
}

// delivered is what came of an attempt that the receiver has taken.
func delivered(status int) store.Sent {
	return store.Sent{Delivered: retry.Delivered{OK: true}, Status: status}
}
