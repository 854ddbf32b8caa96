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

// Kinds of files of a launch, as their names begin.
const (
	promptFile = "rouse-prompt-" // a prompt, for a program that reads it from a file
	toolsFile  = "rouse-tools-"  // settings that tell a program of servers of tools
)

// launchFile writes a text where the agent's account alone can read it. The file is named after its attempt, so that the next
// server finds it should this one be killed.
func (o Options) launchFile(kind string, run xid.ID, attempt int, text string) (path string, err error) {
	file, err := os.CreateTemp("", launchFiles(kind, o.Installation, run.String(), strconv.Itoa(attempt)))
	if err != nil {
		return "", err
	}
	_, err = file.WriteString(text)
	if err == nil && o.Credential != nil {
		err = file.Chown(int(o.Credential.Uid), int(o.Credential.Gid))
	}
	if err = errors.Join(err, file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}

// settingsFile is the name of the file in a settingsFolder.
const settingsFile = "settings.json"

// settingsRoot is where a settingsFolder lies: no folder on the way to it may be written to by others, as the temporary folder is.
var settingsRoot = "/run"

// settingsFolder makes a folder of root's with a file of settings that everybody may read and nobody else may change: programs take
// the machine's settings from such files alone. There is no secret in it.
func (o Options) settingsFolder(run xid.ID, attempt int, text string) (path string, err error) {
	folder, err := os.MkdirTemp(settingsRoot, launchFiles(toolsFile, o.Installation, run.String(), strconv.Itoa(attempt)))
	if err != nil {
		return "", err
	}
	file := filepath.Join(folder, settingsFile)
	err = errors.Join(os.WriteFile(file, []byte(text), 0o644), os.Chmod(file, 0o644), os.Chmod(folder, 0o755)) //nolint:gosec // the agents' account reads it
	if err != nil {
		return "", errors.Join(err, os.RemoveAll(folder))
	}
	return folder, nil
}

// launchFiles is a pattern of the names of an attempt's files.
func launchFiles(kind, installation, run, attempt string) string {
	return kind + installation + "." + run + "." + attempt + "-*"
}

// removeLaunchFiles removes what a launch, or all launches of an attempt, left in the temporary folder. A file that cannot be
// removed is of no harm to the run, which must not wait for it.
func removeLaunchFiles(launch string) {
	parts := strings.Split(launch, "/")
	if len(parts) < 4 || strings.ContainsAny(launch, `*?[\`) {
		return
	}
	for _, kind := range []string{promptFile, toolsFile} {
		where := os.TempDir()
		if kind == toolsFile {
			where = settingsRoot
		}
		files, _ := filepath.Glob(filepath.Join(where, launchFiles(kind, parts[0], parts[1], parts[2]))) // the pattern is a good one
		for _, file := range files {
			_ = os.RemoveAll(file)
		}
	}
}
