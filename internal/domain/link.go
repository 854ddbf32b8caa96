package domain

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Bounds of a link.
const (
	maxLinkURL   = 2000 // bytes
	maxLinkTitle = 200  // characters
)

// checkLink says what is wrong with a link; "" when nothing is. People will open it, so that it must be an address of the web.
func (a Action) checkLink() string {
	u, err := url.Parse(a.URL)
	switch {
	case a.URL == "":
		return "url is missing"
	case len(a.URL) > maxLinkURL:
		return fmt.Sprintf("url has more than %d bytes", maxLinkURL)
	case err != nil || u.Scheme != "https" && u.Scheme != "http" || u.Hostname() == "" || strings.ContainsFunc(a.URL, func(c rune) bool { return c <= ' ' || c == 0x7f }):
		return "url is no http or https address"
	case u.User != nil:
		return "url holds a user or password, which everybody would see"
	case !slices.Contains(linkKindValues, a.Kind):
		return fmt.Sprintf("kind is %q, want one of %v", shorten(string(a.Kind)), linkKindValues)
	case utf8.RuneCountInString(a.Title) > maxLinkTitle:
		return fmt.Sprintf("title has more than %d characters", maxLinkTitle)
	case strings.ContainsFunc(a.Title, unicode.IsControl):
		return "title is more than one line"
	}
	return ""
}
