package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/secret"
)

// Bounds of the settings.
const (
	maxWorkers     = 1000
	minLease       = 5 * time.Second // a lease is renewed several times, and a garbage collection or a slow disk must fit
	maxLease       = 10 * time.Minute
	maxDrain       = time.Hour
	minTokenLength = 24
	minProcesses   = 16 // a shell, its pipes and a program with threads
	maxProcesses   = 4 << 20
	maxOOMScore    = 1000
)

// InvalidError says which settings are wrong, each with its flag, its variable and what to write instead.
type InvalidError struct{ problems error }

// Invalid is the error about a wrong setting of a command that is not part of Config.
func Invalid(problem error) *InvalidError { return &InvalidError{problem} }

// Error is one line for each setting.
func (e *InvalidError) Error() string { return e.problems.Error() }

// Validate lists every setting that is wrong, in an *InvalidError. It looks at the text alone: whether a port is free or a
// database answers shows when they are used.
func (c Config) Validate() error {
	if problems := c.problems(); problems != nil {
		return &InvalidError{problems}
	}
	return nil
}

func (c Config) problems() error {
	return errors.Join(
		problem("--addr", EnvAddr, c.checkAddr()),
		problem("--auth", EnvAuth, c.checkAuth()),
		problem("--admin-addr", EnvAdminAddr, c.checkAdminAddr()),
		problem("--webhook-addr", EnvWebhookAddr, c.checkWebhookAddr()),
		problem("--allow-origin", EnvAllowOrigins, c.checkOrigins()),
		problem("--database-url", EnvDatabaseURL, c.checkDatabaseURL()),
		problem("--workers", EnvWorkers, within(c.Workers, 1, maxWorkers)),
		problem("--lease", EnvLease, within(c.Lease, minLease, maxLease)),
		problem("--drain", EnvDrain, within(c.Drain, 0, maxDrain)),
		problem("--http-allow", EnvHTTPAllow, c.checkHTTPAllow()),
		problem("--agent-uids", EnvAgentUIDs, c.checkUserIDs()),
		problem("--agent-processes", EnvAgentProcesses, zeroOrWithin(c.AgentProcesses, minProcesses, maxProcesses)),
		problem("--agent-oom-score", EnvAgentOOMScore, within(c.AgentOOMScore, 0, maxOOMScore)),
		problem("--retention", EnvHistory, domain.Retention{History: c.History}.Validate()),
		problem("--retention-routine-runs", EnvRoutineRuns, domain.Retention{RoutineRuns: c.RoutineRuns}.Validate()),
		problem("", EnvBootstrapToken, c.checkBootstrapToken()),
		problem("", EnvSecretKey, c.checkSecretKey()),
		problem("--log-level", EnvLogLevel, oneOf(c.LogLevel, "debug", "info", "warn", "error")),
		problem("--log-format", EnvLogFormat, oneOf(c.LogFormat, "text", "json")),
	)
}

// problem names the setting that is wrong. Secrets have no flag, since a command line is visible to everybody.
func problem(flag, variable string, err error) error {
	switch {
	case err == nil:
		return nil
	case flag == "":
		return fmt.Errorf("%s: %w", variable, err)
	}
	return fmt.Errorf("%s (%s): %w", flag, variable, err)
}

func (c Config) checkAddr() error {
	_, err := hostOf(c.Addr)
	return err
}

// checkUserIDs also says what a range for each workspace means beside one account for all: nothing.
func (c Config) checkUserIDs() error {
	if c.AgentUIDs != "" && c.AgentUser != "" {
		return errors.New("it gives each workspace's agents an account of their own, and --agent-user gives one to all; leave one of the two out")
	}
	_, err := c.UserIDs()
	return err
}

func (c Config) checkHTTPAllow() error {
	_, err := c.AllowedAddresses()
	return err
}

