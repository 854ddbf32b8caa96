// Package workcopy holds the rules of working copies: which repositories there may be, how folders and branches are named, when a
// working copy is removed and when it is kept for the work in it, and what git's errors mean.
package workcopy

import (
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Repository is where working copies come from: exactly one member is set.
type Repository struct {
	Path    string // absolute, on the machine that the agent runs on
	Address string
}

// longest is the most bytes of a repository or a ref.
const (
	longestRepository = 4096
	longestRef        = 250
)

// schemes are those of addresses that git reaches without running a program that the address names.
var schemes = []string{"https", "http", "ssh", "git"}

// scp is an address as ssh programs write it: host:path, or user@host:path. No part begins with a dash, because ssh would read it as an option.
var scp = regexp.MustCompile(`^(?:[A-Za-z0-9_.][A-Za-z0-9_.-]*@)?[A-Za-z0-9][A-Za-z0-9.-]*:[A-Za-z0-9_.~/][^\s:]*$`)

// ParseRepository reads a repository. problem says what is wrong with it, and is "" when nothing is.
func ParseRepository(text string) (r Repository, problem string) {
	switch {
	case text == "":
		return r, "name the repository: an absolute path, or an address such as https://example.com/team/app.git"
	case len(text) > longestRepository:
		return r, "must be at most 4096 bytes"
	case strings.ContainsFunc(text, func(c rune) bool { return c < ' ' || c == 0x7f }):
		return r, "must be one line without control characters"
	case strings.HasPrefix(text, "/"):
		if text != path.Clean(text) {
			return r, "must be a path without . and .. and doubled slashes, such as " + path.Clean(text)
		}
		return Repository{Path: text}, ""
	case strings.Contains(text, "::"):
		return r, "must not name a transport helper (::), because git would run it as a program"
	case strings.Contains(text, "://"):
		if problem := checkURL(text); problem != "" {
			return r, problem
		}
	case !scp.MatchString(text):
		return r, "must be an absolute path, or an address such as https://example.com/team/app.git or git@example.com:team/app.git"
	}
	return Repository{Address: text}, ""
}

func checkURL(text string) string {
	u, err := url.Parse(text)
	_, hasPassword := "", false
	if err == nil && u.User != nil {
		_, hasPassword = u.User.Password()
	}
	switch {
	case err == nil && !slices.Contains(schemes, u.Scheme):
		return "must begin with https, http, ssh or git; a repository on the same machine is given as an absolute path"
	case err != nil || u.Hostname() == "" || strings.HasPrefix(u.Hostname(), "-"):
		return "must be an address such as https://example.com/team/app.git"
	case hasPassword || u.User != nil && strings.HasPrefix(u.Scheme, "http"):
		return "must hold no user and password, which everybody would see: log git in as the agents' account (rouse agent-shell)"
	case u.User != nil && strings.HasPrefix(u.User.Username(), "-"):
		return "must not have a user that begins with a dash"
	case u.RawQuery != "" || u.Fragment != "":
		return "must hold neither ? nor #"
	case strings.Trim(u.Path, "/") == "":
		return "must have a path, such as https://example.com/team/app.git"
	}
	return ""
}

// CheckRef says what is wrong with the name of a branch, tag or commit; "" when nothing is. No name may be an option of git, or ask
// git to look at more than one commit.
func CheckRef(ref string) string {
	const want = "must be the name of a branch, a tag or a commit, such as main"
	switch {
	case ref == "":
		return ""
	case len(ref) > longestRef:
		return "must be at most 250 bytes"
	case strings.HasPrefix(ref, "-"), strings.HasPrefix(ref, "/"), strings.HasSuffix(ref, "/"), strings.HasSuffix(ref, "."), strings.HasSuffix(ref, ".lock"),
		strings.Contains(ref, ".."), strings.Contains(ref, "//"), strings.Contains(ref, "@{"), strings.Contains(ref, "/."), strings.HasPrefix(ref, "."):
		return want
	case strings.ContainsFunc(ref, func(c rune) bool { return c <= ' ' || c == 0x7f || strings.ContainsRune(`~^:?*[\`, c) }):
		return want
	}
	return ""
}
