package edge

import (
	"strings"
	"testing"
)

func TestTheTokenOfAnAuthorizationHeader(t *testing.T) {
	for name, test := range map[string]struct {
		header, want string
		refused      bool
	}{
		"a token":                     {"Bearer abc", "abc", false},
		"the scheme in small letters": {"bearer abc", "abc", false},
		"several spaces":              {"BEARER   abc  ", "abc", false},
		"nothing":                     {"", "", false},
		"blanks":                      {" \t ", "", true},
		"the scheme alone":            {"Bearer", "", true},
		"the scheme and a space":      {"Bearer ", "", true},
		"the token alone":             {"abc", "", true},
		"another scheme":              {"Basic abc", "", true},
		"a tab after the scheme":      {"Bearer\tabc", "", true},
	} {
		token, err := bearer(test.header)
		if token != test.want || (err != nil) != test.refused {
			t.Errorf("%s: %q, %v", name, token, err)
		}
	}
}

func FuzzBearer(f *testing.F) {
	for _, header := range []string{"", "Bearer", "Bearer ", "bearer abc", "Bearer abc x", "BeArer a", "Bearer\x00abc"} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		token, err := bearer(header)
		switch {
		case err != nil && (token != "" || strings.Contains(err.Error(), header) && len(header) > 20):
			t.Fatalf("%q gave %q and %v", header, token, err)
		case err == nil && (token == "") != (header == ""):
			t.Fatalf("%q gave %q", header, token)
		case !strings.HasSuffix(strings.TrimSpace(header), token):
			t.Fatalf("%q gave %q", header, token)
		}
	})
}
