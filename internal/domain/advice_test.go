package domain

import (
	"strings"
	"testing"
)

func TestWhatIsAdvisedOfASecret(t *testing.T) {
	for value, want := range map[string]AdvisoryCode{
		"":                                      "",
		"1":                                     AdvisorySecretTooShort,
		"prod":                                  AdvisorySecretTooShort,
		"8080":                                  AdvisorySecretTooShort,
		"hun":                                   AdvisorySecretTooShort,
		"production":                            AdvisorySecretIsCommon,
		"Production":                            AdvisorySecretIsCommon,
		" staging ":                             AdvisorySecretIsCommon,
		"development":                           AdvisorySecretIsCommon,
		"master":                                AdvisorySecretIsCommon,
		"123456":                                AdvisorySecretIsCommon,
		"3600.5s":                               AdvisorySecretIsCommon,
		"v1.26.0":                               AdvisorySecretIsCommon,
		"en_US.UTF-8":                           AdvisorySecretIsCommon,
		"Europe/Berlin":                         AdvisorySecretIsCommon,
		"application/json":                      AdvisorySecretIsCommon,
		"text/plain; charset=utf-8":             AdvisorySecretIsCommon,
		"xterm-256color":                        AdvisorySecretIsCommon,
		"https://api.example.com/v1":            AdvisorySecretIsAddress,
		"http://127.0.0.1:8080/graphql":         AdvisorySecretIsAddress,
		"https://api.example.com/?region=north": AdvisorySecretIsAddress,
		"postgres://app@db.example.com/app":     AdvisorySecretIsAddress,
		"db.example.com:5432":                   AdvisorySecretIsAddress,
		"localhost:3000":                        AdvisorySecretIsAddress,
		"/srv/repository":                       AdvisorySecretIsAddress,
		"postgres://app:hunter2@db.example.com/app":        "",
		"https://ghp_16C7e42F292c6912E7@github.com/a/b":    "",
		"https://hooks.example.com/T0/B0/aB3dE5gH7jK9mN1p": "",
		"https://api.example.com/?api_key=hunter2":         "",
		"https://api.example.com/?sig=x":                   "",
		"/run/secrets/aB3dE5gH7jK9mN1p":                    "",
		"hunter2":                                          "",
		"sk-ant-api03-abcdef":                              "",
		"Bearer hunter2hunter2":                            "",
		"correct horse battery staple":                     "",
		"9f86d081884c7d659a2feaa0c55ad015":                 "",
		"1234567890":                                       "",
	} {
		got := SecretAdvice(value)
		if got != want {
			t.Errorf("%q: %q, want %q", value, got, want)
		}
		if text := AdviceText(got, "KEY"); (got == "") != (text == "") || len(strings.TrimSpace(value)) > 5 && strings.Contains(text, value) {
			t.Errorf("%q: it says %q", value, text)
		}
	}
}

// What is kept stays a secret, or none; what was a secret is removed with a word, and what was none without.
func TestAValueThatIsKeptStaysASecretOrNone(t *testing.T) {
	plain := "production"
	stored := []SealedValue{{Name: "KEY", Sealed: "sealed"}, {Name: "NODE_ENV", Plain: &plain}}
	of := func(values ...SealedValue) *ExecutorSpec {
		return &ExecutorSpec{Command: &CommandSpec{Environment: values}}
	}
	for name, c := range map[string]struct {
		after   *ExecutorSpec
		removed string
		problem string
	}{
		"both are kept":                   {of(SealedValue{Name: "KEY", Keep: true}, SealedValue{Name: "NODE_ENV", Keep: true}), "", ""},
		"none is kept":                    {of(), "command.environment.KEY", ""},
		"what is none is kept as none":    {of(SealedValue{Name: "KEY", Keep: true}, SealedValue{Name: "NODE_ENV", Keep: true, KeepPlain: true}), "", ""},
		"a secret is not kept as none":    {of(SealedValue{Name: "KEY", Keep: true, KeepPlain: true}), "", "command.environment.0.secret"},
		"a secret is given again as none": {of(SealedValue{Name: "KEY", Plain: &plain}), "", ""},
	} {
		removed, problems := KeepSecrets(of(stored...), c.after, nil)
		if got := strings.Join(removed, " "); got != c.removed {
			t.Errorf("%s: removed %q, want %q", name, got, c.removed)
		}
		got := ""
		for _, p := range problems {
			got += strings.Join(p.Field, ".")
		}
		if got != c.problem {
			t.Errorf("%s: problems %q, want %q", name, got, c.problem)
		}
	}
	if sealed := of(stored...).Sealed("agt_1").Values; len(sealed) != 1 || sealed[0].Name != "KEY" {
		t.Errorf("masked and kept beside a run are %+v", sealed)
	}
	if all := of(stored...).Values("agt_1").Values; len(all) != 2 {
		t.Errorf("given to the agent are %+v", all)
	}
}
