package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"rouse.dev/rouse/internal/secret"
	"rouse.dev/rouse/internal/server"
)

// secretsCommand is what an operator does with sealed values.
type secretsCommand struct {
	Reseal secretsReseal `cmd:"" help:"Seal all stored secrets with another key. All servers must have ended."`
}

// secretsReseal changes the key that seals secrets.
type secretsReseal struct {
	placeFlags
	SecretKey    secret.String `name:"secret-key" env:"ROUSE_SECRET_KEY" hidden:"" help:"The key that seals now; without, secret.key in the data folder."`
	NewSecretKey secret.String `name:"new-key" env:"ROUSE_NEW_SECRET_KEY" hidden:"" help:"The key that is to seal; without, one is made where the key is in the data folder."`
}

// Run says what was sealed, where the key is now, and what could not be opened.
func (s secretsReseal) Run(stdout io.Writer) error {
	c := s.config()
	if err := errors.Join(c.Validate(), server.MustExist(c)); err != nil {
		return err
	}
	return interruptible(func(ctx context.Context) error {
		db, err := server.OpenDatabase(ctx, c, logger(c, os.Stderr))
		if err != nil {
			return err
		}
		done, err := server.Reseal(ctx, db, s.SecretKey, s.NewSecretKey)
		if err = errors.Join(err, db.Close()); err != nil {
			return err
		}
		return s.tell(stdout, done)
	})
}

func (s secretsReseal) tell(stdout io.Writer, done server.Resealed) error {
	_, err := fmt.Fprintf(stdout, "%d secrets are sealed with key %s.\n", done.Values, done.KeyID)
	if done.File != "" {
		_, tell := fmt.Fprintf(stdout, "It is in %s. Backups of the database from before need the former one, which is in %s.\n", done.File, done.Former)
		err = errors.Join(err, tell)
	} else {
		_, tell := fmt.Fprintln(stdout, "Start the servers with it: set ROUSE_SECRET_KEY to what ROUSE_NEW_SECRET_KEY is. Backups of the database from before need the former one.")
		err = errors.Join(err, tell)
	}
	if done.Refused == 0 {
		return err
	}
	for _, what := range done.Left {
		_, tell := fmt.Fprintln(stdout, "left:", what)
		err = errors.Join(err, tell)
	}
	return errors.Join(err, fmt.Errorf("%d secrets could not be opened with the key that sealed the others, and stay as they were: enter them again", done.Refused))
}
