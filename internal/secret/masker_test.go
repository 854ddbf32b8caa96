package secret

import (
	"encoding/base64"
	"encoding/json"
	"net/url"
	"strings"
	"testing"
)

func TestMask(t *testing.T) { // C229
	const key = "p@ss/word+\"quoted\" & more"
	quoted, err := json.Marshal(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		secrets    []string
		text, want string
	}{
		"nothing to mask":                     {[]string{"sk-123456"}, "hello", "hello"},
		"no secrets":                          {nil, "hello", "hello"},
		"the whole text":                      {[]string{"sk-123456"}, "sk-123456", "***"},
		"in the middle":                       {[]string{"sk-123456"}, "a sk-123456 b", "a *** b"},
		"twice":                               {[]string{"sk-123456"}, "sk-123456 sk-123456", "*** ***"},
		"side by side":                        {[]string{"sk-123456"}, "sk-123456sk-123456!", "***!"},
		"at the end":                          {[]string{"sk-123456"}, "é sk-123456", "é ***"},
		"all but the last letter":             {[]string{"sk-123456"}, "sk-12345", "sk-12345"},
		"a secret that holds another":         {[]string{"secret", "secret-and-longer"}, "x secret-and-longer y", "x *** y"},
		"secrets that overlap":                {[]string{"abcdefgh", "efghijkl"}, "<abcdefghijkl>", "<***>"},
		"a short one begins before a longer":  {[]string{"abcdef", "cdefghijklmnop"}, "<abcdefghijklmnop>", "<***>"},
		"a secret that overlaps itself":       {[]string{"ababab"}, "<abababab>", "<***>"},
		"a letter is too short":               {[]string{"a"}, "banana", "banana"},
		"five bytes are too short":            {[]string{"12345"}, "12345", "12345"},
		"six bytes are long enough":           {[]string{"123456"}, "1234567", "***7"},
		"an empty value":                      {[]string{""}, "banana", "banana"},
		"quoted in JSON":                      {[]string{key}, `{"error":` + string(quoted) + `}`, `{"error":"***"}`},
		"in JSON of ASCII alone, as Python":   {[]string{"pass/wörd😀\"x"}, `{"a":"pass/w\u00f6rd\ud83d\ude00\"x"}`, `{"a":"***"}`},
		"in JSON of ASCII alone, as PHP":      {[]string{"pass/wörd😀\"x"}, `{"a":"pass\/w\u00f6rd\ud83d\ude00\"x"}`, `{"a":"***"}`},
		"in JSON of ASCII with capitals":      {[]string{"pass/wörd"}, `{"a":"pass/w\u00F6rd"}`, `{"a":"***"}`},
		"in JSON with escaped slashes":        {[]string{"pass/word"}, `{"a":"pass\/word"}`, `{"a":"***"}`},
		"in a query":                          {[]string{key}, "GET /?k=" + url.QueryEscape(key) + "&x=1", "GET /?k=***&x=1"},
		"in a path":                           {[]string{key}, "GET /" + url.PathEscape(key), "GET /***"},
		"as JavaScript escapes it":            {[]string{key}, "k=" + strings.ReplaceAll(url.QueryEscape(key), "+", "%20"), "k=***"},
		"escaped with small letters":          {[]string{"a/b/c/d"}, "k=a%2fb%2fc%2fd", "k=***"},
		"base64":                              {[]string{"hunter"}, "x aHVudGVy y", "x *** y"},
		"a line of a key of several lines":    {[]string{"-----BEGIN KEY-----\nMIIEvQIBADAN\n-----END KEY-----\n"}, "got MIIEvQIBADAN", "got ***"},
		"the lines of such a key, in JSON":    {[]string{"first line\nsecond line"}, `"first line\nsecond line"`, `"***"`},
		"a text that is not UTF-8":            {[]string{"sk-123456"}, "\xff sk-123456 \xfe", "\xff *** \xfe"},
		"a secret that is not UTF-8":          {[]string{"\xff\xfe\xfd\xfc\xfb\xfa"}, "x\xff\xfe\xfd\xfc\xfb\xfay", "x***y"},
		"in JSON without escapes for HTML":    {[]string{key}, `{"error":"p@ss/word+\"quoted\" & more"}`, `{"error":"***"}`},
		"a control character beyond ASCII":    {[]string{"pass\u0080word"}, `{"a":"pass\u0080word"}`, `{"a":"***"}`},
		"credentials of six bytes":            {[]string{"Bearer abcdef"}, "got abcdef", "got ***"},
		"credentials of five bytes":           {[]string{"Bearer abcde"}, "got abcde", "got abcde"},
		"a line of six bytes":                 {[]string{"123456\nabcdefgh"}, "got 123456", "got ***"},
		"a line of five bytes":                {[]string{"12345\nabcdefgh"}, "got 12345", "got 12345"},
		"a value with spaces around its line": {[]string{"  padded-secret  "}, "[padded-secret]", "[***]"},
	} {
		if got := NewMasker(test.secrets...).Mask(test.text); got != test.want {
			t.Errorf("%s: %q became %q, want %q", name, test.text, got, test.want)
		}
	}
}

