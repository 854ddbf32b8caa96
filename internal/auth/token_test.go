package auth

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/iotest"

	"rouse.dev/rouse/internal/domain"
)

var body = strings.Repeat("aB3", 14) + "x" // 43 characters

func TestNewTokensHaveTheirFormAndDiffer(t *testing.T) {
	form := regexp.MustCompile(`^(rse|rsr|rsl)_[0-9A-Za-z]{43}$`)
	seen := map[string]bool{}
	for range 200 {
		api, err := NewToken(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		run, err := NewRunToken(rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range []Token{api, run} {
			if text := token.Reveal(); !form.MatchString(text) || seen[text] {
				t.Fatalf("bad or repeated token %q", text)
			}
			seen[token.Reveal()] = true
			if parsed, err := ParseToken(token.Reveal()); err != nil || parsed.Digest() != token.Digest() {
				t.Fatalf("a new token does not parse: %v", err)
			}
		}
		if api.IsRun() || !run.IsRun() {
			t.Fatal("the kinds are mixed up")
		}
	}
}

func TestEveryRandomBitCounts(t *testing.T) {
	seen := map[string]bool{}
	for bit := range randomBytes * 8 {
		raw := make([]byte, randomBytes)
		raw[bit/8] = 1 << (bit % 8)
		token, err := NewToken(bytes.NewReader(raw))
		if err != nil || seen[token.Reveal()] {
			t.Fatalf("bit %d: %v", bit, err)
		}
		seen[token.Reveal()] = true
	}
	least, _ := NewToken(bytes.NewReader(make([]byte, randomBytes)))
	most, _ := NewToken(bytes.NewReader(bytes.Repeat([]byte{0xff}, randomBytes)))
	if len(least.Reveal()) != 47 || len(most.Reveal()) != 47 || least.Reveal() == most.Reveal() {
		t.Errorf("the ends of the range are %q and %q", least.Reveal(), most.Reveal())
	}
}

func TestNoTokenIsMadeWithoutRandomness(t *testing.T) {
	for name, random := range map[string]*bytes.Reader{"none": bytes.NewReader(nil), "too little": bytes.NewReader(make([]byte, 31))} {
		if token, err := NewToken(random); err == nil || !token.IsZero() {
			t.Errorf("%s: made %v", name, token)
		}
	}
	if _, err := NewRunToken(iotest.ErrReader(errors.New("no entropy"))); err == nil {
		t.Error("made a run token")
	}
}

func TestParseToken(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want string
		err  error
	}{
		"an API token":            {"rse_" + body, "rse_" + body, nil},
		"a run token":             {"rsr_" + body, "rsr_" + body, nil},
		"a token made by openssl": {"rse_" + strings.Repeat("0f", 32), "rse_" + strings.Repeat("0f", 32), nil},
		"a token of base64url":    {"rse_" + strings.Repeat("-_", 21) + "A", "rse_" + strings.Repeat("-_", 21) + "A", nil},
		"another program's token": {"ghp_" + body, "", ErrMalformedToken},
		"a mark in capitals":      {"RSE_" + body, "", ErrMalformedToken},
		"too short":               {"rse_" + body[1:], "", ErrMalformedToken},
		"too long":                {"rse_" + strings.Repeat("a", 87), "", ErrMalformedToken},
		"two tokens":              {"rse_" + body + ", Bearer rse_" + body, "", ErrMalformedToken},
		"a space inside":          {"rse_" + body[:20] + " " + body[20:], "", ErrMalformedToken},
		"a newline inside":        {"rse_" + body[:20] + "\n" + body[20:], "", ErrMalformedToken},
		"nothing":                 {"", "", ErrNoToken},
		"letters beyond ASCII":    {"rse_" + strings.Repeat("é", 30), "", ErrMalformedToken},
	} {
		token, err := ParseToken(test.text)
		if !errors.Is(err, test.err) || token.Reveal() != test.want {
			t.Errorf("%s: got %q, %v", name, token.Reveal(), err)
		}
	}
}

func TestTheDigestIsSHA256OfTheWholeText(t *testing.T) {
	token, err := ParseToken("rse_" + body)
	if err != nil {
		t.Fatal(err)
	}
	digest := token.Digest()
	if want := sha256.Sum256([]byte("rse_" + body)); digest != want || !digest.Equal(want[:]) || !bytes.Equal(digest.Bytes(), want[:]) {
		t.Errorf("got %s", digest)
	}
	run, _ := ParseToken("rsr_" + body)
	for name, stored := range map[string][]byte{"another kind's": run.Digest().Bytes(), "none": nil, "part": digest[:31], "more": append(digest.Bytes(), 0)} {
		if digest.Equal(stored) {
			t.Errorf("equal to %s", name)
		}
	}
}

func TestATokenShowsItsPrefixOnly(t *testing.T) {
	token, err := ParseToken("rse_" + body)
	if err != nil {
		t.Fatal(err)
	}
	type holder struct {
		token Token
		Token Token
	}
	var shown bytes.Buffer
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%q", "%x"} {
		_, _ = fmt.Fprintf(&shown, verb+verb, token, holder{token, token})
	}
	slog.New(slog.NewJSONHandler(&shown, nil)).Info("x", "token", token, "held", holder{token, token})
	if err := json.NewEncoder(&shown).Encode(holder{token, token}); err != nil {
		t.Fatal(err)
	}
	for _, leak := range []string{body[:shownLength+1], fmt.Sprintf("%x", body[:shownLength+1])} {
		if strings.Contains(shown.String(), leak) {
			t.Errorf("%q shows in %s", leak, shown.String())
		}
	}
	if token.Prefix() != "rse_"+body[:8] || !strings.Contains(shown.String(), token.Prefix()) {
		t.Errorf("the prefix is %q, shown %s", token.Prefix(), shown.String())
	}
	if (Token{}).Prefix() != "" || fmt.Sprint(Token{}) != "" {
		t.Error("the zero token shows something")
	}
}

