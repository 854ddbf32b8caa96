package config_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/secret"
)

func TestTheDefaultIsValidAndLoopback(t *testing.T) {
	c := config.Default()
	if err := c.Validate(); err != nil {
		t.Errorf("the default is refused: %v", err)
	}
	if !c.IsLoopback() {
		t.Errorf("%s is not loopback", c.Addr)
	}
}

func TestSettings(t *testing.T) {
	key := strings.Repeat("0f", 31) + "0e"
	tests := []struct {
		name string
		set  func(*config.Config)
		want string // part of the error; "": accepted
	}{
		{"a free port", func(c *config.Config) { c.Addr = "127.0.0.1:0" }, ""},
		{"all interfaces", func(c *config.Config) { c.Addr = ":8080" }, ""},
		{"IPv6", func(c *config.Config) { c.Addr = "[::1]:8080" }, ""},
		{"an address without a port", func(c *config.Config) { c.Addr = "localhost" }, "--addr (ROUSE_ADDR): \"localhost\" is not an address"},
		{"no token asked on loopback", func(c *config.Config) { c.Auth = config.AuthNone }, ""},
		{"no token asked where others reach it", func(c *config.Config) { c.Auth, c.Addr = config.AuthNone, "0.0.0.0:8080" }, "--auth (ROUSE_AUTH): none is for this machine alone"},
		{"no token asked under a name", func(c *config.Config) { c.Auth, c.Addr = config.AuthNone, "rouse.example:8080" }, "none is for this machine alone"},
		{"another way to prove oneself", func(c *config.Config) { c.Auth = "basic" }, "\"basic\" is not one of token, none"},
		{"a port that is none", func(c *config.Config) { c.Addr = "localhost:65536" }, "0 to 65535"},
		{"a port by name", func(c *config.Config) { c.Addr = "localhost:http" }, "0 to 65535"},
		{"a port with zeros in front", func(c *config.Config) { c.Addr = "localhost:08080" }, "write 8080"},
		{"no admin listener", func(c *config.Config) { c.AdminAddr = "" }, ""},
		{"an admin listener for everybody", func(c *config.Config) { c.AdminAddr = "0.0.0.0:8081" }, "--admin-addr (ROUSE_ADMIN_ADDR): \"0.0.0.0:8081\" is reachable"},
		{"an admin listener on all interfaces", func(c *config.Config) { c.AdminAddr = ":8081" }, "reachable from other machines"},
		{"webhooks on an address of their own", func(c *config.Config) { c.WebhookAddr = "0.0.0.0:8082" }, ""},
		{"webhooks on an address without a port", func(c *config.Config) { c.WebhookAddr = "0.0.0.0" }, "--webhook-addr (ROUSE_WEBHOOK_ADDR): \"0.0.0.0\" is not an address"},
		{"an origin that is none", func(c *config.Config) { c.AllowOrigins = []string{"http://localhost:5173", "app.example.com"} }, "--allow-origin (ROUSE_ALLOW_ORIGINS): \"app.example.com\" is no origin"},
		{"origins of a server that asks for no token", func(c *config.Config) { c.Auth, c.AllowOrigins = config.AuthNone, []string{"http://localhost:5173"} }, "let the page send a token"},
		{"a database", func(c *config.Config) { c.DatabaseURL = secret.NewString("postgres://u:p@db/rouse") }, ""},
		{"a database of another kind", func(c *config.Config) { c.DatabaseURL = secret.NewString("mysql://u:hunter2@db/rouse") }, "ROUSE_DATABASE_URL): not a PostgreSQL URL"},
		{"a malformed database URL", func(c *config.Config) { c.DatabaseURL = secret.NewString("postgres://u:hunter2%zz@db/rouse") }, "percent-encoded"},
		{"no worker", func(c *config.Config) { c.Workers = 0 }, "--workers (ROUSE_WORKERS): 0 is out of range; use 1 to 1000"},
		{"a lease too short to renew", func(c *config.Config) { c.Lease = time.Second }, "1s is out of range; use 5s to 10m0s"},
		{"no drain", func(c *config.Config) { c.Drain = 0 }, ""},
		{"a negative drain", func(c *config.Config) { c.Drain = -1 }, "--drain"},
		{"a bootstrap token", func(c *config.Config) { c.BootstrapToken = secret.NewString(strings.Repeat("t", 24)) }, ""},
		{"a bootstrap token that can be guessed", func(c *config.Config) { c.BootstrapToken = secret.NewString("hunter2") }, "ROUSE_BOOTSTRAP_TOKEN: it has 7 characters"},
		{"a bootstrap token with a line end", func(c *config.Config) { c.BootstrapToken = secret.NewString(strings.Repeat("hunter2", 4) + "\n") }, "HTTP header"},
		{"a secret key", func(c *config.Config) { c.SecretKey = secret.NewString(key) }, ""},
		{"a secret key that is none", func(c *config.Config) { c.SecretKey = secret.NewString("hunter2") }, "ROUSE_SECRET_KEY: want 32 bytes"},
		{"a level", func(c *config.Config) { c.LogLevel = "debug" }, ""},
		{"a level that is none", func(c *config.Config) { c.LogLevel = "loud" }, `"loud" is not one of debug, info, warn, error`},
		{"a format that is none", func(c *config.Config) { c.LogFormat = "xml" }, `"xml" is not one of text, json`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			c := config.Default()
			tt.set(&c)
			err := c.Validate()
			if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Validate() = %v, want %q", err, tt.want)
			}
			if err != nil && strings.Contains(err.Error(), "hunter2") {
				t.Errorf("the error tells a secret: %v", err)
			}
		})
	}
}

