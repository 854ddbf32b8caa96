//go:build unix

package executor

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"rouse.dev/rouse/internal/xid"
)

// promptFile writes a prompt where the agent's account alone can read it. It is named after its attempt, so that the next
// server finds it should this one be killed.
func (o Options) promptFile(run xid.ID, attempt int, prompt string) (path string, err error) {
	file, err := os.CreateTemp("", promptFiles(o.Installation, run.String(), strconv.Itoa(attempt)))
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(prompt)
	if err == nil && o.Credential != nil {
		err = file.Chown(int(o.Credential.Uid), int(o.Credential.Gid))
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}

// promptFiles is a pattern of the names of an attempt's prompt files.
func promptFiles(installation, run, attempt string) string {
	return "rouse-prompt-" + installation + "." + run + "." + attempt + "-*"
}

// removePromptFiles removes what a launch, or all launches of an attempt, left in the temporary folder. A file that cannot be
// removed is of no harm to the run, which must not wait for it.
func removePromptFiles(launch string) {
	parts := strings.Split(launch, "/")
	if len(parts) < 4 || strings.ContainsAny(launch, `*?[\`) {
		return
	}
	files, _ := filepath.Glob(filepath.Join(os.TempDir(), promptFiles(parts[0], parts[1], parts[2]))) // the pattern is a good one
	for _, file := range files {
		_ = os.Remove(file)
	}
}
