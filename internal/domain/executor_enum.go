package domain

import "io"

// AcpPermissionPolicy answers the permission requests of an ACP agent.
type AcpPermissionPolicy string

const (
	AcpPermissionPolicyAllow    AcpPermissionPolicy = "ALLOW"     // allow all
	AcpPermissionPolicyReject   AcpPermissionPolicy = "REJECT"    // reject all
	AcpPermissionPolicyReadOnly AcpPermissionPolicy = "READ_ONLY" // allow reading, reject the rest
)

var acpPermissionPolicyValues = []AcpPermissionPolicy{
	AcpPermissionPolicyAllow,
	AcpPermissionPolicyReject,
	AcpPermissionPolicyReadOnly,
}

// Values lists every AcpPermissionPolicy.
func (AcpPermissionPolicy) Values() []string { return enumValues(acpPermissionPolicyValues) }

// MarshalGQL writes the value as the API spells it.
func (v AcpPermissionPolicy) MarshalGQL(w io.Writer) { marshalEnum(w, v) }

// UnmarshalGQL reads the value, or says which values there are.
func (v *AcpPermissionPolicy) UnmarshalGQL(in any) error {
	return unmarshalEnum(v, in, acpPermissionPolicyValues)
}
