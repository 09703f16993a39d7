# Archivist. `make` alone prints this help.
.DEFAULT_GOAL := help
.PHONY: help run serve function logs research revisions stop test e2e e2e-localstack check infra deploy bench build

SHELL = bash
GO ?= go
LOCAL = $(GO) build -o dist/archivist-local ./localstack/archivist-local && dist/archivist-local
DEPLOY = $(GO) run ./infra/deploy
# These tests make thousands of calls, for which DynamoDB Local takes minutes. They run on the in-process table and MiniStack.
MANY = TestFiveHundred|TestRetire|TestBadRowFailsAlone
FAST = ./pkg/... ./statemachines/... ./events/... ./localstack/... ./infra/toolchain ./cmd/... ./bench ./test ./test/docs \
	./test/merritt

# CI plays one in so many of the seeds of each suite. `make test LESS=1` plays all.
LESS ?= 3
seeds = $(shell expr $(1) / $(LESS))

help: ## print this help
	@set -o pipefail; grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

run: ## start Archivist on this machine and preserve sample files; PORT=4666 chooses another port
	@$(LOCAL) run

serve: ## serve a local folder so that it can be submitted: make serve FOLDER=path
	@$(LOCAL) serve "$(FOLDER)"

function: ## run a Go program as a function of your own, for consumers of events: make function FOLDER=path
	@$(LOCAL) function "$(FOLDER)"

logs: ## print what a function on this machine has logged: make logs FUNCTION=name
	@$(LOCAL) logs "$(FUNCTION)"

research: ## let two researchers find clips that are hidden in generated recordings
	@$(LOCAL) research

revisions: ## let each commit of a Git repository start tasks, in the order of commits (needs Git)
	@$(LOCAL) revisions

stop: ## stop what make run started and delete its data
	@$(LOCAL) stop

check: ## vet, staticcheck, tests without an emulator (some minutes)
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) test $(FAST) ./test/sim ./test/eventsim ./test/componentsim ./test/researchsim ./test/revisionsim ./test/storagesim ./test/property ./test/reindex ./test/restore

test: ## everything that CI runs (about 45 minutes)
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	set -o pipefail; $(GO) test -count=1 -v -shuffle on $(FAST) | grep -vE '^=== (RUN|PAUSE|CONT)'
	GOGC=800 $(GO) test -count=1 -v -timeout 10m ./test/sim -seeds=$(call seeds,10000)
	GOGC=800 $(GO) test -count=1 -v -timeout 10m ./test/storagesim -seeds=$(call seeds,2000) -mutants=1000
	GOGC=800 $(GO) test -count=1 -v -timeout 10m ./test/eventsim -seeds=$(call seeds,600)
	GOGC=800 $(GO) test -count=1 -v -timeout 10m ./pkg/component -run TestRandomHistories -histories=$(call seeds,3000)
	GOGC=800 $(GO) test -count=1 -v -timeout 10m ./test/componentsim -seeds=$(call seeds,300)
	GOGC=800 $(GO) test -count=1 -v -timeout 10m ./test/researchsim -seeds=$(call seeds,300) -histories=$(call seeds,10000)
	GOGC=800 $(GO) test -count=1 -v -timeout 15m ./test/revisionsim -seeds=$(call seeds,5000)
	$(GO) test -count=1 -race ./test/sim -run TestSimulation -seeds=$(call seeds,200)
	$(GO) test -count=1 -race ./test/eventsim -run TestSimulation -seeds=$(call seeds,30)
	$(GO) test -count=1 -race ./test/componentsim -run TestSimulation -seeds=$(call seeds,20)
	$(GO) test -count=1 -race ./test/researchsim -run TestSimulation -seeds=$(call seeds,20)
	$(GO) test -count=1 -race ./test/revisionsim -run TestSimulation -seeds=$(call seeds,30)
	GOGC=400 $(GO) test -count=1 -v ./test/property -rapid.checks=$(call seeds,1000)
	$(GO) test -count=1 -v ./test/reindex -seeds=$(call seeds,40)
	$(GO) test -count=1 -v ./test/restore -seeds=$(call seeds,100)
	$(LOCAL) with dynamodb $(GO) test -count=1 -v -skip '$(MANY)' ./pkg/table/... ./pkg/lease ./pkg/queue
	$(LOCAL) with ministack $(GO) test -count=1 -v ./pkg/table ./pkg/lease ./pkg/queue ./pkg/filter
	$(MAKE) infra
	$(MAKE) e2e
	$(MAKE) e2e-localstack

