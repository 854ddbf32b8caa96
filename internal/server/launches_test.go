package server

import (
	"strings"
	"testing"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/secret"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/worker"
	"rouse.dev/rouse/internal/xid"
)

// What was sealed stays readable: the places are spelled out as existing rows have them.
func TestValuesThatAreStoredOpenForLaunchesAndForTheMask(t *testing.T) {
	key, err := secret.ParseKey(strings.Repeat("0a1b", secret.KeySize/2))
	if err != nil {
		t.Fatal(err)
	}
	box, err := secret.NewBox(key)
	if err != nil {
		t.Fatal(err)
	}
	seal := func(text, place string) string {
		sealed, err := box.Seal(text, place)
		if err != nil {
			t.Fatal(err)
		}
		return sealed
	}
	const holder = xid.ID("agt_1")
	command := domain.ExecutorSpec{Command: &domain.CommandSpec{Argv: []string{"x"}, Environment: []domain.SealedValue{{Name: "KEY", Sealed: seal("hunter2hunter2", "agt_1/KEY")}}}}
	service := domain.ExecutorSpec{HTTP: &domain.HTTPSpec{URL: "https://agents.example.com", Secret: seal("signing-1", "agt_1/signing secret"),
		Headers: []domain.SealedValue{{Name: "Authorization", Sealed: seal("Bearer 8174502", "agt_1/Authorization")}}}}
	l := launches{secrets: box}
	environment, err := l.Environment(&store.Launch{Executor: command, ExecutorHolder: holder})
	if err != nil || environment[0].Name != "KEY" || environment[0].Value != "hunter2hunter2" {
		t.Errorf("%+v, %v", environment, err)
	}
	request, err := worker.RequestHere(box, &store.Launch{Executor: service, ExecutorHolder: holder}, "")
	if err != nil || request.Secret != "signing-1" || len(request.Headers) != 1 || request.Headers[0].Value != "Bearer 8174502" {
		t.Errorf("%+v, %v", request.Headers, err)
	}
	mask := l.Mask([]domain.SealedSet{command.Sealed(holder), service.Sealed(holder), (*domain.ExecutorSpec)(nil).Sealed("")})
	if got := mask("hunter2hunter2, signing-1, Bearer 8174502"); got != "***, ***, ***" {
		t.Errorf("masked: %q", got)
	}
	if got := mask(domain.CleanResult(map[string]any{"n": "signing-1"}, mask).(map[string]any)["n"].(string)); got != "***" {
		t.Errorf("masked: %q", got)
	}
	if got := domain.SealPlace("trg_1", "secret"); got != store.SecretPlace("trg_1") || got != "trg_1/secret" {
		t.Errorf("a trigger's secret is bound to %q", got)
	}
}
