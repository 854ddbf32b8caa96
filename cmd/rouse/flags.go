package main

import (
	"time"

	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/secret"
)

// placeFlags say where the database is, for every command. Flags of secrets are for a try: a command line is visible to everybody on the
// machine, the environment to the account alone. Those that nothing but a secret can be in are left out of the help.
type placeFlags struct {
	DataDir     string        `name:"data-dir" env:"ROUSE_DATA_DIR" placeholder:"FOLDER" help:"Data folder: private database, secret key, agents' work (default ./.rouse, for root /var/lib/rouse)."`
	DatabaseURL secret.String `name:"database-url" env:"ROUSE_DATABASE_URL" placeholder:"URL" help:"Use this PostgreSQL database instead of a private one; one with a password is better given in ROUSE_DATABASE_URL, since a command line is visible to everybody on the machine."`
	LogLevel    string        `name:"log-level" env:"ROUSE_LOG_LEVEL" default:"${log_level}" help:"debug, info, warn or error."`
	LogFormat   string        `name:"log-format" env:"ROUSE_LOG_FORMAT" default:"${log_format}" help:"text or json."`
}

func (f placeFlags) config() config.Config {
	c := config.Default()
	c.DataDir, c.DatabaseURL, c.LogLevel, c.LogFormat = f.DataDir, f.DatabaseURL, f.LogLevel, f.LogFormat
	return c
}

// retentionFlags say how old history may become.
type retentionFlags struct {
	Retention            time.Duration `name:"retention" env:"ROUSE_RETENTION" default:"${retention}" help:"Age at which runs, requests, the feed and webhook deliveries are removed; the newest 50 of each owner stay. 0: never."`
	RetentionRoutineRuns time.Duration `name:"retention-routine-runs" env:"ROUSE_RETENTION_ROUTINE_RUNS" default:"0s" help:"Age at which records of fires are removed. 0: never."`
}

func (f retentionFlags) apply(c config.Config) config.Config {
	c.History, c.RoutineRuns = f.Retention, f.RetentionRoutineRuns
	return c
}

// serveFlags are the settings of a server.
type serveFlags struct {
	Addr         string        `env:"ROUSE_ADDR" default:"${addr}" help:"Address of the API and the console; port 0 takes a free one."`
	Auth         string        `env:"ROUSE_AUTH" default:"${auth}" placeholder:"token|none" help:"What callers must show: a token, or none, which is for a loopback address alone and lets every process of this machine do everything, agents too."`
	AdminAddr    string        `name:"admin-addr" env:"ROUSE_ADMIN_ADDR" placeholder:"HOST:PORT" help:"Also serve /healthz and /readyz here, and for a token that may READ /metrics and /debug/vars, such as on 127.0.0.1:8081; loopback only."`
	WebhookAddr  string        `name:"webhook-addr" env:"ROUSE_WEBHOOK_ADDR" placeholder:"HOST:PORT" help:"Serve webhooks (and /healthz) here, and no longer at --addr, so that only they need to be reached from outside."`
	AllowOrigins []string      `name:"allow-origin" env:"ROUSE_ALLOW_ORIGINS" sep:"none" placeholder:"ORIGIN" help:"Origin of a web page that may call the API, such as https://app.example.com; may be given again for others. The variable takes several, with commas or spaces between."`
	Workers      int           `env:"ROUSE_WORKERS" default:"${workers}" help:"Runs at the same time."`
	Lease        time.Duration `env:"ROUSE_LEASE" default:"${lease}" help:"For how long this process holds a run without a sign of life."`
	Drain        time.Duration `env:"ROUSE_DRAIN" default:"${drain}" help:"How long live runs may go on at the end."`
	agentFlags
	HTTPAllow      string        `name:"http-allow" env:"ROUSE_HTTP_ALLOW" placeholder:"RANGES" help:"Addresses beside public ones that agent services (http executors) and notification channels may have, such as 127.0.0.0/8,10.1.0.0/16."`
	NewSecretKey   bool          `name:"new-secret-key" help:"Go on with another secret key than the one that sealed this database's secrets, which is lost: they cannot be opened any more. All servers must have ended."`
	BootstrapToken secret.String `name:"bootstrap-token" hidden:"" env:"ROUSE_BOOTSTRAP_TOKEN"`
	SecretKey      secret.String `name:"secret-key" hidden:"" env:"ROUSE_SECRET_KEY"`
}

func (f serveFlags) apply(c config.Config) config.Config {
	c.Addr, c.AdminAddr, c.Workers, c.Lease, c.Drain = f.Addr, f.AdminAddr, f.Workers, f.Lease, f.Drain
	c.WebhookAddr, c.AllowOrigins, c.HTTPAllow, c.Auth = f.WebhookAddr, f.AllowOrigins, f.HTTPAllow, f.Auth
	c.BootstrapToken, c.SecretKey, c.NewSecretKey = f.BootstrapToken, f.SecretKey, f.NewSecretKey
	return f.agentFlags.apply(c)
}

// accountFlags say who agents run as.
type accountFlags struct {
	AgentUser string `name:"agent-user" env:"ROUSE_AGENT_USER" placeholder:"NAME" help:"One account for the agents of all workspaces, which can then read each other's secrets. Without it, and when rouse is root, each workspace's agents have a user id of their own."`
	AgentUIDs string `name:"agent-uids" env:"ROUSE_AGENT_UIDS" placeholder:"FIRST-LAST" help:"User ids for the agents of workspaces when rouse is root, which nobody else has (default 70000-74095)."`
}

func (f accountFlags) apply(c config.Config) config.Config {
	c.AgentUser, c.AgentUIDs = f.AgentUser, f.AgentUIDs
	return c
}

// agentFlags say who agents run as, and what their processes may.
type agentFlags struct {
	accountFlags
	AgentProcesses     int  `name:"agent-processes" env:"ROUSE_AGENT_PROCESSES" default:"${agent_processes}" help:"Most processes and threads of an attempt or, without cgroups, of a workspace's account. 0: no limit."`
	AgentOOMScore      int  `name:"agent-oom-score" env:"ROUSE_AGENT_OOM_SCORE" default:"${agent_oom_score}" help:"oom_score_adj of agents: for want of memory the kernel ends them before the server and its database. 0: as the server's."`
	AgentNewPrivileges bool `name:"agent-new-privileges" env:"ROUSE_AGENT_NEW_PRIVILEGES" help:"Let sudo and other setuid programs raise an agent's rights."`
	AgentCgroups       bool `name:"agent-cgroups" env:"ROUSE_AGENT_CGROUPS" default:"true" negatable:"" help:"Give each attempt a cgroup where that can be had, so that nothing of it escapes its end."`
}

func (f agentFlags) apply(c config.Config) config.Config {
	c = f.accountFlags.apply(c)
	c.AgentProcesses, c.AgentOOMScore, c.AgentNewPrivileges, c.AgentCgroups = f.AgentProcesses, f.AgentOOMScore, f.AgentNewPrivileges, f.AgentCgroups
	return c
}
