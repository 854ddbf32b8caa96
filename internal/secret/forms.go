package secret

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode/utf16"
	"unicode/utf8"
)

// forms are the spellings in which a value may turn up: itself, its lines, and the common encodings of each.
func forms(value string) []string {
	all := encodings(value)
	if scheme, credentials, found := strings.Cut(value, " "); found && isAuthScheme(scheme) && len(credentials) >= MinMaskLength {
		all = append(all, encodings(credentials)...)
	}
	for line := range strings.Lines(value) {
		if line = strings.TrimSpace(line); line != value && len(line) >= MinMaskLength {
			all = append(all, encodings(line)...)
		}
	}
	return all
}

// isAuthScheme says whether a word begins the value of an Authorization header, whose other part is the secret by itself.
func isAuthScheme(word string) bool {
	return slices.ContainsFunc([]string{"Bearer", "Basic", "Token", "ApiKey"}, func(scheme string) bool { return strings.EqualFold(scheme, word) })
}

func encodings(value string) []string {
	all := append([]string{value}, jsonForms(value)...)
	for _, escaped := range []string{url.QueryEscape(value), url.PathEscape(value), percentEncoded(value)} {
		all = append(all, escaped, lowerEscapes(escaped))
	}
	for offset := range 3 {
		for _, encoding := range []*base64.Encoding{base64.RawStdEncoding, base64.RawURLEncoding} {
			if core := base64Core(value, offset, encoding); len(core) >= MinMaskLength {
				all = append(all, core)
			}
		}
	}
	return all
}

// base64Core is the part of the value's base64 that is the same whatever comes before (offset bytes, modulo 3) and after it. The one
// character at each end that mixes in other bytes is left out; it tells less than a byte.
func base64Core(value string, offset int, encoding *base64.Encoding) string {
	encoded := encoding.EncodeToString(append(make([]byte, offset), value...))
	first := (offset*8 + 5) / 6
	last := (offset + len(value)) * 8 / 6
	return encoded[first:last]
}

// jsonForms are the ways in which common programs write the value within a JSON string: with or without escapes for HTML, for everything
// that is not ASCII (Python's default, in small letters; others use capitals) and for the slash (PHP's default).
func jsonForms(value string) []string {
	var all []string
	for _, escapeHTML := range []bool{true, false} {
		escaped := jsonEscaped(value, escapeHTML)
		for _, form := range []string{escaped, asciiOnly(escaped, `\u%04x`), asciiOnly(escaped, `\u%04X`)} {
			all = append(all, form, strings.ReplaceAll(form, "/", `\/`))
		}
	}
	return all
}

// asciiOnly escapes what is not ASCII, each UTF-16 unit by format.
func asciiOnly(text, format string) string {
	var out strings.Builder
	for _, r := range text {
		if r < utf8.RuneSelf {
			out.WriteRune(r)
			continue
		}
		for _, unit := range utf16.Encode([]rune{r}) {
			fmt.Fprintf(&out, format, unit)
		}
	}
	return out.String()
}

func jsonEscaped(value string, escapeHTML bool) string {
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(escapeHTML)
	if err := encoder.Encode(value); err != nil {
		return value // a string always encodes
	}
	return strings.TrimSuffix(strings.TrimPrefix(strings.TrimSpace(out.String()), `"`), `"`)
}

// percentEncoded is what JavaScript's encodeURIComponent and most other languages make: a space is %20, everything reserved is escaped.
func percentEncoded(value string) string {
	return strings.ReplaceAll(url.QueryEscape(value), "+", "%20")
}

var escapePattern = regexp.MustCompile(`%[0-9A-F]{2}`)

// lowerEscapes writes percent escapes with small letters, as some programs do.
func lowerEscapes(escaped string) string {
	return escapePattern.ReplaceAllStringFunc(escaped, strings.ToLower)
}
