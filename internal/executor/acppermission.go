//go:build unix

package executor

import (
	acp "github.com/coder/acp-go-sdk"

	"rouse.dev/rouse/internal/domain"
)

// reading are the kinds of tool that READ_ONLY lets pass: they look at the agent's folder, or at nothing.
var reading = map[acp.ToolKind]bool{acp.ToolKindRead: true, acp.ToolKindSearch: true, acp.ToolKindThink: true}

// permit answers a permission request by the agent's policy: the chosen option, whether it allows, and false when the
// agent offers none that fits. Of two that fit, the one that holds once is taken. A tool of unknown kind is not reading.
func permit(policy domain.AcpPermissionPolicy, kind acp.ToolKind, options []acp.PermissionOption) (id acp.PermissionOptionId, allow, ok bool) {
	allow = policy == domain.AcpPermissionPolicyAllow || policy == domain.AcpPermissionPolicyReadOnly && reading[kind]
	wanted := []acp.PermissionOptionKind{acp.PermissionOptionKindRejectOnce, acp.PermissionOptionKindRejectAlways}
	if allow {
		wanted = []acp.PermissionOptionKind{acp.PermissionOptionKindAllowOnce, acp.PermissionOptionKindAllowAlways}
	}
	for _, want := range wanted {
		for _, option := range options {
			if option.Kind == want {
				return option.OptionId, allow, true
			}
		}
	}
	return "", allow, false
}

// fileAccess is what an agent may do through rouse in its folder.
func fileAccess(policy domain.AcpPermissionPolicy) acp.FileSystemCapabilities {
	return acp.FileSystemCapabilities{
		ReadTextFile:  policy == domain.AcpPermissionPolicyAllow || policy == domain.AcpPermissionPolicyReadOnly,
		WriteTextFile: policy == domain.AcpPermissionPolicyAllow,
	}
}
