package doctor

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"

	"rouse.dev/rouse/internal/config"
	"rouse.dev/rouse/internal/secret"
	"rouse.dev/rouse/internal/store"
)

// SecretKey says whether the key that is here is the one that this database's secrets are sealed with. It is asked also
// while nothing is sealed: the next start, and the first secret, need it.
// dir is the data folder, and key what is in it or in the environment, unless keyErr says that there is none.
func (r *Report) SecretKey(ctx context.Context, s *store.Store, dir string, key secret.Key, keyErr error) {
	const name = "secret key"
	bound, err := s.SealingKey(ctx)
	if err != nil {
		r.Fail(name, err, "see the log of PostgreSQL")
		return
	}
	switch {
	case bound == "" && errors.Is(keyErr, fs.ErrNotExist):
		r.Pass(name, "there is none yet: the first start of `rouse serve` takes that of "+config.EnvSecretKey+", or makes one")
	case keyErr != nil:
		r.Fail(name, keyErr, fmt.Sprintf("run the doctor as the server's account and with its %s; if the key is lost, put its copy back, or start once with --new-secret-key and enter the secrets again", config.EnvSecretKey))
	case bound != "" && bound != key.ID():
		r.Fail(name, fmt.Errorf("this database's secrets are sealed with key %s, and here is key %s", bound, key.ID()),
			fmt.Sprintf("give the same %s as the servers have, or put back the file %s", config.EnvSecretKey, filepath.Join(dir, secret.KeyFileName)))
	default:
		r.Pass(name, "key "+key.ID()+" is here, and seals this database's secrets")
	}
}
