package server

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/secret"
	"rouse.dev/rouse/internal/store"
)

// Resealed is what a change of the secret key came to. File is the key file that was replaced, Former the one that has the former
// key now; both "" when the key is in the environment.
type Resealed struct {
	store.Resealed
	KeyID        string
	File, Former string
}

// Reseal seals all values of a database with another key. The key is newKey; when the key lies in the data folder and
// newKey is empty, Reseal makes one. The key file is replaced last, so that whatever breaks off in between can be
// finished by another call.
func Reseal(ctx context.Context, db *Database, oldKey, newKey secret.String) (done Resealed, err error) {
	others, err := db.serversAtWork(ctx)
	if err != nil {
		return done, err
	}
	if len(others) > 0 {
		return done, fmt.Errorf("servers work with this database (%s), and would go on sealing with the key that they have: end all of them first", strings.Join(others, "; "))
	}
	s, folder := db.quietStore(), ""
	if oldKey.IsEmpty() {
		folder = db.files.dir
	}
	if finished, err := finishReseal(ctx, s, folder); err != nil || finished.KeyID != "" {
		return finished, err
	}
	from, to, err := resealKeys(oldKey, newKey, folder)
	if err != nil {
		return done, err
	}
	box, err := secret.NewBox(to, from)
	if err != nil {
		return done, err
	}
	if folder != "" {
		if err := secret.WriteNextKey(folder, to); err != nil {
			return done, fmt.Errorf("write the new key: %w", err)
		}
	}
	done.KeyID = to.ID()
	done.Resealed, err = s.Reseal(ctx, from.ID(), to.ID(), func(sealed, place string) (string, error) {
		plain, err := box.Open(sealed, place)
		if err != nil {
			return "", err
		}
		return box.Seal(plain, place)
	})
	if errors.Is(err, store.ErrSealedElsewhere) {
		return done, fmt.Errorf("this database's secrets are sealed with another key than %s: give the one that its servers work with (%s, or %s in the data folder)", from.ID(), config.EnvSecretKey, secret.KeyFileName)
	}
	if err != nil || folder == "" {
		return done, err
	}
	done.File = filepath.Join(folder, secret.KeyFileName)
	done.Former, err = secret.TakeNextKey(folder)
	return done, err
}

// resealKeys are the key that seals now and the one that is to.
func resealKeys(oldKey, newKey secret.String, folder string) (from, to secret.Key, err error) {
	if folder != "" {
		if _, err := os.Stat(filepath.Join(folder, secret.KeyFileName)); errors.Is(err, fs.ErrNotExist) {
			return from, to, fmt.Errorf("there is no key in %s: name the --data-dir of the server, or set %s to the key that seals now", folder, config.EnvSecretKey)
		}
	}
	if from, err = secret.LoadKey(oldKey.Reveal(), folder); err != nil {
		return from, to, err
	}
	switch {
	case !newKey.IsEmpty():
		if to, err = secret.ParseKey(newKey.Reveal()); err != nil {
			return from, to, fmt.Errorf("read ROUSE_NEW_SECRET_KEY: %w", err)
		}
	case folder != "":
		if to, err = secret.MakeKey(rand.Reader); err != nil {
			return from, to, err
		}
	default:
		return from, to, errors.New("the key is in the environment, and so is the new one: set ROUSE_NEW_SECRET_KEY, e.g. from `openssl rand -base64 32`, and keep a copy")
	}
	if from.ID() == to.ID() {
		return from, to, errors.New("the new key is the one that seals now: make another with `openssl rand -base64 32`")
	}
	return from, to, nil
}

// finishReseal replaces the key file when an earlier call sealed all values and did not come to it.
func finishReseal(ctx context.Context, s *store.Store, folder string) (done Resealed, err error) {
	if folder == "" {
		return done, nil
	}
	next, err := secret.NextKey(folder)
	if err != nil || next.ID() == "" {
		return done, err
	}
	bound, err := s.SealingKey(ctx)
	if err != nil || bound != next.ID() {
		return done, err
	}
	done.KeyID, done.File = bound, filepath.Join(folder, secret.KeyFileName)
	done.Former, err = secret.TakeNextKey(folder)
	return done, err
}
