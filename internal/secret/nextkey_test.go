package secret

import (
	"crypto/rand"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
)

func TestAKeyIsReplacedByTheNextAndKeptUnderItsID(t *testing.T) {
	dir := t.TempDir()
	first, err := LoadKey("", dir)
	if err != nil {
		t.Fatal(err)
	}
	if next, err := NextKey(dir); err != nil || !next.raw.IsEmpty() {
		t.Errorf("before one is written the next key is %v, %v", next, err)
	}
	writeNext(t, dir)
	next := writeNext(t, dir) // in the place of one that was never put to use
	if read, err := NextKey(dir); err != nil || read.ID() != next.ID() {
		t.Errorf("the next key is %v, %v, want %v", read, err, next)
	}
	if info, err := os.Stat(filepath.Join(dir, nextKeyFileName)); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("its file is %v, %v", info, err)
	}
	for _, again := range []bool{false, true} { // the second time the former key's file is there already
		if again {
			putBack(t, dir, first)
			next = writeNext(t, dir)
		}
		former, err := TakeNextKey(dir)
		if want := filepath.Join(dir, KeyFileName) + "." + first.ID(); err != nil || former != want {
			t.Fatalf("the former key is kept as %q, %v, want %q", former, err, want)
		}
		for path, want := range map[string]Key{former: first, filepath.Join(dir, KeyFileName): next} {
			if got, err := readKeyFile(path); err != nil || got.ID() != want.ID() {
				t.Errorf("%s holds %v, %v, want %v", path, got, err, want)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, nextKeyFileName)); !os.IsNotExist(err) {
			t.Errorf("the next key is still there: %v", err)
		}
	}
}

func writeNext(t *testing.T, dir string) Key {
	t.Helper()
	key, err := MakeKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteNextKey(dir, key); err != nil {
		t.Fatal(err)
	}
	return key
}

func putBack(t *testing.T, dir string, key Key) {
	t.Helper()
	if err := os.WriteFile(filepath.Join(dir, KeyFileName), []byte(key.text()+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

func TestWhatIsInTheWayOfTheNextKeyIsSaid(t *testing.T) {
	if _, err := MakeKey(iotest.ErrReader(os.ErrClosed)); err == nil || !strings.Contains(err.Error(), "random") {
		t.Errorf("without randomness: %v", err)
	}
	key, err := MakeKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteNextKey(filepath.Join(t.TempDir(), "none"), key); err == nil {
		t.Error("a key was written into no folder")
	}
	if former, err := TakeNextKey(t.TempDir()); err == nil || former != "" || !strings.Contains(err.Error(), "read the key file") {
		t.Errorf("without a key there is %q, %v", former, err)
	}
	dir := t.TempDir()
	if _, err := LoadKey("", dir); err != nil {
		t.Fatal(err)
	}
	if former, err := TakeNextKey(dir); err == nil || former != "" || !strings.Contains(err.Error(), "replace the key file") {
		t.Errorf("without a next key there is %q, %v", former, err)
	}
	if err := os.WriteFile(filepath.Join(dir, nextKeyFileName), []byte("nonsense"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := NextKey(dir); err == nil || !strings.Contains(err.Error(), "read the next key") {
		t.Errorf("a next key that is none: %v", err)
	}
	dir = t.TempDir()
	if err := os.MkdirAll(filepath.Join(dir, nextKeyFileName, "in the way"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := WriteNextKey(dir, key); err == nil {
		t.Error("what cannot be removed was replaced")
	}
}

// The rotation ends when nothing has to be sealed anew.
func TestWhatHasToBeSealedAnew(t *testing.T) {
	old, current := mustKey(t), mustKey(t)
	before, after := mustBox(t, old), mustBox(t, current, old)
	sealedBefore, err := before.Seal("value", "row")
	if err != nil {
		t.Fatal(err)
	}
	sealedAfter, err := after.Seal("value", "row")
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]bool{sealedBefore: true, sealedAfter: false, "no sealed text": false, "": false} {
		if got := after.NeedsReseal(text); got != want {
			t.Errorf("%.20q needs it: %t", text, got)
		}
	}
	_, body, _ := strings.Cut(strings.TrimPrefix(sealedAfter, "s1."), ".")
	for name, text := range map[string]string{
		"a key's id with a letter too much": "s1." + current.ID() + "0." + body, "one with a capital": "s1." + strings.ToUpper(current.ID()[:7]) + "G." + body,
		"one with a strange sign": "s1.zzzzzzzz." + body, "a body with a line break": sealedAfter[:len(sealedAfter)-2] + "\n" + sealedAfter[len(sealedAfter)-2:],
		"a body that is no base64": "s1." + current.ID() + ".!!!!", "a body with a carriage return": sealedAfter + "\r",
	} {
		if _, err := after.Open(text, "row"); err == nil || !strings.Contains(err.Error(), ErrMalformed.Error()) {
			t.Errorf("%s: %v", name, err)
		}
		if after.NeedsReseal(text) {
			t.Errorf("%s needs to be sealed anew", name)
		}
	}
}

func mustKey(t *testing.T) Key {
	t.Helper()
	key, err := MakeKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func mustBox(t *testing.T, current Key, older ...Key) *Box {
	t.Helper()
	box, err := NewBox(current, older...)
	if err != nil {
		t.Fatal(err)
	}
	return box
}
