package notify

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/textproto"

	"github.com/wneessen/go-mail"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/outbound"
	"rouse.dev/rouse/internal/store"
)

// mail sends a letter. Its Message-ID is that of the notification, so that whoever gets it twice can tell.
func (s *Sender) mail(ctx context.Context, t domain.EmailTarget, n domain.Notice) store.Sent {
	letter, err := s.letter(t, n)
	if err != nil {
		return failed(fmt.Errorf("the letter cannot be written: %w: correct the channel's target", err))
	}
	client, err := mail.NewClient(t.Host, s.mailOptions(t)...)
	if err != nil {
		return failed(fmt.Errorf("the mail server cannot be called: %w: correct the channel's target", err))
	}
	err = client.DialAndSendWithContext(outbound.WithEncryption(ctx, t.Security != domain.SMTPSecurityNone), letter)
	if err == nil {
		return delivered(250)
	}
	return s.mailFailure(ctx, err)
}

func (s *Sender) letter(t domain.EmailTarget, n domain.Notice) (*mail.Msg, error) {
	m := mail.NewMsg(mail.WithNoDefaultUserAgent())
	if err := m.From(t.From); err != nil {
		return nil, err
	}
	if err := m.To(t.To...); err != nil {
		return nil, err
	}
	subject, text := n.Mail()
	m.Subject(subject)
	m.SetMessageIDWithValue(n.ID.String() + "@rouse")
	m.SetDateWithValue(s.Now())
	m.SetGenHeader("Auto-Submitted", "auto-generated")
	m.SetBodyString(mail.TypeTextPlain, text)
	return m, nil
}

func (s *Sender) mailOptions(t domain.EmailTarget) []mail.Option {
	config := tlsOf(s.Roots, t.Host)
	options := []mail.Option{mail.WithPort(t.Port), mail.WithTimeout(attemptTime), mail.WithTLSConfig(config), mail.WithoutNoop()}
	switch t.Security {
	case domain.SMTPSecurityTLS:
		options = append(options, mail.WithSSL(), mail.WithDialContextFunc(s.dialTLS(config)))
	case domain.SMTPSecurityNone:
		options = append(options, mail.WithTLSPolicy(mail.NoTLS), mail.WithDialContextFunc(s.Allow.Dial))
	default:
		options = append(options, mail.WithTLSPolicy(mail.TLSMandatory), mail.WithDialContextFunc(s.Allow.Dial))
	}
	if t.Username != "" {
		options = append(options, mail.WithUsername(t.Username), mail.WithPassword(t.Password),
			mail.WithOpportunisticSMTPAuth(mail.SMTPAuthSCRAMSHA256, mail.SMTPAuthPlain, mail.SMTPAuthLogin))
	}
	return options
}

// dialTLS connects to a guarded address and makes the connection TLS before anything is said.
func (s *Sender) dialTLS(config *tls.Config) mail.DialContextFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		plain, err := s.Allow.Dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		conn := tls.Client(plain, config)
		if err := conn.HandshakeContext(ctx); err != nil {
			_ = plain.Close() // nothing was said on it
			return nil, err
		}
		return conn, nil
	}
}

func tlsOf(roots *x509.CertPool, host string) *tls.Config {
	return &tls.Config{RootCAs: roots, ServerName: host, MinVersion: tls.VersionTLS12}
}

// mailFailure explains why a letter was not taken.
func (s *Sender) mailFailure(ctx context.Context, err error) store.Sent {
	var refused *mail.SendError
	var answer *textproto.Error
	switch {
	case errors.As(err, &refused) && refused.ErrorCode() > 0:
		return store.Sent{Status: refused.ErrorCode(), Detail: fmt.Sprintf("the mail server refused the letter: %v", refused)}
	case errors.As(err, &answer):
		return store.Sent{Status: answer.Code, Detail: fmt.Sprintf("the mail server refused: %v: correct the channel's target", answer)}
	}
	return connectionFailure(ctx, err)
}
