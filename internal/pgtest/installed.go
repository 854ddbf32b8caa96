package pgtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"rouse.dev/rouse/internal/postgres"
	"rouse.dev/rouse/internal/store/migrations"
)

// installation is a private cluster with the migrations applied, which no server has used yet. It is made at the first use.
var installation struct {
	sync.Mutex
	folder string
	err    error // of the first try: the tests after it fail at once
}

// clusterName is the folder of a private cluster within a data folder.
const clusterName = "postgres"

// Installed is Folder with a private cluster in it, as a first start makes one before it serves. The cluster is a copy: making one
// takes a test seconds, because initdb and all migrations run. Tests of the first start itself begin with Folder.
func Installed(t testing.TB) string {
	t.Helper()
	from, err := install()
	if err != nil {
		t.Fatalf("make a private cluster for the tests: %v", err)
	}
	to := folderIn(t, inMemory())
	if err := os.Mkdir(filepath.Join(to, clusterName), 0o711); err != nil {
		t.Fatal(err)
	}
	// Its owner, whom PostgreSQL insists on, is kept.
	if out, err := exec.CommandContext(t.Context(), "cp", "-a", filepath.Join(from, clusterName, "data"), filepath.Join(to, clusterName)).CombinedOutput(); err != nil {
		t.Fatalf("copy a private cluster: %v: %s", err, out)
	}
	return to
}

func install() (string, error) {
	installation.Lock()
	defer installation.Unlock()
	if installation.folder == "" && installation.err == nil {
		installation.folder, installation.err = makeInstallation()
	}
	return installation.folder, installation.err
}

func makeInstallation() (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	dir, err := os.MkdirTemp(inMemory(), "rouse-installation-")
	if err != nil {
		return "", err
	}
	err = os.Chmod(dir, 0o711) // the server's account passes it
	if err == nil {
		err = migrateInstallation(ctx, filepath.Join(dir, clusterName))
	}
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(dir))
	}
	return dir, nil
}

func migrateInstallation(ctx context.Context, dir string) error {
	silent := slog.New(slog.DiscardHandler)
	c, err := postgres.StartCluster(ctx, postgres.Options{Dir: dir, Log: silent, Throwaway: true})
	if err != nil {
		return err
	}
	db, err := postgres.Open(ctx, c.URL("rouse"))
	if err == nil {
		err = errors.Join(postgres.Migrate(ctx, db, migrations.FS, silent), db.Close())
	}
	return errors.Join(err, c.Stop(ctx))
}

// removeInstallation is a part of Leave.
func removeInstallation() error {
	installation.Lock()
	defer installation.Unlock()
	if installation.folder == "" {
		return nil
	}
	if err := os.RemoveAll(installation.folder); err != nil {
		return fmt.Errorf("remove the cluster that tests copied: %w", err)
	}
	installation.folder, installation.err = "", errors.New("a private cluster was asked for after pgtest.Leave")
	return nil
}
