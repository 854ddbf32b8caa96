package workcopy

import (
	"fmt"
	"regexp"
	"strings"

	"rouse.dev/rouse/internal/domain"
)

// Step is what was being done for a working copy when it failed.
type Step string

// The steps, as a message says them.
const (
	StepFind       Step = "find the repository"
	StepFetch      Step = "fetch the repository"
	StepResolve    Step = "find where to begin"
	StepAdd        Step = "make the working copy"
	StepSubmodules Step = "fetch the submodules"
	StepLFS        Step = "fetch the large files (Git LFS)"
	StepSetup      Step = "set up the working copy"
)

// Trouble is a step that failed.
type Trouble struct {
	Step       Step
	Repository string
	Ref        string // that was asked for; "" for the default
	Where      string // folder that is written to
	Who        string // account that git runs as, for the message
	Shell      string // command line that opens a shell as that account; "": who reads this is that account
	Said       string // git's words, or the program's
}

// Explanation is what a trouble means for the attempt (SPEC S8.8).
type Explanation struct {
	Code      domain.RunErrorCode
	Permanent bool // trying again cannot help
	Message   string
}

// cases are git's words for what people meet, the first that fits counts.
var cases = []struct {
	words     *regexp.Regexp
	step      Step // "": any
	code      domain.RunErrorCode
	permanent bool
	why, do   string // with {repository}, {ref}, {where}, {who} and {shell}
}{
	{regexp.MustCompile(`(?i)no space left on device|disk quota exceeded|file system is full`), "", domain.RunErrorCodeLaunch, false,
		"the disk of {where} is full", "free space there, or shorten keep of the checkout"},
	{regexp.MustCompile(`(?i)unable to write file|unable to (?:write|append to) .{1,200}\.git/|could not reset index file`), StepAdd, domain.RunErrorCodeLaunch, false, // git does not always say why
		"git could not write all files below {where}, most likely because its disk is full", "free space there, or shorten keep of the checkout"},
	{regexp.MustCompile(`(?i)git: 'lfs' is not a git command|git-lfs.*(?:not found|no such file)`), "", domain.RunErrorCodeLaunch, true,
		"the repository keeps large files with Git LFS, and git-lfs is not installed", "install git-lfs for {who} (apt-get install git-lfs), then run: {shell} -- git lfs install"},
	{regexp.MustCompile(`(?i)smudge filter lfs failed|git-lfs|error downloading object|batch response`), "", domain.RunErrorCodeLaunch, false,
		"its large files (Git LFS) could not be fetched", "see whether {who} may read them: {shell} -- git lfs env"},
	{regexp.MustCompile(`(?i)host key verification failed`), "", domain.RunErrorCodeLaunch, true,
		"{who} does not know the key of the repository's host, and nobody can be asked", "connect once, and confirm the key: {shell} -- ssh -T with the host's name"},
	{regexp.MustCompile(`(?i)terminal prompts disabled|could not read (?:username|password)|authentication failed|permission denied \((?:publickey|password|keyboard)|access denied|returned error: (?:401|403)|invalid credentials|bad credentials`), "", domain.RunErrorCodeAuth, true,
		"{repository} asks who wants it, and {who} has no key or password for it", "log git in as that account ({shell}), with an ssh key or a credential helper, or give the executor a variable that git's helper reads"},
	{regexp.MustCompile(`(?i)transport '.*' not allowed`), "", domain.RunErrorCodeLaunch, true,
		"a part of the repository is at an address that is not allowed", "only https, http, ssh and git are fetched; change .gitmodules or the repository"},
	{regexp.MustCompile(`(?i)dubious ownership|unsafe repository`), "", domain.RunErrorCodeLaunch, true,
		"git refuses a repository that belongs to another account", "say that it may be used: {shell} -- git config --global --add safe.directory {repository}"},
	{regexp.MustCompile(`(?i)already checked out at|already used by worktree`), "", domain.RunErrorCodeLaunch, false,
		"its branch is checked out in another working copy", "remove that one (git worktree list shows it), if nobody needs it"},
	{regexp.MustCompile(`(?i)\.lock': file exists|another git process seems to be running`), "", domain.RunErrorCodeLaunch, false,
		"another git process holds a lock of the repository, or was killed and left it", "it is tried again by itself; if no git runs there, remove the lock file that is named below"},
	{regexp.MustCompile(`(?i)repository .*(?:not found|does not exist)|does not appear to be a git repository|not a git repository|returned error: 404|project not found`), "", domain.RunErrorCodeLaunch, true,
		"there is no repository at {repository}, or {who} may not see it", "correct repository of the checkout, or give {who} access"},
	{regexp.MustCompile(`(?i)could not resolve host|connection (?:refused|timed out|reset)|operation timed out|network is unreachable|no route to host|early eof|hung up unexpectedly|returned error: 5\d\d|unable to access|failed to connect|did not end within`), "", domain.RunErrorCodeLaunch, false,
		"{repository} could not be reached", "see whether this machine reaches it; it is tried again by itself"},
	{regexp.MustCompile(`(?i)bad object|bad revision|unknown revision|needed a single revision|not a valid object name|couldn't find remote ref|invalid reference|not a commit`), "", domain.RunErrorCodeLaunch, true,
		"{ref} is not there", "push it, or change ref of the checkout"},
	{regexp.MustCompile(`(?i)insufficient permission|permission denied|read-only file system`), "", domain.RunErrorCodeLaunch, false,
		"{who} may not write there", "let it, or choose another repository"},
}

// Explain says what happened, why, and what to do next.
func Explain(t Trouble) Explanation {
	said := strings.TrimSpace(t.Said)
	if t.Step == StepSetup {
		return Explanation{domain.RunErrorCodeLaunch, false, "could not set up the working copy, because the program in setup of the checkout failed: see its words in the run's log, run it by hand in " +
			t.fill("{where} ({shell})") + ", or change setup" + quote("it", said)}
	}
	for _, c := range cases {
		if (c.step == "" || c.step == t.Step) && c.words.MatchString(said) {
			return Explanation{c.code, c.permanent, t.fill(fmt.Sprintf("could not %s, because %s: %s", t.Step, c.why, c.do)) + quote("git", said)}
		}
	}
	return Explanation{domain.RunErrorCodeLaunch, false, t.fill(fmt.Sprintf("could not %s of {repository}, because git failed: see its words, and try it by hand ({shell})", t.Step)) + quote("git", said)}
}

func (t Trouble) fill(text string) string {
	ref := "the ref " + t.Ref
	if t.Ref == "" {
		ref = "a commit in the repository's default branch"
	}
	if t.Shell == "" {
		text = strings.NewReplacer("{shell} -- ", "", " ({shell})", "").Replace(text)
	}
	return strings.NewReplacer("{repository}", t.Repository, "{ref}", ref, "{where}", t.Where, "{who}", t.Who, "{shell}", t.Shell).Replace(text)
}

// mostSaid is how many bytes of git's words a message repeats; the last ones tell the most.
const mostSaid = 1500

func quote(who, said string) string {
	if said == "" {
		return ""
	}
	if len(said) > mostSaid {
		said = "…" + strings.ToValidUTF8(said[len(said)-mostSaid:], "")
	}
	return "; " + who + " said:\n" + said
}

// NeedsLFS says whether the text of a .gitattributes file hands files to Git LFS.
func NeedsLFS(attributes string) bool {
	for line := range strings.Lines(attributes) {
		line = strings.TrimSpace(line)
		if !strings.HasPrefix(line, "#") && strings.Contains(line, "filter=lfs") {
			return true
		}
	}
	return false
}
