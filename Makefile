# Archivist. `make` alone prints this help.
.DEFAULT_GOAL := help
.PHONY: help run test check deploy stop bench build

GO ?= go
LOCAL = $(GO) run ./localstack/archivist-local

help: ## print this help
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-8s %s\n", $$1, $$2}'

check: ## vet, staticcheck, tests without an emulator (under a minute)
	$(GO) vet ./...
	$(GO) tool staticcheck ./...
	$(GO) test ./pkg/... ./statemachines/... ./events/... ./test ./test/sim
