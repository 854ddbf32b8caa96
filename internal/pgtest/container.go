package pgtest

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"

	"github.com/ory/dockertest/v3"
	"github.com/ory/dockertest/v3/docker"

	"rouse.dev/rouse/internal/postgres"
)

// containerLife is after how many seconds Docker ends a container whose test program was killed.
const containerLife = 1800

// startContainer runs PostgreSQL in a container of this test program, in memory.
func startContainer() (*server, error) {
	pool, err := dockertest.NewPool("")
	if err != nil {
		return nil, fmt.Errorf("docker: %w", err)
	}
	if err := pool.Client.Ping(); err != nil { // NewPool succeeds without Docker
		return nil, fmt.Errorf("docker does not answer: %w", err)
	}
	pool.MaxWait = startTimeout
	container, err := pool.RunWithOptions(&dockertest.RunOptions{
		Repository: "postgres", Tag: "17-alpine",
		Env: []string{"POSTGRES_HOST_AUTH_METHOD=trust", "PGDATA=/memory/data"},
		Cmd: []string{"postgres", "-c", "fsync=off", "-c", "synchronous_commit=off", "-c", "full_page_writes=off",
			"-c", "max_connections=400"},
		PortBindings: map[docker.Port][]docker.PortBinding{"5432/tcp": {{HostIP: "127.0.0.1"}}},
	}, func(host *docker.HostConfig) {
		host.AutoRemove = true
		host.Tmpfs = map[string]string{"/memory": "rw,mode=1777"}
	})
	if err != nil {
		return nil, fmt.Errorf("docker: start postgres: %w", err)
	}
	stop := func() error { return pool.Purge(container) }
	if err := container.Expire(containerLife); err != nil {
		return nil, errors.Join(fmt.Errorf("docker: %w", err), stop())
	}
	s := newServer(func(database string) string { return containerURL(container, database) }, stop)
	if err := pool.Retry(s.answers); err != nil {
		return nil, errors.Join(fmt.Errorf("docker: postgres does not answer: %w", err), stop())
	}
	return s, nil
}

// containerURL is where the container is reached: on this machine, unless DOCKER_HOST names another.
func containerURL(container *dockertest.Resource, database string) string {
	address := container.GetHostPort("5432/tcp")
	if host, err := url.Parse(os.Getenv("DOCKER_HOST")); err == nil && host.Scheme == "tcp" {
		address = host.Hostname() + ":" + container.GetPort("5432/tcp")
	}
	u := url.URL{Scheme: "postgres", User: url.User("postgres"), Host: address, Path: "/" + database, RawQuery: "sslmode=disable"}
	return u.String()
}

func (s *server) answers() error {
	db, err := postgres.Open(context.Background(), s.url("postgres"))
	if err != nil {
		return err
	}
	return db.Close()
}