func FuzzParseToken(f *testing.F) {
	for _, text := range []string{"", "rse_" + body, "rsr_" + body + " x", "rsl_" + body, "rsr_\x00" + body} {
		f.Add(text)
	}
	accepted := regexp.MustCompile(`^(rse|rsr|rsl)_[0-9A-Za-z_-]{43,86}$`)
	f.Fuzz(func(t *testing.T, text string) {
		token, err := ParseToken(text)
		switch {
		case err == nil && (!accepted.MatchString(text) || token.Reveal() != text):
			t.Fatalf("%q gave %q", text, token.Reveal())
		case err != nil && (!token.IsZero() || !errors.Is(err, ErrNoToken) && !errors.Is(err, ErrMalformedToken)):
			t.Fatalf("%q gave %q and %v", text, token.Reveal(), err)
		}
	})
}

// A RUN token whose attempt has ended may still say who it was, and do nothing.
func TestTheTokenOfAnEndedAttemptAllowsNothing(t *testing.T) {
	for _, ended := range []bool{false, true} {
		p := Principal{Kind: KindRun, Ended: ended}
		if got := p.Allows(domain.TokenScopeRun); got == ended {
			t.Errorf("ended %t: RUN is allowed: %t", ended, got)
		}
	}
}

func TestTheBoundsOfATokensText(t *testing.T) {
	body := func(n int) string { return strings.Repeat("a1", n)[:n] }
	for text, fine := range map[string]bool{
		"rse_" + body(newBodyLength): true, "rse_" + body(newBodyLength-1): false, "rsr_" + body(maxBodyLength): true, "rsl_" + body(maxBodyLength+1): false,
		body(newBodyLength): false, body(maxBodyLength): false, "xyz_" + body(newBodyLength): false,
	} {
		if _, err := ParseToken(text); (err == nil) != fine {
			t.Errorf("%d characters beginning with %s: %v", len(text), text[:4], err)
		}
	}
}
