# Archivist. `make` alone prints this help.
.DEFAULT_GOAL := help
.PHONY: help demo run function logs research revisions stop test test-more ci soak e2e e2e-localstack check infra deploy bench build

SHELL = bash
GO ?= go
# Functions are built without paths. With this for all, nothing is compiled twice, nor again in another clone.
export GOFLAGS := $(strip $(filter-out -trimpath,$(shell $(GO) env GOFLAGS)) -trimpath)
LOCAL = $(GO) build -o dist/archivist-local ./localstack/archivist-local && dist/archivist-local
DEPLOY = $(GO) run ./infra/deploy
# ONLY='vet,templates' plays these parts; test/plan/parts.go has their names.
PLAY = $(GO) build -o dist/archivist-tests ./test/run && dist/archivist-tests $(if $(ONLY),-only '$(ONLY)')

help: ## print this help
	@set -o pipefail; grep -hE '^[a-z0-9-]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-16s %s\n", $$1, $$2}'

demo: ## the whole of Archivist in one process, within seconds, with nothing but Go; make demo ARGS="--keep FOLDER"
	@$(GO) build -o dist/ ./cmd/archivist ./cmd/archivist-demo && dist/archivist demo $(ARGS)

run: ## start Archivist on this machine and preserve sample files; PORT=4666 another port, TOKENS=off without tokens
	@$(LOCAL) run

function: ## run a Go program as a function of your own, for consumers of events: make function FOLDER=path
	@$(LOCAL) function "$(FOLDER)"

logs: ## print what a function on this machine has logged: make logs FUNCTION=name
	@$(LOCAL) logs "$(FUNCTION)"

research: ## let two researchers find clips that are hidden in generated recordings
	@$(LOCAL) research

revisions: ## let each commit of a Git repository start tasks, in the order of commits (needs Git)
	@$(LOCAL) revisions

stop: ## stop what make run or make demo started, and delete its data
	@$(LOCAL) stop

check: ## vet, staticcheck, tests without an emulator (some minutes); run it before each commit
	@$(PLAY) check

test: ## prove that all works, as on AWS: tests, simulations, templates, end to end (at most 12 minutes)
	@$(PLAY) test

test-more: ## everything else that CI plays: longer simulations, races, linters, both emulators (some 20 minutes)
	@$(PLAY) test-more

ci: ## what CI plays: make test and make test-more as one, so that no processor waits for the end of the first
	@$(PLAY) test test-more

soak: ## all seeds, all mutants, both emulators whole (hours); the result goes to bench/SOAK.md
	@$(PLAY) soak

e2e: ## the end-to-end tests on MiniStack, with policies; then the commands of the documents, on the demo and there
	$(GO) test -count=1 -v -shuffle on -timeout 45m ./test/e2e -on ministack
	$(GO) test -count=1 -v -timeout 20m ./test/docs -run TestCommands -on demo
	$(GO) test -count=1 -v -timeout 20m ./test/docs -run TestCommands -on ministack

e2e-localstack: ## the end-to-end tests on LocalStack's open core (Python 3.13, Java, Maven; skipped without)
	$(GO) test -count=1 -v -shuffle on -timeout 30m ./test/e2e -on localstack

infra: ## the templates: cfn-lint, checkov; the documents' AWS commands
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
	$(LOCAL) with dynamodb $(GO) test -count=1 -v -timeout 60m -run 'TestLists$$' ./bench -listjobs 30000 -listobjects 10000
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
	$(GO) test -count=1 -v -timeout 60m -run TestFind ./pkg/research/correlate -sets 100
	$(GO) test -count=1 -v -timeout 30m -run TestKilledDownload ./test/e2e -on ministack -gigabyte
	$(GO) test -count=1 -v -timeout 30m -run TestSleeperCatchesUp ./test/e2e -on ministack -asleep 10000