func (c Config) checkAdminAddr() error {
	if c.AdminAddr == "" {
		return nil
	}
	host, err := hostOf(c.AdminAddr)
	if err != nil {
		return err
	}
	if !isLoopback(host) {
		return fmt.Errorf("%q is reachable from other machines, and its pages are for what watches this one; use a loopback address, such as 127.0.0.1:8081", c.AdminAddr)
	}
	return nil
}

func (c Config) checkAuth() error {
	if err := oneOf(c.Auth, AuthToken, AuthNone); err != nil {
		return err
	}
	if c.Auth == AuthNone && c.checkAddr() == nil && !c.IsLoopback() {
		return fmt.Errorf("none is for this machine alone, and %q can be reached from others: leave it out, so that callers must send a token, or use --addr 127.0.0.1:8080", c.Addr)
	}
	return nil
}

func (c Config) checkWebhookAddr() error {
	if c.WebhookAddr == "" {
		return nil
	}
	_, err := hostOf(c.WebhookAddr)
	return err
}

func (c Config) checkOrigins() error {
	origins, err := c.Origins()
	if err == nil && len(origins) > 0 && c.Auth == AuthNone {
		return errors.New("--auth none asks for no token, and so answers to no page but its own: leave it out, and let the page send a token")
	}
	return err
}

// IsLoopback reports whether Addr can be reached from this machine alone.
func (c Config) IsLoopback() bool {
	host, err := hostOf(c.Addr)
	return err == nil && isLoopback(host)
}

func isLoopback(host string) bool {
	addr, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && addr.Unmap().IsLoopback()
}

// hostOf is the host of an address to listen on, "" for all interfaces.
func hostOf(address string) (string, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return "", fmt.Errorf("%q is not an address; write host:port, such as 127.0.0.1:8080, or [::1]:8080 for IPv6", address)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil {
		return "", fmt.Errorf("port %q of %q is not a number from 0 to 65535 (0 takes a free one)", port, address)
	} else if strconv.FormatUint(n, 10) != port {
		return "", fmt.Errorf("port %q of %q is written oddly; write %d", port, address, n)
	}
	return host, nil
}

// checkDatabaseURL repeats nothing of the URL, which may hold a password.
func (c Config) checkDatabaseURL() error {
	if c.DatabaseURL.IsEmpty() {
		return nil
	}
	u, err := url.Parse(c.DatabaseURL.Reveal())
	if err != nil || u.Scheme != "postgres" && u.Scheme != "postgresql" {
		return errors.New("not a PostgreSQL URL; write postgres://user:password@host:5432/database?sslmode=disable, " +
			"with special characters of the password percent-encoded, or leave it out for a private cluster")
	}
	return nil
}

func (c Config) checkBootstrapToken() error {
	token := c.BootstrapToken.Reveal()
	if token == "" {
		return nil
	}
	if len(token) < minTokenLength {
		return fmt.Errorf("it has %d characters, which can be guessed; use %d or more: `openssl rand -hex 24` makes one", len(token), minTokenLength)
	}
	if strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return errors.New("it holds a space or a character that no HTTP header may hold; `openssl rand -hex 24` makes one that works")
	}
	return nil
}

func (c Config) checkSecretKey() error {
	if c.SecretKey.IsEmpty() {
		return nil
	}
	_, err := secret.ParseKey(c.SecretKey.Reveal())
	return err
}

func within[T int | time.Duration](value, least, most T) error {
	if value < least || value > most {
		return fmt.Errorf("%v is out of range; use %v to %v", value, least, most)
	}
	return nil
}

// zeroOrWithin is within, where 0 means that there is no limit.
func zeroOrWithin(value, least, most int) error {
	if value == 0 {
		return nil
	}
	return within(value, least, most)
}

func oneOf(value string, allowed ...string) error {
	if !slices.Contains(allowed, value) {
		return fmt.Errorf("%q is not one of %s", value, strings.Join(allowed, ", "))
	}
	return nil
}
