package archtest

// Words for groups of packages in the table.
const (
	pure   = "pure"    // rules: facts in, a decision out
	anyEnt = "ent/..." // the generated access to the database
)

// purePackages hold rules. They see nothing of the world: neither database nor network nor files, and no clock.
var purePackages = []string{"internal/domain", "internal/cron", "internal/retry", "internal/preset", "internal/prompt", "internal/summary", "internal/liveness", "internal/workcopy"}

// testPackages exist for tests; a program that is shipped must not hold them.
var testPackages = []string{
	"graph/graphtest", "internal/archtest", "internal/edge/internal/testgraph", "internal/feedtest", "internal/forkchain", "internal/hello",
	"internal/lifecycle/lifecycletest", "internal/modelserver", "internal/modeltest", "internal/modeltest/model", "internal/mutants", "internal/pgprofile", "internal/pgtest", "internal/queuebench",
	"internal/schemadiff", "internal/together",
}

// room says which packages of ours a package may import, and why not others. "x/..." is x and all below it.
type room struct {
	name string
	may  []string
	why  string
}

// rooms lists every package of ours but the generated ones. Imports only go down: a package imports what stands above it.
// To add a package, add its line, with the fewest imports that do.
var rooms = []room{
	// The vocabulary and the rules.
	{"internal/xid", nil, "an id is a word of the vocabulary: it needs nothing"},
	{"internal/domain", []string{"internal/xid"}, "the vocabulary knows nothing of who uses it"},
	{"internal/cron", []string{"internal/domain"}, "rules are pure functions of the vocabulary"},
	{"internal/retry", []string{"internal/domain"}, "rules are pure functions of the vocabulary"},
	{"internal/preset", []string{"internal/domain"}, "arguments and lines go in, arguments and words come out; amounts are read as everywhere"},
	{"internal/prompt", []string{"internal/domain", "internal/xid"}, "rules are pure functions of the vocabulary"},
	{"internal/summary", []string{"internal/domain", "internal/xid"}, "rules are pure functions of the vocabulary"},
	{"internal/liveness", []string{"internal/domain", "internal/xid"}, "rules are pure functions of the vocabulary"},

	{"internal/workcopy", []string{"internal/domain", "internal/xid"}, "rules are pure functions of the vocabulary"},

	// What touches the world, each part by itself.
	{"internal/git", nil, "it runs git, whatever the repository is for, and whoever runs it"},
	{"internal/pause", nil, "it waits, whatever comes after"},
	{"internal/ownthread", nil, "it runs a function, whatever that does"},
	{"internal/account", []string{"internal/ownthread"}, "it knows the system's accounts, not what runs under them"},
	{"internal/proc", nil, "it reads what the system tells of processes, whosoever they are"},
	{"internal/agentstage", nil, "it is the last step before an agent's program, and begins before the rest of the program"},
	{"internal/sparing", nil, "it counts lines of the log, whatever they say"},
	{"internal/lifecycle", nil, "every loop stands on it"},
	{"internal/secret", nil, "it seals and masks bytes, whosoever they are"},
	{"internal/share", nil, "it counts places, whosesoever they are"},
	{"internal/topic", nil, "it shares what is read among those who watch, whatever it is"},
	{"internal/batch", nil, "it gathers keys, whatever they stand for"},
	{"internal/config", []string{"internal/account", "internal/domain", "internal/secret"}, "settings are plain values"},
	{"internal/auth", []string{"internal/domain", "internal/secret", "internal/xid"}, "who calls is settled without the database"},
	{"internal/tokenfile", []string{"internal/auth"}, "a file and what may stand in it; whether the token counts is the database's word"},
	{"internal/metrics", []string{"internal/domain", "internal/xid"}, "counting is called by all and calls nobody"},
	{"internal/event", []string{"internal/domain", "internal/lifecycle", "internal/pause", "internal/xid"}, "events carry ids; who reads the rows is not its matter"},
	{"internal/postgres", []string{"internal/account", "internal/domain", "internal/xid"}, "it runs a database and does not know what the tables mean"},
	{"internal/outbound", nil, "it calls addresses, whatever is sent there"},
	{"internal/executor", []string{"internal/account", "internal/agentstage", "internal/domain", "internal/git", "internal/outbound", "internal/ownthread", "internal/pause", "internal/preset", "internal/proc", "internal/retry", "internal/workcopy", "internal/xid"}, "an executor runs one request and never sees the store"},
	{"internal/edge", []string{"internal/auth", "internal/domain", "internal/metrics", "internal/secret", "internal/share", "internal/sparing", "internal/xid"}, "limits and access hold for any schema"},
	{"internal/mcpserver", []string{"internal/pause", "internal/secret"}, "it gives an agent's model what the API lets it do: it knows the API alone"},
	{"internal/console", nil, "the page holds no data; all it shows comes from the API"},

	// Storage: every write and all SQL.
	{"ent/schema", []string{"internal/domain", "internal/xid"}, "tables take their words from the vocabulary"},
	{"internal/store/migrations", nil, "files"},
	{"internal/schemadiff", []string{"ent/migrate"}, "it compares the migrations with the tables, whatever is in them"},
	{"internal/store/pgtx", []string{"ent/...", "internal/domain", "internal/event", "internal/metrics", "internal/postgres", "internal/xid"}, "it runs transactions, whatever they do: it knows no table"},
	{"internal/store/guard", []string{"internal/domain", "internal/store/pgtx", "internal/xid"}, "what a claim looks at, and what the API shows of it: it changes nothing"},
	{"internal/store/reads", []string{
		anyEnt, pure, "internal/auth", "internal/metrics", "internal/postgres", "internal/store/guard", "internal/store/pgtx", "internal/xid",
	}, "what the API shows: it is given the read pool alone, and cannot reach what writes"},
	{"internal/store", []string{
		anyEnt, pure, "internal/auth", "internal/batch", "internal/event", "internal/metrics", "internal/postgres", "internal/secret", "internal/sparing", "internal/store/guard", "internal/store/migrations", "internal/store/pgtx", "internal/store/reads", "internal/xid",
	}, "a storage method is one transaction: it runs no agent and answers no request"},

	// What drives the store.
	{"internal/worker", []string{
		pure, "internal/event", "internal/executor", "internal/lifecycle", "internal/metrics", "internal/pause", "internal/postgres", "internal/secret", "internal/store", "internal/xid",
	}, "one claimed run, from prompt to end; who claims is not its matter"},
	{"internal/remote", []string{
		"internal/auth", "internal/domain", "internal/executor", "internal/pause", "internal/retry", "internal/secret", "internal/store", "internal/worker", "internal/xid",
	}, "a worker elsewhere: it reaches the store through the API alone, and takes its words from it"},
	{"internal/telemetry", []string{"internal/sparing", "internal/store", "internal/xid"}, "it is told of hops, and tells a collector"},
	{"internal/notify", []string{"internal/domain", "internal/outbound", "internal/retry", "internal/secret", "internal/store", "internal/xid"}, "one attempt to tell somebody; what is told, and when again, is settled elsewhere"},
	{"internal/scheduler", []string{
		"internal/domain", "internal/event", "internal/lifecycle", "internal/metrics", "internal/proc", "internal/sparing", "internal/store", "internal/store/reads", "internal/worker", "internal/xid",
	}, "a loop holds neither a rule nor SQL"},
	{"internal/webhook", []string{
		"internal/auth", "internal/batch", "internal/domain", "internal/metrics", "internal/secret", "internal/share", "internal/sparing", "internal/store", "internal/xid",
	}, "parse, one call, answer; what runs agents is reached through the store's rows"},
	{"graph/model", []string{anyEnt, "internal/domain", "internal/xid"}, "the API's types"},
	{"graph", []string{
		anyEnt, pure, "graph/model", "internal/auth", "internal/batch", "internal/event", "internal/metrics", "internal/secret", "internal/store", "internal/store/reads", "internal/topic", "internal/xid",
	}, "parse, one call, answer; what runs agents is reached through small interfaces that server wires"},

	// The wiring.
	{"internal/doctor", []string{
		anyEnt, pure, "internal/account", "internal/auth", "internal/config", "internal/executor", "internal/postgres", "internal/secret", "internal/store", "internal/store/migrations", "internal/store/reads", "internal/tokenfile",
	}, "what an installation is found to be; it opens nothing, and the server hands it what it looks at"},
	{"internal/server", []string{"ent/...", "graph/...", "internal/..."}, "it wires all; tests' packages are refused below"},
	{"cmd/rouse", []string{
		"internal/config", "internal/domain", "internal/mcpserver", "internal/secret", "internal/server", "internal/xid",
	}, "the command line parses and calls the server, or serves a run's tools itself"},

	// For tests.
	{"internal/hello", nil, "it is what the API is compared with: it shares nothing with it"},
	{"internal/archtest", nil, "it reads files"},
	{"internal/forkchain", nil, "it forks, and does nothing else"},
	{"internal/pgprofile", nil, "what benchmarks tell of statements, whatever they measure"},
	{"internal/together", nil, "it says how many tests run at a time, whatever they test"},
	{"internal/pgtest", []string{"internal/postgres", "internal/store/migrations", "internal/together"}, "a database for each test, whatever is tested"},
	{"internal/feedtest", []string{"internal/domain"}, "it reads the feed that a test wrote, whoever wrote it"},
	{"internal/modelserver", nil, "a model that does what the prompt says: it is to agents what the outside world is"},
	{"internal/modeltest", nil, "its tests drive the store"},
	{"internal/mutants", nil, "it changes other packages' sources, and needs none of them"},
	{"internal/queuebench", nil, "its benchmarks drive the store"},
	{"internal/modeltest/model", nil, "the model is written from the specification: what it shared with the program, it could not test"},
	{"internal/lifecycle/lifecycletest", []string{"internal/lifecycle"}, "one stress test serves all loops"},
	{"graph/graphtest", []string{"graph/...", anyEnt, "internal/auth", "internal/domain", "internal/edge", "internal/store", "internal/xid"}, "calls the API as a client does"},
	{"internal/edge/internal/testgraph", []string{"internal/domain", "internal/xid"}, "a schema to test the edge with"},
}

