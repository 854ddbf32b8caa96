package workcopy

import (
	"strings"
	"testing"
	"time"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/xid"
)

func TestParseRepository(t *testing.T) {
	for _, c := range []struct {
		name, text string
		want       Repository
		problem    string // a part of it
	}{
		{"a path is a repository of this machine", "/srv/app", Repository{Path: "/srv/app"}, ""},
		{"so is one that is bare", "/srv/app.git", Repository{Path: "/srv/app.git"}, ""},
		{"an https address is one elsewhere", "https://example.com/team/app.git", Repository{Address: "https://example.com/team/app.git"}, ""},
		{"so is one with a port", "http://127.0.0.1:8080/app", Repository{Address: "http://127.0.0.1:8080/app"}, ""},
		{"ssh may name its user", "ssh://git@example.com:2222/app", Repository{Address: "ssh://git@example.com:2222/app"}, ""},
		{"ssh's short form is an address", "git@example.com:team/app.git", Repository{Address: "git@example.com:team/app.git"}, ""},
		{"so it is without a user", "example.com:team/app.git", Repository{Address: "example.com:team/app.git"}, ""},
		{"nothing is no repository", "", Repository{}, "name the repository"},
		{"a path that climbs is refused", "/srv/../etc", Repository{}, "such as /etc"},
		{"a path from here on is refused", "app", Repository{}, "absolute path"},
		{"a password would be seen", "https://ada:secret@example.com/app", Repository{}, "no user and password"},
		{"a token as user would be seen", "https://ghp_abc@example.com/app", Repository{}, "no user and password"},
		{"a password of ssh would be seen", "ssh://git:secret@example.com/app", Repository{}, "no user and password"},
		{"a token behind a question mark would be seen", "https://example.com/app?token=1", Repository{}, "neither ? nor #"},
		{"a helper would be run", "ext::sh -c id", Repository{}, "transport helper"},
		{"a path is not given as an address", "file:///srv/app", Repository{}, "must begin with https"},
		{"a host is no option of ssh", "-oProxyCommand=id:app", Repository{}, "absolute path"},
		{"nor is one in an address", "ssh://-oProxyCommand=id/app", Repository{}, "must be an address"},
		{"nor is a path of ssh", "example.com:-app", Repository{}, "absolute path"},
		{"an address needs a path", "https://example.com/", Repository{}, "must have a path"},
		{"a line's end hides something", "/srv/app\nx", Repository{}, "one line"},
		{"an endless one is refused", "/" + strings.Repeat("a", 5000), Repository{}, "4096"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, problem := ParseRepository(c.text)
			if got != c.want || (problem == "") != (c.problem == "") || !strings.Contains(problem, c.problem) {
				t.Errorf("ParseRepository(%q) = %+v, %q", c.text, got, problem)
			}
		})
	}
}

func TestCheckRef(t *testing.T) {
	for ref, good := range map[string]bool{
		"": true, "main": true, "release/1.2": true, "v1.2.3": true, "refs/heads/main": true, "4f0e1d2c": true, "HEAD": true,
		"-f": false, "--upload-pack=id": false, "a..b": false, "main~1": false, "main^": false, "a b": false, "a\nb": false, "x.lock": false, "/a": false, "a/": false,
		"a//b": false, "HEAD@{1}": false, "a:b": false, "*": false, ".a": false, "a/.b": false, "a.": false, strings.Repeat("a", 251): false,
	} {
		if problem := CheckRef(ref); (problem == "") != good {
			t.Errorf("CheckRef(%q) = %q", ref, problem)
		}
	}
}

func TestNames(t *testing.T) {
	task, run := xid.ID("tsk_1"), xid.ID("run_1")
	for _, c := range []struct {
		name string
		got  any
		want any
	}{
		{"a task's runs share one", Owner(domain.CheckoutPerTask, task, run), task},
		{"each run has one of its own", Owner(domain.CheckoutPerRun, task, run), run},
		{"a run without a task has one of its own", Owner(domain.CheckoutPerTask, "", run), run},
		{"the branch is named after it", Branch(task), "rouse/tsk_1"},
		{"another repository has another folder", Name(task, "/a") == Name(task, "/b"), false},
		{"a folder is named after its task", strings.HasPrefix(Name(task, "/a"), "tsk_1-"), true},
		{"two machines have two keys", Key("a", "h1", "/t") == Key("a", "h2", "/t"), false},
		{"work of a task goes on at its branch", Begin(Beginnings{Branch: true, Pushed: true}), AtBranch},
		{"or at what was pushed of it", Begin(Beginnings{Pushed: true}), AtPushed},
		{"new work begins at the ref", Begin(Beginnings{}), AtRef},
	} {
		if c.got != c.want {
			t.Errorf("%s: got %v, want %v", c.name, c.got, c.want)
		}
	}
}

