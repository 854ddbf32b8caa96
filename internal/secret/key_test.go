package secret

import (
	"encoding/base64"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/iotest"
)

func TestParseKey(t *testing.T) {
	raw := []byte("\xfb\xff0123456789abcdefghijklmnopqrst")
	for name, test := range map[string]struct {
		text string
		ok   bool
	}{
		"64 hex digits":                {strings.Repeat("0a", 31) + "ff", true},
		"capital hex digits":           {strings.Repeat("0A", 31) + "FF", true},
		"base64":                       {base64.StdEncoding.EncodeToString(raw), true},
		"base64 without padding":       {base64.RawStdEncoding.EncodeToString(raw), true},
		"base64 for URLs":              {base64.URLEncoding.EncodeToString(raw), true},
		"with a newline at the end":    {base64.StdEncoding.EncodeToString(raw) + "\n", true},
		"empty":                        {"", false},
		"a password":                   {"correct horse battery staple!!!!", false},
		"16 bytes of hex":              {strings.Repeat("0a", 16), false},
		"31 bytes of base64":           {base64.StdEncoding.EncodeToString(raw[:31]), false},
		"33 bytes of base64":           {base64.StdEncoding.EncodeToString(append(raw, 1)), false},
		"more behind 64 hex digits":    {strings.Repeat("0a", 31) + "ffx", false},
		"more behind the base64":       {base64.RawStdEncoding.EncodeToString(raw) + "!", false},
		"more behind that of URLs":     {base64.RawURLEncoding.EncodeToString(raw) + "!", false},
		"32 bytes that are all zeroes": {strings.Repeat("00", 32), false},
	} {
		key, err := ParseKey(test.text)
		if (err == nil) != test.ok || (key.ID() != "") != test.ok {
			t.Errorf("%s: key %q, %v", name, key.ID(), err)
		}
		if err != nil && test.text != "" && strings.Contains(err.Error(), test.text) {
			t.Errorf("%s: the error repeats the text: %v", name, err)
		}
	}
}

func TestEverySpellingOfAKeyIsTheSameKey(t *testing.T) {
	key := testKey(t, 7)
	again, err := ParseKey(key.text())
	if err != nil || again.ID() != key.ID() || again.raw.Reveal() != key.raw.Reveal() {
		t.Errorf("hex and base64 differ: %v", err)
	}
	if testKey(t, 8).ID() == key.ID() {
		t.Error("two keys share an id")
	}
}

func TestTheConfiguredKeyWinsOverTheFile(t *testing.T) {
	folder := t.TempDir()
	key, err := LoadKey(testKey(t, 3).text(), folder)
	if err != nil || key.ID() != testKey(t, 3).ID() {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(folder, KeyFileName)); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a key file was made: %v", err)
	}
	if _, err := LoadKey("nonsense", folder); err == nil || !strings.Contains(err.Error(), KeyVariable) || strings.Contains(err.Error(), "nonsense") {
		t.Errorf("a wrong key in the environment: %v", err)
	}
}

func TestWithoutAFolderAKeyMustBeConfigured(t *testing.T) {
	if _, err := LoadKey("", ""); err == nil || !strings.Contains(err.Error(), KeyVariable) || !strings.Contains(err.Error(), "openssl rand") {
		t.Errorf("the error does not say what to do: %v", err)
	}
}

func TestTheFirstStartMakesAKeyFileAndLaterOnesReadIt(t *testing.T) {
	folder := t.TempDir()
	first, err := LoadKey("", folder)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(filepath.Join(folder, KeyFileName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("the key file has mode %v, %v", info.Mode(), err)
	}
	second, err := LoadKey("", folder)
	if err != nil || second.ID() != first.ID() {
		t.Errorf("the second start has key %s, not %s: %v", second.ID(), first.ID(), err)
	}
	onlyTheKeyIsIn(t, folder)
	if other, err := LoadKey("", t.TempDir()); err != nil || other.ID() == first.ID() {
		t.Errorf("another folder has the same key: %v", err)
	}
}

func TestManyFirstStartsAtOnceAgreeOnOneKey(t *testing.T) {
	folder := t.TempDir()
	ids := make([]string, 16)
	var group sync.WaitGroup
	for i := range ids {
		group.Go(func() {
			key, err := LoadKey("", folder)
			if err != nil {
				t.Error(err)
			}
			ids[i] = key.ID()
		})
	}
	group.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("they have %v", ids)
		}
	}
	onlyTheKeyIsIn(t, folder)
}