// ban forbids packages of others. "x/..." is x and all below it.
type ban struct {
	who   []string
	never []string
	why   string
}

var bans = []ban{
	{purePackages, []string{
		"context", "crypto/rand", "database/sql/...", "entgo.io/...", "log/...", "math/rand/...", "net", "net/http/...", "net/netip", "net/rpc/...", "net/smtp", "os/...", "sync/...", "syscall", "testing/...",
	}, "facts and now come in, a decision goes out: nothing to wait for, nothing to fake"},
	{[]string{"internal/store"}, []string{"net/http/...", "os/exec"}, "a transaction never waits for the network or a process"},
	{[]string{"internal/scheduler"}, []string{"database/sql/...", "entgo.io/...", "github.com/lib/pq/..."}, "a loop holds no SQL"},
	{[]string{"internal/executor"}, []string{"database/sql/...", "entgo.io/...", "github.com/lib/pq/..."}, "an executor never sees the store"},
	{[]string{"internal/webhook", "internal/edge", "internal/console", "graph", "graph/model"}, []string{"database/sql", "github.com/lib/pq/...", "os/exec"}, "a request reaches rows through the store or the reader that refuses writes"},
}

// clock are the functions by which a rule would read the clock, wait, or roll dice behind its caller's back.
var clock = map[string][]string{
	"time":                         {"Now", "Since", "Until", "After", "AfterFunc", "NewTicker", "NewTimer", "Sleep", "Tick"},
	"rouse.dev/rouse/internal/xid": {"New"},
}