func TestDecide(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	ended := domain.CopyOwner{Exists: true, EndedAt: now.Add(-2 * time.Hour)}
	none := &Work{}
	for _, c := range []struct {
		name string
		f    Facts
		want Verdict
	}{
		{"while its task goes on it stays", Facts{Made: true, Owner: domain.CopyOwner{Exists: true}, Work: none}, Stay},
		{"while an attempt works in it it stays", Facts{Made: true, InUse: true, Owner: ended, Work: none}, Stay},
		{"for its time after the end it stays", Facts{Made: true, Owner: ended, Keep: 3 * time.Hour, Work: none}, Stay},
		{"at the end of its time it is looked at", Facts{Made: true, Owner: ended, Keep: 2 * time.Hour}, Look},
		{"without work in it it goes", Facts{Made: true, Owner: ended, Work: none}, Remove},
		{"uncommitted work holds it", Facts{Made: true, Owner: ended, Work: &Work{Uncommitted: 1}}, Hold},
		{"unpushed work holds it", Facts{Made: true, Owner: ended, Work: &Work{Unpushed: 1}}, Hold},
		{"what cannot be read holds it", Facts{Made: true, Owner: ended, Work: &Work{Unreadable: "no"}}, Hold},
		{"one that was never made goes without a look", Facts{Owner: ended}, Remove},
		{"one that is being made stays", Facts{Owner: domain.CopyOwner{Exists: true}}, Stay},
		{"one whose task is gone is looked at", Facts{Made: true, MadeAt: now.Add(-time.Hour)}, Look},
		{"work in it holds it all the same", Facts{Made: true, MadeAt: now.Add(-time.Hour), Work: &Work{Unpushed: 1}}, Hold},
		{"its time counts from its making", Facts{Made: true, MadeAt: now.Add(-time.Hour), Keep: 2 * time.Hour}, Stay},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := Decide(c.f, now); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestReasons(t *testing.T) {
	for _, c := range []struct {
		w    Work
		want []string
	}{
		{Work{Uncommitted: 1}, []string{"1 file with changes that are not committed", "commit the changes"}},
		{Work{Uncommitted: 2, Unpushed: 3}, []string{"2 files", "and 3 commits that are not pushed", "push or merge rouse/x"}},
		{Work{Unreadable: "not a git repository\n"}, []string{"git does not tell what is in it: not a git repository."}},
	} {
		got := c.w.Reason("/copies/x", "rouse/x")
		for _, want := range append(c.want, "/copies/x") {
			if !strings.Contains(got, want) {
				t.Errorf("%+v: %q lacks %q", c.w, got, want)
			}
		}
	}
}

func TestExplain(t *testing.T) {
	for _, c := range []struct {
		name, said string
		step       Step
		code       domain.RunErrorCode
		permanent  bool
		want       string
	}{
		{"a full disk may have room later", "fatal: write error: No space left on device", StepAdd, domain.RunErrorCodeLaunch, false, "the disk of /copies is full"},
		{"a full disk of which git 2.39 does not say so", "error: unable to write file large.bin\nfatal: Could not reset index file to revision 'HEAD'.", StepAdd, domain.RunErrorCodeLaunch, false, "most likely because its disk is full"},
		{"a quota is a full disk", "error: unable to write file: Disk quota exceeded", StepFetch, domain.RunErrorCodeLaunch, false, "is full"},
		{"a ref that is not there stays away", "fatal: Needed a single revision", StepResolve, domain.RunErrorCodeLaunch, true, "the ref v9 is not there"},
		{"a password is not asked for", "fatal: could not read Username for 'https://example.com': terminal prompts disabled", StepFetch, domain.RunErrorCodeAuth, true, "log git in"},
		{"a key that is refused is no login", "git@example.com: Permission denied (publickey).", StepFetch, domain.RunErrorCodeAuth, true, "no key or password"},
		{"a token that is refused is no login", "remote: Invalid credentials\nfatal: Authentication failed for 'https://example.com/'", StepFetch, domain.RunErrorCodeAuth, true, "no key or password"},
		{"a host that nobody knows is to be confirmed", "Host key verification failed.\nfatal: Could not read from remote repository.", StepFetch, domain.RunErrorCodeLaunch, true, "confirm the key"},
		{"a network comes back", "fatal: unable to access 'https://x/': Could not resolve host: x", StepFetch, domain.RunErrorCodeLaunch, false, "could not be reached"},
		{"a remote that is too slow is asked again", "\nit did not end within 20m0s and was ended", StepFetch, domain.RunErrorCodeLaunch, false, "could not be reached"},
		{"no repository is no repository", "fatal: '/srv/app' does not appear to be a git repository", StepFetch, domain.RunErrorCodeLaunch, true, "there is no repository at"},
		{"a hidden repository is told alike", "remote: Repository not found.\nfatal: repository 'https://x/' not found", StepFetch, domain.RunErrorCodeLaunch, true, "may not see it"},
		{"a foreign repository is not trusted", "fatal: detected dubious ownership in repository at '/srv/app'", StepFind, domain.RunErrorCodeLaunch, true, "safe.directory"},
		{"a branch is checked out once", "fatal: 'rouse/tsk_1' is already checked out at '/x'", StepAdd, domain.RunErrorCodeLaunch, false, "another working copy"},
		{"newer git says it so", "fatal: 'rouse/tsk_1' is already used by worktree at '/x'", StepAdd, domain.RunErrorCodeLaunch, false, "another working copy"},
		{"a lock is waited for", "fatal: Unable to create '/x/packed-refs.lock': File exists.", StepAdd, domain.RunErrorCodeLaunch, false, "remove the lock file"},
		{"large files need git-lfs", "git: 'lfs' is not a git command. See 'git --help'.", StepLFS, domain.RunErrorCodeLaunch, true, "install git-lfs"},
		{"large files that cannot be fetched", "error: external filter 'git-lfs filter-process' failed\nfatal: a.bin: smudge filter lfs failed", StepAdd, domain.RunErrorCodeLaunch, false, "large files (Git LFS) could not be fetched"},
		{"a submodule that cannot be fetched", "fatal: clone of 'https://x/lib' into submodule path '/y/lib' failed\nfatal: could not resolve host x", StepSubmodules, domain.RunErrorCodeLaunch, false, "could not fetch the submodules"},
		{"a submodule at an address that is not allowed", "fatal: transport 'ext' not allowed", StepSubmodules, domain.RunErrorCodeLaunch, true, ".gitmodules"},
		{"a folder that is shut", "error: insufficient permission for adding an object to repository database ./objects", StepAdd, domain.RunErrorCodeLaunch, false, "may not write there"},
		{"a setup that fails is its own matter", "it ended with code 1\nnpm ERR!", StepSetup, domain.RunErrorCodeLaunch, false, "the program in setup"},
		{"what is not known is told in git's words", "fatal: the moon is down", StepAdd, domain.RunErrorCodeLaunch, false, "git said:\nfatal: the moon is down"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := Explain(Trouble{Step: c.step, Repository: "https://example.com/app", Ref: "v9", Where: "/copies", Who: "the agents' account", Shell: "rouse agent-shell", Said: c.said})
			if got.Code != c.code || got.Permanent != c.permanent || !strings.Contains(got.Message, c.want) || strings.ContainsAny(got.Message, "{}") {
				t.Errorf("got %+v", got)
			}
		})
	}
}

func TestLongWordsAreCut(t *testing.T) {
	got := Explain(Trouble{Step: StepAdd, Said: strings.Repeat("é", 5000) + " the end"}).Message
	if len(got) > 3000 || !strings.HasSuffix(got, "the end") {
		t.Errorf("%d bytes: %.80q", len(got), got)
	}
}

func TestNeedsLFS(t *testing.T) {
	for text, want := range map[string]bool{"*.bin filter=lfs diff=lfs merge=lfs -text\n": true, "# *.bin filter=lfs\n": false, "*.go text\n": false, "": false} {
		if NeedsLFS(text) != want {
			t.Errorf("%q: %v", text, !want)
		}
	}
}
