package domain

// NotificationChannelKind is how a channel tells.
//
//rouse:enum
type NotificationChannelKind string

const (
	NotificationChannelKindWebhook NotificationChannelKind = "WEBHOOK" // a POST signed as Standard Webhooks have it
	NotificationChannelKindSlack   NotificationChannelKind = "SLACK"   // an incoming webhook of Slack, or of what takes its form
	NotificationChannelKindJSON    NotificationChannelKind = "JSON"    // a POST of JSON by a template
	NotificationChannelKindEmail   NotificationChannelKind = "EMAIL"   // a message by SMTP
)

// NotificationEvent is what a notification tells of.
//
//rouse:enum
type NotificationEvent string

const (
	NotificationEventInboxItem      NotificationEvent = "INBOX_ITEM"      // an item came into the inbox
	NotificationEventRunFailed      NotificationEvent = "RUN_FAILED"      // a run failed for good
	NotificationEventVerdictChanged NotificationEvent = "VERDICT_CHANGED" // the verdict on the loop is another one
	NotificationEventTest           NotificationEvent = "TEST"            // somebody tests the channel
)

// NotificationStatus is where a notification stands.
//
//rouse:enum
type NotificationStatus string

const (
	NotificationStatusPending   NotificationStatus = "PENDING"   // it is to be delivered
	NotificationStatusDelivered NotificationStatus = "DELIVERED" // the receiver has taken it
	NotificationStatusFailed    NotificationStatus = "FAILED"    // it was given up
)

// NotificationOutcome is what came of an attempt to deliver.
//
//rouse:enum
type NotificationOutcome string

const (
	NotificationOutcomeDelivered NotificationOutcome = "DELIVERED" // the receiver has taken it
	NotificationOutcomeRetried   NotificationOutcome = "RETRIED"   // it failed and is tried again
	NotificationOutcomeGaveUp    NotificationOutcome = "GAVE_UP"   // it failed and is not tried again
)

// SMTPSecurity is how a connection to a mail server is encrypted.
//
//rouse:enum
type SMTPSecurity string

const (
	SMTPSecurityStartTLS SMTPSecurity = "STARTTLS" // the connection becomes TLS before anything is said, port 587
	SMTPSecurityTLS      SMTPSecurity = "TLS"      // it is TLS from the start, port 465
	SMTPSecurityNone     SMTPSecurity = "NONE"     // it is not encrypted: for allowed addresses alone
)