e2e: ## the end-to-end tests on MiniStack, with policies; then the commands of the documents
	$(GO) test -count=1 -v -shuffle on -timeout 45m ./test/e2e -on ministack
	$(GO) test -count=1 -v -timeout 20m ./test/docs -on ministack

e2e-localstack: ## the end-to-end tests on LocalStack's open core (Python 3.13, Java, Maven; skipped without)
	$(GO) test -count=1 -v -shuffle on -timeout 30m ./test/e2e -on localstack

infra: ## the templates: our assertions, cfn-lint, checkov; the documents' AWS commands
	$(DEPLOY) lint

build: ## build the functions for AWS and the command line
	$(DEPLOY) build

deploy: ## deploy to the AWS account of the environment; CONTEXT='-c name=value …'
	$(DEPLOY) aws $(CONTEXT)

bench: ## measure (about half an hour); results go to bench/RESULTS.md
	$(LOCAL) with dynamodb $(GO) test -count=1 -run '^$$' -bench 'Lease' -benchtime 20s ./bench
	$(LOCAL) with dynamodb $(GO) test -count=1 -run '^$$' -bench 'Admission' -benchtime 60x ./bench -waiting 10000
	$(LOCAL) with dynamodb $(GO) test -count=1 -run '^$$' -bench 'Admission' -benchtime 60x ./bench -waiting 100000
	$(GO) test -count=1 -run '^$$' -bench 'Manifest|Download|Init' -benchtime 2s ./bench
	$(GO) test -count=1 -v -run 'TestCost|TestIdleCost' ./bench
	$(GO) test -count=1 -v -run TestReindex ./bench -objects 10000
	$(LOCAL) with dynamodb $(GO) test -count=1 -v -run TestWritePath ./bench
	$(GO) test -count=1 -v -timeout 60m -run TestPlacement ./bench -events 100000
	$(LOCAL) with dynamodb $(GO) test -count=1 -v -timeout 60m -run TestPlacement ./bench -events 100000
	$(GO) test -count=1 -v -timeout 60m -run TestLargeObject ./bench -files 360000
	$(GO) test -count=1 -v -run TestResearchCost ./bench
	$(LOCAL) with dynamodb $(GO) test -count=1 -v -timeout 30m -run TestWorkItems ./bench -workitems 1000
	$(LOCAL) with dynamodb $(GO) test -count=1 -v -timeout 90m -run TestAssignment ./bench -episodes 1000000 -clips 1000
	$(GO) test -count=1 -v -run 'TestRevisionCost|TestNotices|TestPlans' ./bench -notices 4000 -plans 500
	$(LOCAL) with dynamodb $(GO) test -count=1 -v -run 'TestNotices|TestPlans' ./bench
	$(GO) test -count=1 -v -run 'TestReadyLatency|TestNoisy' ./bench -pending 10000 -rounds 600
	$(LOCAL) with dynamodb $(GO) test -count=1 -v -timeout 30m -run 'TestReadyLatency|TestNoisy' ./bench -pending 10000 -rounds 150
	python3 -m venv .local/numpy && .local/numpy/bin/pip -q install numpy==2.4.6 scipy==1.17.1
	$(GO) test -count=1 -v -timeout 60m -run 'TestAnalysis$$' ./bench -hours 5 -python ../.local/numpy/bin/python
	$(GO) test -count=1 -v -timeout 60m -run TestFind ./pkg/correlate -sets 100
	$(GO) test -count=1 -v -timeout 30m -run TestKilledDownload ./test/e2e -on ministack -gigabyte
	$(GO) test -count=1 -v -timeout 30m -run TestSleeperCatchesUp ./test/e2e -on ministack -asleep 10000
