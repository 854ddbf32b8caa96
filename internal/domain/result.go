package domain

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// maxSummary is the most bytes of a run's summary: it lies on the run's row, of which lists read many. The result keeps
// the whole.
const maxSummary = 8 << 10

// ResultSummary is the text of a result object (SPEC S7.5): its summary, else result, else message; "" when it has none.
func ResultSummary(object map[string]any) string {
	for _, name := range []string{"summary", "result", "message"} {
		if text, ok := object[name].(string); ok && text != "" {
			return CutText(text, maxSummary, " [… cut; the result has all of it]")
		}
	}
	return ""
}

// ResultText is ResultSummary, else the error of a result object.
func ResultText(object map[string]any) string {
	if text := ResultSummary(object); text != "" {
		return text
	}
	text, _ := object["error"].(string)
	return CutText(text, maxSummary, " [… cut]")
}

// MaxSessionID is the most bytes of a session's id.
const MaxSessionID = 256

// SessionIDFits says whether a session's id can be stored and given to a command line.
func SessionIDFits(id string) bool {
	return id != "" && len(id) <= MaxSessionID && utf8.ValidString(id) && !strings.ContainsFunc(id, func(r rune) bool { return !unicode.IsPrint(r) })
}

// ResultSession is the session that an agent names in its result, so that it can be resumed; "" when it names none.
func ResultSession(object map[string]any) string {
	id, _ := object["session_id"].(string)
	if !SessionIDFits(id) {
		return ""
	}
	return id
}

// ReportedError is the error that a result reports as its outcome, or "". That is an error without summary, result or
// message beside it, or anything marked "is_error": true, as some agent command lines write it.
func ReportedError(object map[string]any) string {
	text, isText := object["error"].(string)
	if !isText && object["error"] != nil {
		text = fmt.Sprint(object["error"])
		if raw, err := json.Marshal(object["error"]); err == nil {
			text = string(raw)
		}
	}
	if object["is_error"] == true {
		for _, said := range []any{text, object["result"], object["message"], object["summary"], object["subtype"]} {
			if said, _ := said.(string); said != "" {
				return said
			}
		}
		return "the agent gave no reason"
	}
	for _, name := range []string{"summary", "result", "message"} {
		if object[name] != nil && object[name] != "" {
			return ""
		}
	}
	return text
}

// CleanResult makes every string of a result storable and masks it, the names of members too, and masks a number whose digits hold a
// secret (SPEC S7.6). It changes nothing in place.
func CleanResult(v any, mask func(string) string) any {
	switch v := v.(type) {
	case string:
		return mask(StorableText(v))
	case json.Number, float64, int64, int:
		text := fmt.Sprint(v)
		if written, err := json.Marshal(v); err == nil {
			text = string(written)
		}
		for _, spelled := range []string{text, plainNumber(text)} {
			if masked := mask(spelled); masked != spelled {
				return masked
			}
		}
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, member := range v {
			out[mask(StorableText(name))] = CleanResult(member, mask)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = CleanResult(v[i], mask)
		}
		return out
	}
	return v
}

// maxPlainDigits bounds what plainNumber writes out: no secret is a longer number.
const maxPlainDigits = 400

// plainNumber is a number of JSON without an exponent, as PostgreSQL stores it; a very large or small one stays as it is.
func plainNumber(text string) string {
	mantissa, exponent, found := strings.Cut(strings.ToLower(text), "e")
	shift, err := strconv.Atoi(exponent)
	if !found || err != nil || max(shift, -shift)+len(mantissa) > maxPlainDigits {
		return text
	}
	n, ok := new(big.Rat).SetString(text)
	if !ok {
		return text
	}
	decimals, _ := n.FloatPrec()
	return n.FloatString(decimals)
}
