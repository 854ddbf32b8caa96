package secret

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// testKey is a key whose bytes are n, n+1, …
func testKey(t testing.TB, n byte) Key {
	t.Helper()
	var raw [KeySize]byte
	for i := range raw {
		raw[i] = n + byte(i)
	}
	key, err := ParseKey(hex.EncodeToString(raw[:]))
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func testBox(t testing.TB, current Key, older ...Key) *Box {
	t.Helper()
	box, err := NewBox(current, older...)
	if err != nil {
		t.Fatal(err)
	}
	return box
}

func TestASealedSecretOpensAtItsPlaceOnly(t *testing.T) {
	box := testBox(t, testKey(t, 1))
	place := "agt_1/TOKEN"
	for name, plaintext := range map[string]string{"short": "x", "empty": "", "long": strings.Repeat("ü", 100_000), "not UTF-8": "\xff\x00"} {
		sealed, err := box.Seal(plaintext, place)
		if err != nil {
			t.Fatal(err)
		}
		if opened, err := box.Open(sealed, place); err != nil || opened != plaintext {
			t.Errorf("%s: opened to %d bytes, %v", name, len(opened), err)
		}
		for _, other := range []string{"", "agt_2/TOKEN", "agt_1/TOKE"} {
			if opened, err := box.Open(sealed, other); !errors.Is(err, ErrForged) || opened != "" {
				t.Errorf("%s: opened at %q: %v", name, other, err)
			}
		}
	}
	if _, err := box.Seal("x", ""); err == nil {
		t.Error("sealed without a place")
	}
}

func TestTheSameSecretIsSealedDifferentlyEachTime(t *testing.T) {
	box := testBox(t, testKey(t, 1))
	a, _ := box.Seal("same", "place")
	b, _ := box.Seal("same", "place")
	if a == b {
		t.Error("two seals are equal, so that equal secrets show")
	}
}

func TestEveryChangeOfASealedTextIsRefused(t *testing.T) {
	box := testBox(t, testKey(t, 1), testKey(t, 2))
	sealed, err := box.Seal("hunter2hunter2", "place")
	if err != nil {
		t.Fatal(err)
	}
	for i := range sealed {
		for _, replacement := range []byte("A9.\n") {
			if sealed[i] == replacement {
				continue
			}
			changed := sealed[:i] + string(replacement) + sealed[i+1:]
			if opened, err := box.Open(changed, "place"); err == nil || opened != "" {
				t.Errorf("%q opened", changed)
			}
		}
		if _, err := box.Open(sealed[:i], "place"); err == nil {
			t.Errorf("the first %d characters opened", i)
		}
	}
	if _, err := box.Open(strings.Replace(sealed, testKey(t, 1).ID(), testKey(t, 2).ID(), 1), "place"); !errors.Is(err, ErrForged) {
		t.Errorf("opened under another key's id: %v", err)
	}
}

func TestAKeyIsReplacedWhileOldSecretsStillOpen(t *testing.T) {
	oldKey, newKey := testKey(t, 1), testKey(t, 2)
	sealed, err := testBox(t, oldKey).Seal("value", "place")
	if err != nil {
		t.Fatal(err)
	}
	both := testBox(t, newKey, oldKey)
	if opened, err := both.Open(sealed, "place"); err != nil || opened != "value" {
		t.Fatalf("the old key is refused: %v", err)
	}
	resealed, _ := both.Seal("value", "place")
	if !both.NeedsReseal(sealed) || both.NeedsReseal(resealed) {
		t.Error("NeedsReseal does not tell old from new")
	}
	if opened, err := testBox(t, newKey).Open(resealed, "place"); err != nil || opened != "value" {
		t.Errorf("the new key alone does not open what was sealed again: %v", err)
	}
}

func TestALostKeyIsNamedAndTheErrorSaysWhatToDo(t *testing.T) {
	oldKey, newKey := testKey(t, 1), testKey(t, 2)
	sealed, _ := testBox(t, oldKey).Seal("value", "place")
	_, err := testBox(t, newKey).Open(sealed, "place")
	if !errors.Is(err, ErrUnknownKey) {
		t.Fatal(err)
	}
	for _, want := range []string{oldKey.ID(), newKey.ID(), KeyVariable, KeyFileName, "enter the secret again"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not say %q: %v", want, err)
		}
	}
}

func TestKeysNeverShow(t *testing.T) {
	key := testKey(t, 1)
	box := testBox(t, key)
	type holder struct {
		key  Key
		Key  Key
		box  *Box
		Box  *Box
		list []Key
	}
	held := holder{key, key, box, box, []Key{key}}
	encoded, err := json.Marshal(map[string]any{"key": key})
	if err != nil {
		t.Fatal(err)
	}
	shown := string(encoded)
	for _, verb := range []string{"%v", "%+v", "%#v", "%s", "%x", "%d", "%q"} {
		shown += fmt.Sprintf(verb, key) + fmt.Sprintf(verb, held) + fmt.Sprintf(verb, &held) + fmt.Sprintf(verb, box)
	}
	for _, leak := range []string{key.text(), hex.EncodeToString(key.bytes()), "1 2 3 4 5", "0x1, 0x2, 0x3", "[1 2 3", string(key.bytes())} {
		if strings.Contains(strings.ToLower(shown), strings.ToLower(leak)) {
			t.Errorf("%q shows in %s", leak, shown)
		}
	}
}

func FuzzOpen(f *testing.F) {
	key := testKey(f, 1)
	box := testBox(f, key)
	const plaintext = "a secret of some length"
	sealed, err := box.Seal(plaintext, "place") // differs in each of the fuzzer's processes
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed, "place")
	f.Add(sealed, "")
	f.Add("s1."+key.ID()+".", "place")
	f.Add("s1."+key.ID()+".AAAA", "place")
	f.Add("s2.00000000.AAAA", "place")
	f.Add("..", "")
	f.Fuzz(func(t *testing.T, text, place string) {
		opened, err := box.Open(text, place)
		if err == nil && (opened != plaintext || place != "place") {
			t.Fatalf("%q opened at %q to %q", text, place, opened)
		}
		if err != nil && !errors.Is(err, ErrMalformed) && !errors.Is(err, ErrUnknownKey) && !errors.Is(err, ErrForged) {
			t.Fatalf("an error of no class: %v", err)
		}
		if err != nil && (opened != "" || len(err.Error()) > 400) {
			t.Fatalf("%q with %v", opened, err)
		}
	})
}
