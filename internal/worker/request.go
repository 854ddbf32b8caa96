package worker

import (
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/executor"
	"rouse.dev/rouse/internal/secret"
	"rouse.dev/rouse/internal/store"
)

// maxPayload bounds ROUSE_WAKE_PAYLOAD_JSON: the system refuses a longer variable than 128 KiB, and with it the launch.
const maxPayload = 96 << 10

// longPayload stands for a payload that is too long for a variable; the agent reads it through the API.
const longPayload = `{"too_long":true}`

// request makes the executor's request of a launch. Its error says which secret cannot be opened; it holds no secret.
func (p *Pool) request(l *store.Launch) (executor.Request, error) {
	if p.options.Prepare != nil {
		return p.options.Prepare(l)
	}
	return RequestHere(p.options.Secrets, l, p.options.APIURL)
}

// RequestHere is the executor's request of a launch on this machine, its secrets opened. Its error says which one cannot be
// opened; it holds none.
func RequestHere(secrets Opener, l *store.Launch, apiURL string) (executor.Request, error) {
	o, err := open(secrets, l)
	if err != nil {
		return executor.Request{}, err
	}
	known, run := append(o.secrets, openAll(secrets, l.Former)...), runVariables(l, apiURL)
	if l.Executor.HTTP == nil {
		return Request(l, append(o.values, run...), known...), nil
	}
	request := Request(l, run, append(known, o.signing)...)
	request.Headers, request.Secret = o.values, o.signing
	return request, nil
}

// Request is the executor's request of a launch with an environment. The run token and the secrets are masked in all that
// the agent says.
func Request(l *store.Launch, environment []executor.Variable, secrets ...string) executor.Request {
	return executor.Request{
		RunID: l.RunID, AgentID: l.AgentID, WorkspaceID: l.WorkspaceID, TaskID: l.TaskID, Attempt: l.Number,
		Prompt: l.Prompt, ResumeSessionID: l.ResumeSessionID, FullPrompt: l.FullPrompt, Spec: l.Executor, Environment: environment, Log: l.Log,
		Mask: secret.NewMasker(append(secrets, l.RunToken.Reveal())...).Mask,
	}
}

// Environment is the agent's environment in plain text, for a worker elsewhere: the opened values of its executor, then
// the variables of SPEC S7.4. isSecret says of a name whether its value is to be masked. The error says which secret cannot be
// opened; it holds no secret.
func Environment(secrets Opener, l *store.Launch, apiURL string) (variables []executor.Variable, isSecret func(name string) bool, err error) {
	o, err := open(secrets, l)
	if err != nil {
		return nil, nil, err
	}
	masked := map[string]bool{"ROUSE_RUN_TOKEN": true}
	for _, v := range l.Executor.Sealed(l.ExecutorHolder).Values {
		masked[v.Name] = true
	}
	return append(o.values, runVariables(l, apiURL)...), func(name string) bool { return masked[name] }, nil
}

// Mask hides sealed values in a text.
func Mask(secrets Opener, sets []domain.SealedSet) func(string) string {
	return secret.NewMasker(openAll(secrets, sets)...).Mask
}

// openAll opens sealed values to be hidden. One that cannot be opened has not been opened for an agent either, or its key is gone since.
func openAll(secrets Opener, sets []domain.SealedSet) []string {
	var values []string
	for _, set := range sets {
		for _, v := range set.Values {
			if plain, err := secrets.Open(v.Sealed, domain.SealPlace(set.Holder, v.Name)); err == nil {
				values = append(values, plain)
			}
		}
	}
	return values
}

// runVariables tell the agent who it is and why it was woken (SPEC S7.4). All are set, ROUSE_TASK_ID empty for a taskless
// run; ROUSE_RESUME_SESSION_ID only where there is a session to resume.
func runVariables(l *store.Launch, apiURL string) []executor.Variable {
	payload := string(l.WakePayload)
	switch {
	case payload == "":
		payload = "{}"
	case len(payload) > maxPayload:
		payload = longPayload
	}
	variables := []executor.Variable{
		{Name: "ROUSE_API_URL", Value: apiURL},
		{Name: "ROUSE_RUN_TOKEN", Value: l.RunToken.Reveal()},
		{Name: "ROUSE_RUN_ID", Value: l.RunID.String()},
		{Name: "ROUSE_AGENT_ID", Value: l.AgentID.String()},
		{Name: "ROUSE_WORKSPACE_ID", Value: l.WorkspaceID.String()},
		{Name: "ROUSE_TASK_ID", Value: l.TaskID.String()},
		{Name: "ROUSE_WAKE_REASON", Value: string(l.WakeReason)},
		{Name: "ROUSE_WAKE_PAYLOAD_JSON", Value: payload},
	}
	if l.ResumeSessionID != "" {
		variables = append(variables, executor.Variable{Name: "ROUSE_RESUME_SESSION_ID", Value: l.ResumeSessionID})
	}
	return variables
}

// opened is what a launch's executor gives its agent.
type opened struct {
	values  []executor.Variable // the environment or headers
	secrets []string            // the values among them that are secret
	signing string              // what requests to an agent service are signed with; "" when they are not
}

// open opens what a launch seals. Its error says which value cannot be opened, and holds none.
func open(secrets Opener, l *store.Launch) (o opened, err error) {
	given := l.Executor.Values(l.ExecutorHolder)
	for _, v := range given.Values {
		if !v.Secret() {
			o.values = append(o.values, executor.Variable{Name: v.Name, Value: *v.Plain})
			continue
		}
		plain, err := secrets.Open(v.Sealed, domain.SealPlace(given.Holder, v.Name))
		switch {
		case err != nil && v.Name == domain.HTTPSecretName:
			return o, fmt.Errorf("the signing secret cannot be opened: %w (executor of %s)", err, given.Holder)
		case err != nil:
			return o, fmt.Errorf("the value of %s cannot be opened: %w (executor of %s)", v.Name, err, given.Holder)
		case v.Name == domain.HTTPSecretName:
			o.signing = plain
		default:
			o.values, o.secrets = append(o.values, executor.Variable{Name: v.Name, Value: plain}), append(o.secrets, plain)
		}
	}
	return o, nil
}
