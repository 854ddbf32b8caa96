// Package config holds every setting of a rouse process in one struct: its defaults, and what makes a setting wrong. The
// command line fills it from flags and the environment; nothing else reads either.
package config

import (
	"fmt"
	"log/slog"
	"net/netip"
	"strings"
	"time"

	"rouse.dev/rouse/internal/account"
	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/secret"
)

// Config is how one process runs. Secrets do not print.
type Config struct {
	Addr           string        // host:port of the API and the console
	Auth           string        // AuthToken or AuthNone
	AdminAddr      string        // host:port of /metrics, /debug/vars, /healthz and /readyz, loopback only; "": off
	WebhookAddr    string        // host:port of webhooks and /healthz alone, which Addr then does not serve; "": Addr serves webhooks too
	AllowOrigins   []string      // origins of web pages that may call the API beside its own; each text may hold several
	DataDir        string        // of the private cluster, the secret key and the lock; "": the default of the account
	DatabaseURL    secret.String // postgres:// URL (it may hold a password); empty: a private cluster in DataDir
	Workers        int           // attempts that run at the same time
	Lease          time.Duration // for how long this process holds an attempt without renewing; the rescue waits as long
	Drain          time.Duration // how long live attempts may go on after SIGTERM; 0: they are handed back at once
	BootstrapToken secret.String // bearer token with all scopes, for a first start in a container; empty: none
	SecretKey      secret.String // 32 bytes as hex or base64, seals secrets at rest; empty: a key file in DataDir
	NewSecretKey   bool          // go on with another key than the one that sealed the database's secrets
	HTTPAllow      string        // addresses that agent services may have beside public ones: CIDR ranges with commas between
	History        time.Duration // age at which history is removed; 0: never
	RoutineRuns    time.Duration // age at which records of fires are removed; 0: never
	AgentUser      string        // account that all agents run as when rouse runs as root; "": one for each workspace
	AgentUIDs      string        // FIRST-LAST, user ids for those accounts; "": chosen
	AgentProcesses int           // most processes and threads of an attempt; 0: no limit
	AgentOOMScore  int           // oom_score_adj of agents; 0: as the server's
	AgentCgroups   bool          // attempts get a cgroup each where that can be had
	// AgentNewPrivileges lets setuid programs, such as sudo, raise an agent's rights.
	AgentNewPrivileges bool
	LogLevel           string // debug, info, warn or error
	LogFormat          string // text or json
}

// Names of the environment variables, as they stand in messages and in the command line's tags.
const (
	EnvAddr           = "ROUSE_ADDR"
	EnvAuth           = "ROUSE_AUTH"
	EnvAdminAddr      = "ROUSE_ADMIN_ADDR"
	EnvWebhookAddr    = "ROUSE_WEBHOOK_ADDR"
	EnvAllowOrigins   = "ROUSE_ALLOW_ORIGINS"
	EnvDataDir        = "ROUSE_DATA_DIR"
	EnvDatabaseURL    = "ROUSE_DATABASE_URL"
	EnvWorkers        = "ROUSE_WORKERS"
	EnvLease          = "ROUSE_LEASE"
	EnvDrain          = "ROUSE_DRAIN"
	EnvBootstrapToken = "ROUSE_BOOTSTRAP_TOKEN"
	EnvSecretKey      = "ROUSE_SECRET_KEY"
	EnvHTTPAllow      = "ROUSE_HTTP_ALLOW"
	EnvHistory        = "ROUSE_RETENTION"
	EnvRoutineRuns    = "ROUSE_RETENTION_ROUTINE_RUNS"
	EnvAgentUser      = "ROUSE_AGENT_USER"
	EnvAgentUIDs      = "ROUSE_AGENT_UIDS"
	EnvAgentProcesses = "ROUSE_AGENT_PROCESSES"
	EnvAgentOOMScore  = "ROUSE_AGENT_OOM_SCORE"
	EnvLogLevel       = "ROUSE_LOG_LEVEL"
	EnvLogFormat      = "ROUSE_LOG_FORMAT"
)

// What a caller of the API must show.
const (
	AuthToken = "token" // a bearer token, always
	AuthNone  = "none"  // nothing; for a loopback address alone
)

// Default is a process that needs no setting.
func Default() Config {
	return Config{
		Addr:      "127.0.0.1:8080",
		Auth:      AuthToken,
		Workers:   16,
		Lease:     20 * time.Second,
		Drain:     30 * time.Second,
		History:   domain.DefaultHistory,
		LogLevel:  "info",
		LogFormat: "text",

		AgentProcesses: 4096,
		AgentOOMScore:  500,
		AgentCgroups:   true,
	}
}

// UserIDs is the range of user ids for agents' accounts.
func (c Config) UserIDs() (account.Range, error) {
	if c.AgentUIDs == "" {
		return account.DefaultRange(), nil
	}
	return account.ParseRange(c.AgentUIDs)
}

// Retention is how old history may become.
func (c Config) Retention() domain.Retention {
	return domain.Retention{History: c.History, RoutineRuns: c.RoutineRuns}
}

// Level is LogLevel for slog; info when it is not a level, which Validate refuses.
func (c Config) Level() slog.Level {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		return slog.LevelInfo
	}
	return level
}

// AllowedAddresses are the ranges of HTTPAllow; a single address is a range of one.
func (c Config) AllowedAddresses() ([]netip.Prefix, error) {
	var out []netip.Prefix
	for _, text := range strings.FieldsFunc(c.HTTPAllow, func(r rune) bool { return r == ',' || r == ' ' }) {
		prefix, err := netip.ParsePrefix(text)
		if address, addressErr := netip.ParseAddr(text); addressErr == nil {
			prefix, err = netip.PrefixFrom(address.Unmap(), address.Unmap().BitLen()), nil
		}
		if err != nil {
			return nil, fmt.Errorf("%q is no range of addresses; write such as 127.0.0.0/8 or 10.1.2.3, with commas between", text)
		}
		out = append(out, prefix.Masked())
	}
	return out, nil
}
