# The dev loop. `make` lists it. Everything is also a plain command: nothing here hides a step.
.DEFAULT_GOAL := help
GO ?= go
ARGS ?=
BENCH ?= .
PACKAGES ?=
SINCE ?= HEAD~1

# What needs no database: rules, and parts that touch the world by themselves. `make test-rules` takes seconds.
RULES := ./internal/archtest ./internal/auth ./internal/config ./internal/cron ./internal/domain ./internal/lifecycle/... ./internal/liveness \
	./internal/metrics ./internal/mutants ./internal/prompt ./internal/retry ./internal/secret ./internal/summary ./internal/xid
# The others run under the race detector, which needs a C compiler (without one Go sets CGO_ENABLED to 0).
RACE = $(if $(filter 1,$(shell $(GO) env CGO_ENABLED)),-race)
# The longest begin first, so that none is alone at the end.
LONGEST := rouse.dev/rouse/cmd/rouse rouse.dev/rouse/internal/executor rouse.dev/rouse/internal/store rouse.dev/rouse/internal/modeltest rouse.dev/rouse/graph
OTHERS = $(LONGEST) $(filter-out $(LONGEST) $(shell $(GO) list $(RULES)),$(shell $(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./...))
# One package more at a time than there are processors, because the tests of processes mostly wait.
PACKAGES_AT_A_TIME ?= $(shell expr $$(nproc 2>/dev/null || sysctl -n hw.ncpu) + 1)
# make lint and .ci/run look at the code with go vet. To look once more, at what is compiled with -race, takes a minute of processor time.
VET := -vet=off
# With the race detector each process waits for a second as it ends, for races that come late. Tests start hundreds.
RACE_OPTIONS := atexit_sleep_ms=20

# The longest package takes minutes on two quiet processors, and longer where others work: Go would end it after ten.
TIMEOUT ?= 30m

WEB := internal/console/web

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-18s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: run
run: ## start rouse and its own database on http://127.0.0.1:8080 (ARGS="--addr 127.0.0.1:9000")
	@command -v $(GO) >/dev/null || { echo 'rouse is built with Go 1.26 or newer, and there is none: https://go.dev/dl has it (or name it: make run GO=/usr/local/go/bin/go)' >&2; exit 1; }
	@tools/ensure-postgres.sh run
	@tools/run.sh $(GO) $(ARGS)

.PHONY: test
test: test-rules test-race test-sequences ## all tests: rules first, in seconds, then the rest on real PostgreSQL

.PHONY: test-rules
test-rules: ## tests that need no database
	$(GO) test $(VET) $(RULES)

.PHONY: test-race
test-race: ## the other tests, with the race detector, on a database the tests start themselves
	@tools/ensure-postgres.sh test
	@tools/ensure-program.sh nginx 'the test of docs/proxy.md'
	@tools/ensure-program.sh zsh "the test of the documents' commands"
	@tools/ensure-program.sh curl "the test of the documents' commands"
	@[ -n "$(RACE)" ] || echo "no C compiler: testing without the race detector (apt-get install gcc libc6-dev brings it)" >&2
	@echo 'testing $(words $(OTHERS)) packages; the first build takes minutes, cmd/rouse is the longest'
	@GORACE="$(RACE_OPTIONS) $$GORACE" $(GO) test -json -p $(PACKAGES_AT_A_TIME) -timeout $(TIMEOUT) $(VET) $(RACE) $(OTHERS) | awk -v total=$(words $(OTHERS)) -f tools/progress.awk

.PHONY: test-sequences
test-sequences: ## what the race detector watches a sample of: the queue against its model, one step after the other
	@tools/ensure-postgres.sh test
	$(GO) test $(VET) -timeout $(TIMEOUT) -run Agree ./internal/modeltest

.PHONY: criteria
criteria: ## print each acceptance criterion of the loop's liveness with its tests; fail on one without
	@$(GO) test -count=1 -v -run '^TestEveryCriterionHasATest$$' ./internal/archtest

.PHONY: scenarios
scenarios: ## print each scenario of the specification's sources with its test; fail on one without
	@$(GO) test -count=1 -v -run '^TestEveryScenarioHasATest$$' ./internal/archtest

.PHONY: mutants
mutants: ## change the rules' code in one place after the other and list what no test notices; it goes on where it was broken off (PACKAGES="internal/domain")
	$(GO) run ./internal/mutants $(PACKAGES)

.PHONY: mutants-changed
mutants-changed: ## the same for a sample of the lines changed since a commit, for a minute (SINCE=HEAD~1)
	$(GO) run ./internal/mutants -changed "$(SINCE)" -sample 42 -limit 1m $(PACKAGES)

.PHONY: test-model
test-model: ## the queue against its model, the full form: 2,000 sequences of 50 steps one by one, as many at once, and 1,000 of each about tasks and money
	@tools/ensure-postgres.sh test
	ROUSE_MODEL_FULL=1 $(GO) test -count=1 -timeout 60m -v ./internal/modeltest
	ROUSE_MODEL_FULL=1 $(GO) test -count=1 -v -run '^TestWaitingTellsTheTruth$$' ./internal/store

.PHONY: test-agents
test-agents: ## today's ten agent programs from npm, against a model that does what the prompt says (2.6 GB, a quarter of an hour)
	cd internal/executor/testdata/agents && npm ci --no-audit --no-fund --ignore-scripts && node node_modules/@anthropic-ai/claude-code/install.cjs && node node_modules/opencode-ai/postinstall.mjs
	$(GO) test -count=1 -tags agents -timeout 60m -v -run '^(TestRealAgents|TestTheTableNames)' ./internal/executor $(if $(UPDATE),-update-table)
	@tools/ensure-postgres.sh test
	$(GO) test -count=1 -tags agents -timeout 20m -v -run '^TestRealAgentsWorkByTools$$' ./cmd/rouse

.PHONY: test-agents-short
test-agents-short: ## codex alone, whose package installs fast (half a minute)
	cd internal/executor/testdata/agents/short && npm ci --no-audit --no-fund --ignore-scripts
	ROUSE_AGENTS_FOLDER=testdata/agents/short ROUSE_AGENTS=codex $(GO) test -count=1 -tags agents -timeout 5m -v -run '^(TestRealAgents|TestTheTableNames)' ./internal/executor

.PHONY: test-lists
test-lists: ## what each list reads, by every filter and order, among a million ended runs (minutes)
	@tools/ensure-postgres.sh test
	ROUSE_LISTS_FULL=1 $(GO) test -count=1 -timeout 60m -v -run '^TestAListReads' ./graph

.PHONY: chaos
chaos: ## 4 processes, 20,000 runs, 90 SIGKILLs, 3 immediate restarts of PostgreSQL: nothing lost, little repeated
	@tools/ensure-postgres.sh test
	ROUSE_CHAOS_FULL=1 $(GO) test -count=1 -timeout 90m -v -run '^TestChaos$$' ./cmd/rouse

.PHONY: test-alerts
test-alerts: ## the alert rules and the dashboard in a real Prometheus that scrapes a server (Debian: prometheus)
	@tools/ensure-postgres.sh test
	$(GO) test -count=1 -tags prometheus -timeout 10m -v -run '^TestPrometheus' ./internal/server

.PHONY: test-clients
test-clients: ## the examples of docs/api.md with the real clients from npm, against a started program
	@tools/ensure-postgres.sh test
	cd cmd/rouse/testdata/clients && npm ci --no-audit --no-fund --ignore-scripts --loglevel error
	$(GO) test -count=1 -tags clients -timeout 10m -v -run '^TestTheAPIsExamples' ./cmd/rouse

.PHONY: test-copies
test-copies: ## 40 runs of 5 agents on one git repository at once, with SIGKILLs, resumed and swept, a full disk, git-lfs, ssh and submodules (as root; Debian: git-lfs, openssh-server)
	ROUSE_COPIES_FULL=1 $(GO) test -count=1 -tags copies -timeout 20m -v -run '^(TestChaosOfWorkingCopies|TestAFullDisk|TestLargeFiles|TestARepositoryBehindSSH|TestSubmodules|TestWhatAStartCosts)' ./internal/executor

.PHONY: lint
lint: ## gofmt, go vet and golangci-lint
	@unformatted=$$(git ls-files -z '*.go' | xargs -0 gofmt -l) && [ -z "$$unformatted" ] || \
		{ printf 'not formatted (run gofmt -w):\n%s\n' "$$unformatted" >&2; exit 1; }
	$(GO) vet ./...
	$(GO) tool -modfile=tools/go.mod golangci-lint run

.PHONY: generate
generate: ## write ent/, schema/ent.graphql and graph/'s generated files again
	$(GO) generate ./...

.PHONY: check-generated
check-generated: ## fail when generated code is older than its sources
	tools/unchanged.sh $(GO) generate ./...

.PHONY: migration
migration: ## write the migration that ent/schema lacks (NAME=add_something), on a throw-away database
	@[ -n "$(NAME)" ] || { echo 'say what the migration does: make migration NAME=add_something' >&2; exit 2; }
	@tools/ensure-postgres.sh migration
	cd ent && $(GO) run diff.go $(NAME)

.PHONY: migration-hash
migration-hash: ## renew atlas.sum after a migration was edited by hand
	cd ent && $(GO) run hash.go

.PHONY: console
console: ## build the web console into internal/console/dist
	cd $(WEB) && npm ci && npm test && npm run build

.PHONY: check-console
check-console: ## fail when the committed console is not what its sources build
	tools/unchanged.sh $(MAKE) console

.PHONY: bench
bench: ## run the benchmarks (BENCH=pattern); docs/performance.md has the figures
	@tools/ensure-postgres.sh test
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchmem $$(git grep -l '^func Benchmark' -- '*_test.go' | xargs -n1 dirname | sort -u | sed 's|^|./|')

.PHONY: bench-queue
bench-queue: ## the figures of the queue against pgbench, on a durable cluster of their own (BENCH=pattern)
	@tools/ensure-postgres.sh test
	$(GO) test -run '^$$' -bench '$(BENCH)' -benchtime 1x -timeout 60m ./internal/queuebench

.PHONY: bench-retention
bench-retention: ## a month of history, a million cycles under retention, as far as 15 minutes go (ROUSE_BENCH_MINUTES): bytes and claims of its last eighth
	@tools/ensure-postgres.sh test
	ROUSE_BENCH_CYCLES=1000000 $(GO) test -run '^$$' -bench '^BenchmarkRetention$$' -benchtime 1x -timeout 60m ./internal/queuebench

.PHONY: bench-drain
bench-drain: ## 1,000 fires that wait, worked off by the built program, against pgbench on the same cluster (ROUSE_BENCH_PROFILE=1: with its statements)
	@tools/ensure-postgres.sh test
	$(GO) test -run '^$$' -bench '^BenchmarkDrain$$' -benchtime 1x -timeout 30m ./cmd/rouse

.PHONY: bench-wakes
bench-wakes: ## wakes, fires and webhooks by 64 clients of the built program, alone and while a backlog drains, and its memory, against pgbench
	@tools/ensure-postgres.sh test
	$(GO) test -run '^$$' -bench '^Benchmark(Wakes|QueuedMemory)$$' -benchtime 1x -timeout 30m ./cmd/rouse

.PHONY: bench-api
bench-api: ## the API of the built program against a bare gqlgen server, and events to many subscribers against one (BENCH=Fan)
	@tools/ensure-postgres.sh test
	$(GO) test -run '^$$' -bench '^BenchmarkAPI.*$(patsubst .,,$(BENCH))' -benchtime 1x -timeout 30m ./cmd/rouse

.PHONY: bench-flood
bench-flood: ## what a flood by an account without a token does to the owner's queries, memory and the end (as root: by another account)
	@tools/ensure-postgres.sh test
	$(GO) test -run '^$$' -bench '^BenchmarkFlood$$' -benchtime 1x -v ./cmd/rouse

.PHONY: build
build: ## build bin/rouse, one static file (VERSION=v1.2.3 names a release)
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w$(if $(VERSION), -X main.release=$(VERSION))' -o bin/rouse ./cmd/rouse

.PHONY: docker
docker: ## build the container image rouse
	docker build -t rouse .

.PHONY: clean
clean: ## remove what was built; .rouse, the data of make run, stays
	rm -rf bin $(WEB)/build $(WEB)/node_modules
