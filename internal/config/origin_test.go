package config_test

import (
	"slices"
	"strings"
	"testing"

	"rouse.dev/rouse/internal/config"
)

func TestOriginsAreReadAsBrowsersWriteThem(t *testing.T) {
	for name, test := range map[string]struct{ given, want []string }{
		"none":                                  {nil, nil},
		"one":                                   {[]string{"https://app.example.com"}, []string{"https://app.example.com"}},
		"several, by a flag that is repeated":   {[]string{"http://localhost:5173", "http://127.0.0.1:5173"}, []string{"http://localhost:5173", "http://127.0.0.1:5173"}},
		"several in a variable, commas between": {[]string{"https://a.example,https://b.example"}, []string{"https://a.example", "https://b.example"}},
		"several in a variable, spaces between": {[]string{" https://a.example  https://b.example,\thttps://c.example\n"}, []string{"https://a.example", "https://b.example", "https://c.example"}},
		"capitals are written small":            {[]string{"HTTPS://App.Example.COM"}, []string{"https://app.example.com"}},
		"the scheme's own port is left out":     {[]string{"https://a.example:443", "http://a.example:80", "http://a.example:443"}, []string{"https://a.example", "http://a.example", "http://a.example:443"}},
		"the same one twice is one":             {[]string{"https://a.example", "https://A.example:443"}, []string{"https://a.example"}},
		"an IPv6 address":                       {[]string{"http://[::1]:3000"}, []string{"http://[::1]:3000"}},
		"a desktop shell":                       {[]string{"tauri://localhost"}, []string{"tauri://localhost"}},
	} {
		if got, err := (config.Config{AllowOrigins: test.given}).Origins(); err != nil || !slices.Equal(got, test.want) {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}

func TestWhatNoBrowserSendsIsNoOrigin(t *testing.T) {
	for name, test := range map[string]struct{ given, want string }{
		"any origin":              {"*", "would let in any page"},
		"any host of a domain":    {"https://*.example.com", "would let in any page"},
		"a name alone":            {"app.example.com", "is no origin"},
		"a name with a port":      {"localhost:5173", "is no origin"},
		"no host":                 {"https://", "is no origin"},
		"the origin of nobody":    {"null", "is no origin"},
		"a file":                  {"file:///home", "is no origin"},
		"a slash at the end":      {"https://app.example.com/", "without a slash"},
		"a path":                  {"https://app.example.com/app", "goes on after the host"},
		"a query":                 {"https://app.example.com?x", "goes on after the host"},
		"a mark without a query":  {"https://app.example.com?", "goes on after the host"},
		"a fragment":              {"https://app.example.com#", "goes on after the host"},
		"an account":              {"https://me@app.example.com", "holds an account"},
		"letters beyond ASCII":    {"https://bücher.example", "xn--"},
		"port 0":                  {"http://localhost:0", "no port from 1 to 65535"},
		"a port that is too high": {"http://localhost:99999", "no port from 1 to 65535"},
		"a port with zeros":       {"http://localhost:080", "no port from 1 to 65535"},
		"no port after a colon":   {"http://localhost:", "lacks the port"},
	} {
		got, err := (config.Config{AllowOrigins: []string{test.given}}).Origins()
		if err == nil || len(got) > 0 || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), "http://localhost:5173") {
			t.Errorf("%s: got %q, %v", name, got, err)
		}
	}
}
