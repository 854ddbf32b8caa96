package server

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/secret"
)

// secretKey says whether the key that is here is the one that this database's secrets are sealed with. It is asked also
// while nothing is sealed: the next start, and the first secret, need it.
func (d *doctor) secretKey(ctx context.Context, db *Database) {
	const name = "secret key"
	bound, err := db.quietStore().SealingKey(ctx)
	if err != nil {
		d.fail(name, err, "see the log of PostgreSQL")
		return
	}
	key, err := existingKey(d.config, db.files)
	switch {
	case bound == "" && errors.Is(err, fs.ErrNotExist):
		d.pass(name, "there is none yet: the first start of `rouse serve` takes that of "+config.EnvSecretKey+", or makes one")
	case err != nil:
		d.fail(name, err, fmt.Sprintf("run the doctor as the server's account and with its %s; if the key is lost, put its copy back, or start once with --new-secret-key and enter the secrets again", config.EnvSecretKey))
	case bound != "" && bound != key.ID():
		d.fail(name, fmt.Errorf("this database's secrets are sealed with key %s, and here is key %s", bound, key.ID()),
			fmt.Sprintf("give the same %s as the servers have, or put back the file %s", config.EnvSecretKey, filepath.Join(db.files.dir, secret.KeyFileName)))
	default:
		d.pass(name, "key "+key.ID()+" is here, and seals this database's secrets")
	}
}
