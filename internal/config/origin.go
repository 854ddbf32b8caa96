package config

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// defaultPorts are left out of an Origin header by browsers.
var defaultPorts = map[string]string{"http": "80", "https": "443"}

// Origins are the origins of AllowOrigins as browsers write them, each once. One text may hold several, with commas or
// spaces between.
func (c Config) Origins() ([]string, error) {
	var out []string
	var problems error
	for _, list := range c.AllowOrigins {
		for _, text := range strings.FieldsFunc(list, func(r rune) bool { return r == ',' || r == ' ' || r == '\t' || r == '\n' || r == '\r' }) {
			origin, err := parseOrigin(text)
			problems = errors.Join(problems, err)
			if err == nil && !slices.Contains(out, origin) {
				out = append(out, origin)
			}
		}
	}
	return out, problems
}

// parseOrigin reads scheme://host[:port]. Whatever a browser would never send is refused, since it would allow nobody and
// nobody would learn why.
func parseOrigin(text string) (string, error) {
	wrong := func(why string) error {
		return fmt.Errorf("%q %s; write each origin as a browser sends it, such as https://app.example.com or http://localhost:5173", text, why)
	}
	if text == "*" || strings.Contains(text, "*") {
		return "", wrong("would let in any page: origins are named one by one")
	}
	scheme, rest, found := strings.Cut(strings.ToLower(text), "://")
	if !found || rest == "" {
		return "", wrong("is no origin")
	}
	u, err := url.Parse(scheme + "://" + rest)
	switch {
	case err != nil || u.Hostname() == "" || scheme == "file":
		return "", wrong("is no origin")
	case u.User != nil:
		return "", wrong("holds an account, which is no part of an origin")
	case u.Path != "" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" || strings.HasSuffix(rest, "#"):
		return "", wrong("goes on after the host, and an origin ends there (also without a slash)")
	case strings.ContainsFunc(u.Host, func(r rune) bool { return r <= ' ' || r > '~' }):
		return "", wrong("has letters beyond ASCII, which browsers write as xn--")
	}
	port := u.Port()
	if strings.HasSuffix(u.Host, ":") {
		return "", wrong("lacks the port after its colon")
	}
	if n, err := strconv.ParseUint(port, 10, 16); port != "" && (err != nil || n == 0 || strconv.FormatUint(n, 10) != port) {
		return "", wrong("has no port from 1 to 65535")
	}
	host := u.Host
	if port != "" && port == defaultPorts[scheme] {
		host = strings.TrimSuffix(host, ":"+port)
	}
	return scheme + "://" + host, nil
}
