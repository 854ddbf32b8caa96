package domain

// AcpPermissionPolicy answers the permission requests of an ACP agent.
//
//rouse:enum
type AcpPermissionPolicy string

const (
	AcpPermissionPolicyAllow    AcpPermissionPolicy = "ALLOW"     // allow all
	AcpPermissionPolicyReject   AcpPermissionPolicy = "REJECT"    // reject all
	AcpPermissionPolicyReadOnly AcpPermissionPolicy = "READ_ONLY" // allow reading, reject the rest
)
