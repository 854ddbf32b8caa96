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

// CheckoutPer says for what a working copy is made.
//
//rouse:enum
type CheckoutPer string

const (
	CheckoutPerTask CheckoutPer = "TASK" // one for all runs of a task
	CheckoutPerRun  CheckoutPer = "RUN"  // one for each run
)

// LinkKind says what a link leads to.
//
//rouse:enum
type LinkKind string

const (
	LinkKindPullRequest LinkKind = "PULL_REQUEST" // pull request
	LinkKindPreview     LinkKind = "PREVIEW"      // preview
	LinkKindOther       LinkKind = "OTHER"        // anything else
)
