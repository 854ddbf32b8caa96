package notify

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"fmt"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
)

// mailServer is an SMTP server (RFC 5321) of a test that takes one letter a connection.
type mailServer struct {
	port    int
	roots   *x509.CertPool
	config  *tls.Config
	mode    domain.SMTPSecurity
	refuse  string // the answer to RCPT; "": it is taken
	letters chan letter
}

// letter is what a client handed over.
type letter struct {
	from, login string
	to          []string
	text        string
	encrypted   bool
}

func serveMail(t *testing.T, mode domain.SMTPSecurity, refuse string) *mailServer {
	t.Helper()
	s := &mailServer{mode: mode, refuse: refuse, letters: make(chan letter, 10)}
	s.certify(t)
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	s.port = listener.Addr().(*net.TCPAddr).Port
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go s.talk(conn)
		}
	}()
	return s
}

func (s *mailServer) certify(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	s.roots = x509.NewCertPool()
	s.roots.AddCert(certificate)
	s.config = &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}, MinVersion: tls.VersionTLS12}
}

// talk answers a client until it leaves.
func (s *mailServer) talk(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	var got letter
	if s.mode == domain.SMTPSecurityTLS {
		conn, got.encrypted = tls.Server(conn, s.config), true
	}
	lines := bufio.NewReader(conn)
	say := func(text string) { _, _ = fmt.Fprint(conn, text+"\r\n") }
	say("220 mail.example.com ready")
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		line = strings.TrimRight(line, "\r\n")
		switch verb := strings.ToUpper(strings.Fields(line + " x")[0]); verb {
		case "EHLO":
			if s.mode == domain.SMTPSecurityStartTLS && !got.encrypted {
				say("250-mail.example.com\r\n250 STARTTLS")
				break
			}
			say("250-mail.example.com\r\n250 AUTH PLAIN LOGIN")
		case "STARTTLS":
			say("220 go on")
			conn, got.encrypted = tls.Server(conn, s.config), true
			lines = bufio.NewReader(conn)
		case "AUTH":
			plain, _ := base64.StdEncoding.DecodeString(line[strings.LastIndex(line, " ")+1:])
			if got.login = strings.ReplaceAll(string(plain), "\x00", " "); !strings.HasSuffix(got.login, "topsecret") {
				say("535 5.7.8 wrong: " + got.login)
				break
			}
			say("235 welcome")
		case "MAIL":
			got.from = line
			say("250 ok")
		case "RCPT":
			if s.refuse != "" {
				say(s.refuse)
				break
			}
			got.to = append(got.to, line)
			say("250 ok")
		case "DATA":
			say("354 go on")
			for {
				text, err := lines.ReadString('\n')
				if err != nil {
					return
				}
				if text == ".\r\n" {
					break
				}
				got.text += text
			}
			s.letters <- got
			say("250 taken")
		case "QUIT":
			say("221 bye")
			return
		default:
			say("250 ok")
		}
	}
}

func (s *mailServer) target(user, password string) domain.NotificationTarget {
	return domain.NotificationTarget{Email: &domain.EmailTarget{Host: "127.0.0.1", Port: s.port, Security: s.mode, Username: user, Password: password,
		From: "Rouse <rouse@example.com>", To: []string{"ann@example.com", "bob@example.com"}}}
}

func TestLettersAreSent(t *testing.T) {
	t.Parallel()
	for mode, password := range map[domain.SMTPSecurity]string{domain.SMTPSecurityStartTLS: "sealed:topsecret", domain.SMTPSecurityTLS: "sealed:topsecret", domain.SMTPSecurityNone: ""} {
		server, user := serveMail(t, mode, ""), "rouse"
		if password == "" {
			user = ""
		}
		sent := sender(server.roots, loopback).Send(t.Context(), channelID, server.target(user, password), notice)
		if !sent.OK || sent.Status != 250 || sent.Detail != "" {
			t.Fatalf("%s: %+v", mode, sent)
		}
		got := <-server.letters
		if got.encrypted != (mode != domain.SMTPSecurityNone) || user != "" && got.login != " rouse topsecret" || len(got.to) != 2 || !strings.Contains(got.from, "<rouse@example.com>") {
			t.Errorf("%s: %+v", mode, got)
		}
		for _, want := range []string{"Subject: [Shop] agent.error: a run of Ada gave up\r\n", "Message-ID: <ntf_1@rouse>\r\n", "Auto-Submitted: auto-generated\r\n", "no way\r\n", "run_1"} {
			if !strings.Contains(got.text, want) {
				t.Errorf("%s: %q is missing in\n%s", mode, want, got.text)
			}
		}
	}
}

func TestLettersThatAreRefused(t *testing.T) {
	t.Parallel()
	refusing, plain, certified := serveMail(t, domain.SMTPSecurityStartTLS, "550 5.1.1 no such person"), serveMail(t, domain.SMTPSecurityNone, ""), serveMail(t, domain.SMTPSecurityTLS, "")
	downgraded := plain.target("rouse", "sealed:topsecret")
	downgraded.Email.Security = domain.SMTPSecurityStartTLS
	for name, c := range map[string]struct {
		roots  *x509.CertPool
		target domain.NotificationTarget
		status int
		detail string
	}{
		"nobody of the name":                 {refusing.roots, refusing.target("", ""), 550, "no such person"},
		"a wrong password":                   {certified.roots, certified.target("rouse", "sealed:othersecret"), 535, "refused"},
		"a certificate that nobody knows":    {refusing.roots, certified.target("rouse", "sealed:topsecret"), 0, "certificate"},
		"a server without the TLS asked for": {plain.roots, downgraded, 0, "STARTTLS"},
	} {
		sent := sender(c.roots, loopback).Send(t.Context(), channelID, c.target, notice)
		if sent.OK || sent.Status != c.status || !strings.Contains(sent.Detail, c.detail) || strings.Contains(sent.Detail, "secret") {
			t.Errorf("%s: %+v", name, sent)
		}
	}
	if len(plain.letters)+len(refusing.letters)+len(certified.letters) > 0 {
		t.Error("a letter was taken")
	}
}
