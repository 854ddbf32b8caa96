package secret

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// nextKeyFileName is the key file of a key that is about to take the place of KeyFileName.
const nextKeyFileName = KeyFileName + ".next"

// MakeKey makes a key.
func MakeKey(random io.Reader) (Key, error) {
	raw := make([]byte, KeySize)
	if _, err := io.ReadFull(random, raw); err != nil {
		return Key{}, fmt.Errorf("read random bytes: %w", err)
	}
	return newKey(raw), nil
}

// WriteNextKey writes a key beside the key file of a data folder, and replaces one that was never put to use.
func WriteNextKey(dataDir string, key Key) error {
	path := filepath.Join(dataDir, nextKeyFileName)
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	if err := errors.Join(writeSynced(file, key.text()+"\n"), file.Close()); err != nil {
		return err
	}
	return syncFolder(dataDir)
}

// NextKey reads what WriteNextKey wrote; the zero Key when it wrote nothing.
func NextKey(dataDir string) (Key, error) {
	key, err := readKeyFile(filepath.Join(dataDir, nextKeyFileName))
	if errors.Is(err, fs.ErrNotExist) {
		return Key{}, nil
	}
	if err != nil {
		return Key{}, fmt.Errorf("read the next key: %w", err)
	}
	return key, nil
}

// TakeNextKey makes the next key that of the data folder. The former one stays beside it, named by its id: backups need it.
func TakeNextKey(dataDir string) (former string, err error) {
	path := filepath.Join(dataDir, KeyFileName)
	key, err := readKeyFile(path)
	if err != nil {
		return "", fmt.Errorf("read the key file: %w", err)
	}
	former = path + "." + key.ID()
	if err := os.Link(path, former); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("keep the former key: %w", err)
	}
	if err := os.Rename(filepath.Join(dataDir, nextKeyFileName), path); err != nil {
		return "", fmt.Errorf("replace the key file: %w", err)
	}
	return former, syncFolder(dataDir)
}
