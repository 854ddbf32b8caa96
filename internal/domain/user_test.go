package domain

import (
	"strings"
	"testing"
)

func TestWhatNamesAPerson(t *testing.T) {
	for name, c := range map[string]struct {
		id   string
		want UserErrorCode
	}{
		"a name":                          {"ann", ""},
		"nobody":                          {"", ""},
		"an address":                      {"ann@example.com", ""},
		"a word that begins like a token": {"token", ""},
		"150 characters":                  {strings.Repeat("é", 150), ""},
		"one more":                        {strings.Repeat("é", 151), UserErrorCodeTooLong},
		"two lines":                       {"a\nb", UserErrorCodeInvalid},
		"a token's id":                    {"tok_01k00000000000000000000000", UserErrorCodeInvalid},
		"the beginning of a token's id":   {"tok_", UserErrorCodeInvalid},
		"a token's id in capitals":        {"TOK_01K00000000000000000000000", UserErrorCodeInvalid},
		"a text that mentions one in it":  {"ann (tok_1)", ""},
	} {
		got := CheckUserID(c.id, "userId")
		if len(got) > 1 || (len(got) == 0) != (c.want == "") || len(got) == 1 && (got[0].Code != c.want || got[0].Field[0] != "userId") {
			t.Errorf("%s: %v, want %q", name, got, c.want)
		}
	}
}