func onlyTheKeyIsIn(t *testing.T, folder string) {
	t.Helper()
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 1 {
		t.Errorf("left over: %v, %v", entries, err)
	}
}

func TestAKeyFileThatCannotBeTrustedIsRefused(t *testing.T) {
	for name, test := range map[string]struct {
		spoil func(path string) error
		says  string
	}{
		"others can read it": {func(path string) error { return os.Chmod(path, 0o640) }, "chmod 600"},
		"others can write":   {func(path string) error { return os.Chmod(path, 0o602) }, "chmod 600"},
		"it is cut off":      {func(path string) error { return os.Truncate(path, 20) }, "put its copy back"},
		"it is empty":        {func(path string) error { return os.Truncate(path, 0) }, "put its copy back"},
		"it is a link": {func(path string) error {
			return errors.Join(os.Rename(path, path+".real"), os.Symlink(path+".real", path))
		}, "no regular file"},
		"it is a folder":     {func(path string) error { return errors.Join(os.Remove(path), os.Mkdir(path, 0o700)) }, "no regular file"},
		"it is a named pipe": {func(path string) error { return errors.Join(os.Remove(path), syscall.Mkfifo(path, 0o600)) }, "no regular file"},
	} {
		t.Run(name, func(t *testing.T) {
			folder := t.TempDir()
			key, err := LoadKey("", folder)
			if err != nil {
				t.Fatal(err)
			}
			if err := test.spoil(filepath.Join(folder, KeyFileName)); err != nil {
				t.Fatal(err)
			}
			_, err = LoadKey("", folder)
			if err == nil || !strings.Contains(err.Error(), test.says) || strings.Contains(err.Error(), key.text()[:10]) {
				t.Errorf("got %v, want an error that says %q", err, test.says)
			}
		})
	}
}

func TestNoKeyFileIsMadeWithoutAFolderOrRandomness(t *testing.T) {
	if _, err := LoadKey("", filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("made a key in a folder that does not exist")
	}
	folder := t.TempDir()
	if err := makeKeyFile(filepath.Join(folder, KeyFileName), iotest.ErrReader(errors.New("no entropy"))); err == nil {
		t.Error("made a key without randomness")
	}
	if entries, err := os.ReadDir(folder); err != nil || len(entries) != 0 {
		t.Errorf("left over: %v, %v", entries, err)
	}
}

// FuzzParseKey: a key is 32 bytes that are not all alike, is read again as it is written, and no error repeats the text.
func FuzzParseKey(f *testing.F) {
	for _, text := range []string{"", strings.Repeat("ab", 32), "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=", "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", strings.Repeat("0", 64), "="} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		key, err := ParseKey(text)
		if err != nil {
			if secret := strings.TrimSpace(text); len(secret) > 20 && strings.Contains(err.Error(), secret) {
				t.Errorf("the error repeats the text: %v", err)
			}
			return
		}
		again, err := ParseKey(key.text())
		if err != nil || again.ID() != key.ID() || len(key.bytes()) != KeySize {
			t.Errorf("%q is a key of %d bytes, written and read again %v, %v", text, len(key.bytes()), again, err)
		}
	})
}

// Stored values and the names of former key files carry a key's id, so it stays what it is.
func TestTheIDOfAKeyStaysWhatItIs(t *testing.T) {
	key, err := ParseKey(strings.Repeat("0a", 31) + "ff")
	if err != nil || key.ID() != "71ca10dc" {
		t.Errorf("its id is %s, %v", key.ID(), err)
	}
}
