package domain

import (
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// AdvisoryCode is the stable name of something to think about, although the call did what it was asked to. The set may grow.
//
//rouse:enum
type AdvisoryCode string

// The codes.
const (
	AdvisorySecretIsCommon  AdvisoryCode = "SECRET_IS_COMMON"    // a word, number or setting that occurs in any text
	AdvisorySecretIsAddress AdvisoryCode = "SECRET_IS_ADDRESS"   // an address without a secret in it
	AdvisorySecretTooShort  AdvisoryCode = "SECRET_TOO_SHORT"    // not masked
	AdvisorySecretUnused    AdvisoryCode = "SECRET_UNUSED"       // a webhook has a secret and asks for no proof
	AdvisoryIdleSkip        AdvisoryCode = "IDLE_SKIP"           // scheduled fires end without a launch while the agent has no task
	AdvisoryNoExecutor      AdvisoryCode = "NO_EXECUTOR"         // nothing says how runs are executed
	AdvisoryNoBudget        AdvisoryCode = "NO_BUDGET"           // nothing limits what is spent without a person
	AdvisoryAssigneePaused  AdvisoryCode = "ASSIGNEE_PAUSED"     // the agent that is woken is paused or stopped
	AdvisoryAssigneeGone    AdvisoryCode = "ASSIGNEE_GONE"       // the agent that is woken was deleted
	AdvisoryNeverFires      AdvisoryCode = "NEVER_FIRES"         // a schedule has no slot left
	AdvisoryDeadlineShort   AdvisoryCode = "DEADLINE_BELOW_TICK" // a schedule's deadline is shorter than a tick
)

// MinMaskLength is the length in bytes from which a value is masked (see secret.MinMaskLength, where the reason is).
const MinMaskLength = 6

// SecretAdvice is what to think about before a value is stored as a secret; "" for nothing. A value that is no secret is better
// stored as none: it would be masked in each text that happens to hold it.
func SecretAdvice(value string) AdvisoryCode {
	value = strings.TrimSpace(value)
	switch {
	case value == "":
		return ""
	case len(value) < MinMaskLength:
		return AdvisorySecretTooShort
	case isCommon(value):
		return AdvisorySecretIsCommon
	case isOpenAddress(value):
		return AdvisorySecretIsAddress
	}
	return ""
}

// AdviceText says what a code means for a value, and what to do.
func AdviceText(code AdvisoryCode, name string) string {
	switch code {
	case AdvisorySecretIsCommon:
		return name + " is stored as a secret, and its value occurs in ordinary texts: it is masked as *** in each of them, titles and comments among them. Save it with secret: false if everybody may read it"
	case AdvisorySecretIsAddress:
		return name + " is stored as a secret, and its value is an address without one: it is masked as *** wherever an agent names that address. Save it with secret: false if everybody may read it"
	case AdvisorySecretTooShort:
		return name + " is stored as a secret, and its value is too short to be masked: what the agent prints of it is kept as it is. Choose a longer secret, or save it with secret: false"
	}
	return ""
}

// commonValues are values of settings that many texts hold.
var commonValues = strings.Fields(`
true false yes no on off none null nil undefined default auto always never enabled disabled
production prod development develop dev staging stage testing test preview local localhost sandbox demo ci
debug verbose trace info notice warn warning error fatal silent quiet
main master trunk head origin release latest stable beta alpha nightly canary
admin administrator root user guest postgres mysql redis agent worker server client
json yaml text plain html markdown utf-8 utf8 utc gmt en de fr es us eu english german
bash zsh sh fish vim nano emacs less cat
http https tcp udp file
node python ruby golang linux darwin windows docker github gitlab
password secret token changeme hello world example
`)

// commonForms are forms of settings: numbers and sizes, versions, locales, media types, time zones, colours of terminals.
var commonForms = regexp.MustCompile(`^(?:[+-]?[0-9]{1,9}(?:\.[0-9]{1,9})?(?:ms|s|m|h|d|k|kb|mb|gb|%)?` +
	`|v?[0-9]{1,4}(?:\.[0-9]{1,6}){1,3}` +
	`|[a-z]{2,3}_[A-Z]{2}(?:\.[A-Za-z0-9-]+)?|C\.UTF-8` +
	`|(?:application|audio|font|image|model|multipart|text|video)/[a-z0-9.+*-]+(?:;\s*charset=[A-Za-z0-9-]+)?` +
	`|(?:Africa|America|Antarctica|Asia|Atlantic|Australia|Europe|Indian|Pacific|Etc)/[A-Za-z_/+-]+` +
	`|xterm(?:-[0-9a-z]+)?|screen(?:-[0-9a-z]+)?|dumb)$`)

func isCommon(value string) bool {
	return slices.Contains(commonValues, strings.ToLower(value)) || commonForms.MatchString(value)
}

// isOpenAddress says whether a value is a URL, a host with a port, or a path, and no part of it looks like a secret.
func isOpenAddress(value string) bool {
	if strings.ContainsFunc(value, unicode.IsSpace) {
		return false
	}
	if hostAndPort.MatchString(value) || (strings.HasPrefix(value, "/") || strings.HasPrefix(value, "~/")) && !looksSecret(value) {
		return true
	}
	u, err := url.Parse(value)
	if err != nil || u.Scheme == "" || u.Host == "" && u.Scheme != "file" {
		return false
	}
	if _, has := u.User.Password(); has || u.User.Username() != "" && looksSecret(u.User.Username()) {
		return false
	}
	return !looksSecret(u.Path) && !looksSecret(u.RawQuery) && !looksSecret(u.Fragment) && !looksSecret(u.Hostname())
}

var hostAndPort = regexp.MustCompile(`^(?:localhost|[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)+):[0-9]{1,5}$`)

// looksSecret says whether a part of an address is one that nobody could guess: sixteen characters or more in one piece, digits
// and letters among them, or a parameter that is named as a secret.
func looksSecret(text string) bool {
	if namedSecret.MatchString(text) {
		return true
	}
	pieces := strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune("/.?&=:;,@#", r) })
	return slices.ContainsFunc(pieces, func(piece string) bool {
		return len(piece) >= 16 && strings.ContainsFunc(piece, unicode.IsDigit) && strings.ContainsFunc(piece, unicode.IsLetter)
	})
}

var namedSecret = regexp.MustCompile(`(?i)\b(?:api_?key|key|token|secret|sig|signature|password|passwd|pwd|auth|code)=`)
