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
	opened, err := p.openEnvironment(l)
	if err != nil {
		return executor.Request{}, err
	}
	signing, err := p.openSecret(l)
	if err != nil {
		return executor.Request{}, err
	}
	secrets := []string{l.RunToken.Reveal(), signing}
	for _, v := range opened {
		secrets = append(secrets, v.Value)
	}
	var headers []executor.Variable
	if l.Executor.HTTP != nil {
		headers, opened = opened, nil
	}
	return executor.Request{
		RunID: l.RunID, AgentID: l.AgentID, WorkspaceID: l.WorkspaceID, TaskID: l.TaskID, Attempt: l.Number,
		Prompt: l.Prompt, ResumeSessionID: l.ResumeSessionID, Spec: l.Executor,
		Environment: append(opened, runVariables(l, p.options.APIURL)...), Headers: headers, Secret: signing,
		Mask: secret.NewMasker(secrets...).Mask,
	}, nil
}

// runVariables tell the agent who it is and why it was woken (SPEC S7.4). All are set, ROUSE_TASK_ID empty for a taskless
// run.
func runVariables(l *store.Launch, apiURL string) []executor.Variable {
	payload := string(l.WakePayload)
	switch {
	case payload == "":
		payload = "{}"
	case len(payload) > maxPayload:
		payload = longPayload
	}
	return []executor.Variable{
		{Name: "ROUSE_API_URL", Value: apiURL},
		{Name: "ROUSE_RUN_TOKEN", Value: l.RunToken.Reveal()},
		{Name: "ROUSE_RUN_ID", Value: l.RunID.String()},
		{Name: "ROUSE_AGENT_ID", Value: l.AgentID.String()},
		{Name: "ROUSE_WORKSPACE_ID", Value: l.WorkspaceID.String()},
		{Name: "ROUSE_TASK_ID", Value: l.TaskID.String()},
		{Name: "ROUSE_WAKE_REASON", Value: string(l.WakeReason)},
		{Name: "ROUSE_WAKE_PAYLOAD_JSON", Value: payload},
	}
}

func (p *Pool) openEnvironment(l *store.Launch) ([]executor.Variable, error) {
	var opened []executor.Variable
	for _, v := range sealedValues(l.Executor) {
		plain, err := p.options.Secrets.Open(v.Sealed, Place(l.ExecutorHolder, v.Name))
		if err != nil {
			return nil, fmt.Errorf("the value of %s cannot be opened: %w (executor of %s)", v.Name, err, l.ExecutorHolder)
		}
		opened = append(opened, executor.Variable{Name: v.Name, Value: plain})
	}
	return opened, nil
}

// openSecret opens what requests to an agent service are signed with; "" when they are not.
func (p *Pool) openSecret(l *store.Launch) (string, error) {
	if l.Executor.HTTP == nil || l.Executor.HTTP.Secret == "" {
		return "", nil
	}
	plain, err := p.options.Secrets.Open(l.Executor.HTTP.Secret, Place(l.ExecutorHolder, domain.HTTPSecretName))
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
	}
	return nil
}