func TestBasicAuthenticationIsMaskedWhateverTheNameBeforeTheSecret(t *testing.T) {
	const token = "ghp_abcdefghijklmnopqrstuvwxyz"
	masker := NewMasker(token)
	for _, name := range []string{"", "u", "us", "use", "user", "x-access-token"} {
		for _, encoding := range []*base64.Encoding{base64.StdEncoding, base64.RawURLEncoding} {
			masked := masker.Mask("Basic " + encoding.EncodeToString([]byte(name+":"+token+"@")))
			if !strings.Contains(masked, Redacted) || len(masked) > len("Basic ***")+len(name)*2+10 {
				t.Errorf("user %q: %s", name, masked)
			}
		}
	}
}

func TestANilMaskerMasksNothing(t *testing.T) {
	if got := (*Masker)(nil).Mask("x"); got != "x" {
		t.Errorf("%q", got)
	}
}

// FuzzMask: no secret survives, what is not secret stays, and masking twice changes nothing more.
func FuzzMask(f *testing.F) {
	f.Add("abcdef", "cdefghijkl", "xx abcdefghijkl abcdef yy")
	f.Add("******", "***---", "******---")
	f.Add("\xff\xff\xff\xff\xff\xff", "aaaaaaa", "aaaaaaaaaaaaaaa")
	f.Fuzz(func(t *testing.T, a, b, text string) {
		masker := NewMasker(a, b)
		masked := masker.Mask(text)
		for part := range strings.SplitSeq(masked, Redacted) {
			if (len(a) >= MinMaskLength && strings.Contains(part, a)) || (len(b) >= MinMaskLength && strings.Contains(part, b)) {
				t.Fatalf("a secret is left in %q", masked)
			}
			if !strings.Contains(text, part) {
				t.Fatalf("%q is new in %q", part, masked)
			}
		}
	})
}

func BenchmarkMask(b *testing.B) {
	secrets := make([]string, 20)
	for i := range secrets {
		secrets[i] = strings.Repeat(string(rune('a'+i)), 8) + "-0123456789-abcdefghijklmnop"
	}
	masker := NewMasker(secrets...)
	line := strings.Repeat("2026-04-25T09:00:00Z level=info msg=\"reading the file\" ", 4)
	for name, text := range map[string]string{"clean": line, "with a secret": line + secrets[7]} {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				masker.Mask(text)
			}
		})
	}
}

func BenchmarkNewMasker(b *testing.B) {
	secrets := []string{strings.Repeat("a1b2", 10), strings.Repeat("c3d4", 10), strings.Repeat("e5f6", 10)}
	b.ReportAllocs()
	for b.Loop() {
		NewMasker(secrets...)
	}
}

// An agent is given the id of another one as a variable, and names it in an action: that must arrive.
func TestIdsOfRecordsAreNoSecrets(t *testing.T) {
	m := NewMasker("agt_01m8m4b7h7f78sgj204gvw1c8j", "agt_01m8m4b7h7f78sgj204gvw1c8j-and-more")
	if got := m.Mask("to agt_01m8m4b7h7f78sgj204gvw1c8j"); got != "to agt_01m8m4b7h7f78sgj204gvw1c8j" {
		t.Errorf("%q", got)
	}
	if got := m.Mask("agt_01m8m4b7h7f78sgj204gvw1c8j-and-more"); got != "***" {
		t.Errorf("a value that only begins like an id: %q", got)
	}
}

func TestTheCredentialsOfAnAuthorizationHeaderAreASecretByThemselves(t *testing.T) {
	masker := NewMasker("Bearer tok-9f8e7d6c5b4a", "basic dXNlcjpwYXNz", "two words here")
	for text, want := range map[string]string{
		"the key tok-9f8e7d6c5b4a is wrong": "the key *** is wrong", "Bearer tok-9f8e7d6c5b4a": "***", "dXNlcjpwYXNz": "***",
		"words here": "words here", "Bearer of news": "Bearer of news",
	} {
		if got := masker.Mask(text); got != want {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}
