# Archivist. `make` alone prints this help.
.DEFAULT_GOAL := help
.PHONY: help run test check deploy stop bench build

GO ?= go
LOCAL = $(GO) run ./localstack/archivist-local

help: ## print this help
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

run: ## install, build, start, deploy, submit the sample and show it; leaves the stack up
	$(LOCAL) run

stop: ## stop the stack that make run left up and forget its state
	$(LOCAL) stop

check: ## vet, staticcheck, tests without an emulator (under a minute)
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) test ./pkg/... ./statemachines/... ./events/... ./test ./test/sim
