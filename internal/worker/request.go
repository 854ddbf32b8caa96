package worker

import (
	"fmt"

	"rouse.dev/rouse/internal/domain"
	"rouse.dev/rouse/internal/executor"
	"rouse.dev/rouse/internal/secret"
	"rouse.dev/rouse/internal/store"
	"rouse.dev/rouse/internal/xid"
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
	opened, err := openEnvironment(secrets, l.Executor, l.ExecutorHolder)
	if err != nil {
		return executor.Request{}, err
	}
	signing, err := openSecret(secrets, l)
	if err != nil {
		return executor.Request{}, err
	}
	known, run := valuesOf(opened), runVariables(l, apiURL)
	if l.Executor.HTTP == nil {
		return Request(l, append(opened, run...), known...), nil
	}
	request := Request(l, run, append(known, signing)...)
	request.Headers, request.Secret = opened, signing
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

// Environment is what the agent of a launch is given in plain text, for a worker elsewhere: the values of its executor,
// opened, then the variables of SPEC S7.4. Its error says which secret cannot be opened; it holds no secret.
func Environment(secrets Opener, l *store.Launch, apiURL string) ([]executor.Variable, error) {
	opened, err := openEnvironment(secrets, l.Executor, l.ExecutorHolder)
	if err != nil {
		return nil, err
	}
	return append(opened, runVariables(l, apiURL)...), nil
}

// Mask hides in a text the sealed values of a spec, whose record is holder. What cannot be opened has never been said.
func Mask(secrets Opener, spec *domain.ExecutorSpec, holder xid.ID) func(string) string {
	var values []string
	if spec != nil {
		for _, v := range sealedValues(*spec) {
			if plain, err := secrets.Open(v.Sealed, Place(holder, v.Name)); err == nil {
				values = append(values, plain)
			}
		}
		if spec.HTTP != nil && spec.HTTP.Secret != "" {
			if plain, err := secrets.Open(spec.HTTP.Secret, Place(holder, domain.HTTPSecretName)); err == nil {
				values = append(values, plain)
			}
		}
	}
	return secret.NewMasker(values...).Mask
}

func valuesOf(variables []executor.Variable) []string {
	values := make([]string, len(variables))
	for i, v := range variables {
		values[i] = v.Value
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

func openEnvironment(secrets Opener, spec domain.ExecutorSpec, holder xid.ID) ([]executor.Variable, error) {
	var opened []executor.Variable
	for _, v := range sealedValues(spec) {
		plain, err := secrets.Open(v.Sealed, Place(holder, v.Name))
		if err != nil {
			return nil, fmt.Errorf("the value of %s cannot be opened: %w (executor of %s)", v.Name, err, holder)
		}
		opened = append(opened, executor.Variable{Name: v.Name, Value: plain})
	}
	return opened, nil
}

// openSecret opens what requests to an agent service are signed with; "" when they are not.
func openSecret(secrets Opener, l *store.Launch) (string, error) {
	if l.Executor.HTTP == nil || l.Executor.HTTP.Secret == "" {
		return "", nil
	}
	plain, err := secrets.Open(l.Executor.HTTP.Secret, Place(l.ExecutorHolder, domain.HTTPSecretName))
	if err != nil {
		return "", fmt.Errorf("the signing secret cannot be opened: %w (executor of %s)", err, l.ExecutorHolder)
	}
	return plain, nil
}

// Place is what the value of a variable is bound to when it is sealed: the record that holds the executor, and its name.
func Place(holder xid.ID, variable string) string { return holder.String() + "/" + variable }

func sealedValues(spec domain.ExecutorSpec) []domain.SealedValue {
	switch {
	case spec.Command != nil:
		return spec.Command.Environment
	case spec.ACP != nil:
		return spec.ACP.Environment
	case spec.HTTP != nil:
		return spec.HTTP.Headers
	case spec.Pull != nil && spec.Pull.Command != nil:
		return spec.Pull.Command.Environment
	}
	return nil
}