func TestEveryProblemIsTold(t *testing.T) {
	c := config.Config{}
	err := c.Validate()
	if err == nil || strings.Count(err.Error(), "\n") != 5 {
		t.Errorf("an empty config has these problems:\n%v", err)
	}
}

func TestAllowedAddressesAreRangesOrSingleOnes(t *testing.T) {
	c := config.Config{HTTPAllow: "127.0.0.1/8, 10.1.2.3,fd00::/8"}
	got, err := c.AllowedAddresses()
	if err != nil || fmt.Sprint(got) != "[127.0.0.0/8 10.1.2.3/32 fd00::/8]" {
		t.Errorf("got %v, %v", got, err)
	}
	if _, err := (config.Config{HTTPAllow: "localhost"}).AllowedAddresses(); err == nil || !strings.Contains(err.Error(), "127.0.0.0/8") {
		t.Errorf("got %v", err)
	}
}

func TestLoopback(t *testing.T) {
	for addr, want := range map[string]bool{"127.0.0.1:1": true, "127.9.9.9:1": true, "[::1]:1": true, "localhost:1": true,
		"[::ffff:127.0.0.1]:1": true, ":1": false, "0.0.0.0:1": false, "[::]:1": false, "10.0.0.1:1": false, "example.com:1": false, "nonsense": false} {
		if got := (config.Config{Addr: addr}).IsLoopback(); got != want {
			t.Errorf("IsLoopback(%q) = %t", addr, got)
		}
	}
}

func TestSecretsDoNotPrint(t *testing.T) {
	c := config.Default()
	c.DatabaseURL, c.BootstrapToken, c.SecretKey = secret.NewString("hunter2"), secret.NewString("hunter2"), secret.NewString("hunter2")
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("starting", "config", c)
	slog.New(slog.NewTextHandler(&log, nil)).Info("starting", "config", c)
	encoded, err := json.Marshal(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{fmt.Sprint(c), fmt.Sprintf("%v %+v %#v %s", c, c, c, &c.SecretKey), log.String(), string(encoded)} {
		if strings.Contains(text, "hunter2") {
			t.Errorf("a secret was printed: %s", text)
		}
	}
}

func TestLevel(t *testing.T) {
	for text, want := range map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError, "": slog.LevelInfo} {
		if got := (config.Config{LogLevel: text}).Level(); got != want {
			t.Errorf("Level of %q = %s", text, got)
		}
	}
}
