package secret

import (
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// KeyFileName is the name of the key file in the data folder.
const KeyFileName = "secret.key"

// KeyVariable is the environment variable that holds the key where no file may.
const KeyVariable = "ROUSE_SECRET_KEY"

// maxKeyFile bounds what is read of a key file, in bytes.
const maxKeyFile = 4096

// LoadKey gives the key of this server: the key in configured (the value of ROUSE_SECRET_KEY) when that is set, else
// the key in dataDir/secret.key, which the first start makes. dataDir is "" where the key must be configured. Several
// processes may call it at once for the same folder; all get the same key.
func LoadKey(configured, dataDir string) (Key, error) {
	if configured != "" {
		key, err := ParseKey(configured)
		if err != nil {
			return Key{}, fmt.Errorf("read %s: %w", KeyVariable, err)
		}
		return key, nil
	}
	if dataDir == "" {
		return Key{}, fmt.Errorf("no key for stored secrets: set %s to 32 random bytes, e.g. from `openssl rand -base64 32`, and keep a copy: without it stored secrets cannot be read", KeyVariable)
	}
	path := filepath.Join(dataDir, KeyFileName)
	key, err := readKeyFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		if err := makeKeyFile(path, rand.Reader); err != nil {
			return Key{}, fmt.Errorf("make the key file: %w", err)
		}
		key, err = readKeyFile(path)
	}
	if err != nil {
		return Key{}, fmt.Errorf("read the key file: %w", err)
	}
	return key, nil
}

// readKeyFile reads a key that nobody but the file's owner can read or write.
func readKeyFile(path string) (Key, error) {
	listed, err := os.Lstat(path)
	if err != nil {
		return Key{}, err
	}
	if !listed.Mode().IsRegular() {
		return Key{}, fmt.Errorf("%s is no regular file: move it away, or set %s", path, KeyVariable)
	}
	file, err := os.Open(path)
	if err != nil {
		return Key{}, err
	}
	defer func() { _ = file.Close() }() // nothing was written
	info, err := file.Stat()
	if err != nil {
		return Key{}, err
	}
	if !os.SameFile(listed, info) {
		return Key{}, fmt.Errorf("%s changed while it was opened: start again", path)
	}
	if mode := info.Mode().Perm(); mode&0o077 != 0 {
		return Key{}, fmt.Errorf("%s has mode %04o, so that others can read the key: run `chmod 600 %s`, and if they may have read it, change the stored secrets", path, mode, path)
	}
	text, err := io.ReadAll(io.LimitReader(file, maxKeyFile))
	if err != nil {
		return Key{}, err
	}
	key, err := ParseKey(string(text))
	if err != nil {
		return Key{}, fmt.Errorf("%s holds no key (%w); put its copy back, or move it away and enter the stored secrets again", path, err)
	}
	return key, nil
}

// makeKeyFile writes a new key under a name of its own and links it into place, so that a reader sees a whole key or none, and of
// several makers the first wins.
func makeKeyFile(path string, random io.Reader) (err error) {
	raw := make([]byte, KeySize)
	if _, err := io.ReadFull(random, raw); err != nil {
		return fmt.Errorf("read random bytes: %w", err)
	}
	file, err := os.CreateTemp(filepath.Dir(path), KeyFileName+".*") // O_EXCL, mode 0600
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.Remove(file.Name())) }()
	if err := errors.Join(writeSynced(file, newKey(raw).text()+"\n"), file.Close()); err != nil {
		return err
	}
	if err := os.Link(file.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncFolder(filepath.Dir(path))
}

func writeSynced(file *os.File, text string) error {
	if _, err := file.WriteString(text); err != nil {
		return err
	}
	return file.Sync()
}

// syncFolder makes the new name survive a power cut: a lost key is lost secrets.
func syncFolder(path string) error {
	folder, err := os.Open(path)
	if err != nil {
		return err
	}
	return errors.Join(folder.Sync(), folder.Close())
}
