# Everything that is done with this repository. "make help" lists it.

ROOT := $(CURDIR)
CACHE := $(ROOT)/.cache
TOOLS := $(CACHE)/tools
export KUBEBUILDER_ASSETS ?= $(CACHE)/controlplane
export PVCBACKUP_TOOLS ?= $(TOOLS)

.DEFAULT_GOAL := help
.PHONY: help
help: ## Show this list
	@awk 'BEGIN {FS = ":.*## "} /^[a-zA-Z0-9_%-]+:.*## / {printf "  %-16s %s\n", $$1, $$2} /^##@ / {printf "\n%s\n", substr($$0, 5)}' $(MAKEFILE_LIST)

##@ Everyday

.PHONY: build
build: ## Build the operator, the data tool and the demo into bin
	@mkdir -p bin
	CGO_ENABLED=0 go build -o bin/ ./operator/cmd/pvcbackup ./examples/demo
	CGO_ENABLED=0 go build -o bin/manager ./operator/cmd

.PHONY: demo
demo: control-plane csi-driver demo-tools build ## Show the main job on this machine; URL=… for another store
	@bin/demo $(if $(URL),-url '$(URL)')

.PHONY: demo-tools
demo-tools:
	@$(BUILD) tool restic versitygw

# The race detector makes tests three times as slow. It would find nothing in the tests that stop a reconciler at each of
# its calls, which make one call after the other; in packages without a goroutine; and in tests of whole processes.
CRASHES := TestAStopBeforeOrAfterAnySideEffect
UNRACED := ./schedule/... ./backup/repo/id ./backup/repo/tree ./backup/repo/internal/... ./backup/internal/chunker \
	./backup/internal/durability

.PHONY: test
test: control-plane csi-driver tools ## Pass every test: unit, race, real API server, interoperability with restic
	@echo "testing the packages ..."
	CGO_ENABLED=0 go vet ./...
	go test -race -vet=off -timeout 20m -skip '$(CRASHES)' \
		$$(go list ./... | grep -vxF "$$(go list $(UNRACED))")
	CGO_ENABLED=0 go test -vet=off -timeout 20m $(UNRACED)
	CGO_ENABLED=0 go test -vet=off -timeout 20m -run '$(CRASHES)' ./backup/scheduled ./backup/restore ./operator/controller
	@echo "testing the CSI driver ..."
	cd operator/test/csidriver && export CGO_ENABLED=0 && go vet ./... && go test -vet=off -timeout 10m ./...
	@echo "testing the benchmark ..."
	cd operator/test/bench && export CGO_ENABLED=0 && go vet ./... && go test -vet=off -timeout 10m ./...
	@$(MAKE) --no-print-directory fork verify

.PHONY: fork
fork: tool-kubebuilder $(TOOLS)/controller-gen ## Fork the operator, add a kind to the fork, and build it
	@operator/test/fork.sh

.PHONY: test-short
test-short: ## Test what needs neither a control plane nor tools
	go test ./schedule/... ./backup/contract ./backup/repo/id ./backup/repo/tree ./backup/internal/...

.PHONY: lint
lint: tool-golangci-lint ## Lint
	$(TOOLS)/golangci-lint run ./...

.PHONY: fmt
fmt: ## Format
	gofmt -w $$(git ls-files '*.go')

##@ Generate and verify

.PHONY: generate
generate: $(TOOLS)/controller-gen ## Generate deepcopy functions, CRDs, RBAC and reference pages
	@operator/test/generate.sh .

$(TOOLS)/controller-gen:
	@$(BUILD) tool controller-gen

.PHONY: verify
verify: ## Fail when generated files or formatting are not up to date
	@operator/test/verify.sh

.PHONY: apidiff
apidiff: tool-apidiff ## Show how the exported API changed since the baseline, or SINCE=COMMIT; fail when that breaks others
	@operator/test/apidiff.sh $(SINCE)

##@ Operator: against the cluster that kubectl points to

.PHONY: run install uninstall deploy undeploy
run: ## Run the operator here
	@$(MAKE) --no-print-directory -C operator run
install: ## Install the CRDs
	@$(MAKE) --no-print-directory -C operator install
uninstall: ## Remove the CRDs, and with them every PVCBackup and PVCRestore; backups in stores stay
	@$(MAKE) --no-print-directory -C operator uninstall
deploy: ## Deploy the operator with the image IMG
	@$(MAKE) --no-print-directory -C operator deploy
undeploy: ## Remove the operator and its CRDs
	@$(MAKE) --no-print-directory -C operator undeploy

##@ Deeper tests

FUZZTIME ?= 30s
.PHONY: fuzz
fuzz: ## Run every fuzz target for FUZZTIME (30s)
	@operator/test/fuzz.sh $(FUZZTIME)

HISTORIES ?= 500
.PHONY: volumes
volumes: ## Back up volumes with HISTORIES (500) random histories of changed ranges, and compare with full reads
	PVCBACKUP_HISTORIES=$(HISTORIES) CGO_ENABLED=0 go test -run TestRunsWithChangedRanges ./backup/blockdev

KILLS ?= 200
.PHONY: durability
durability: tools ## Try to make the engine lose data: KILLS=200 kills, every call failing, every object damaged, 1,000,000 files
	@CGO_ENABLED=0 DURABILITY_KILLS=$(KILLS) DURABILITY_POSITIONS=200 DURABILITY_EDGES=1 DURABILITY_CALLS=1 \
		DURABILITY_FILES=1000000 go test -vet=off -count 1 -v -timeout 2h ./backup/internal/durability

ROWS ?= all
TABLES ?= all
RUNS ?= 3
BUDGET ?= 2h
.PHONY: bench bench-growth bench-micro
bench: bench-tools ## Compare with restic and kopia: ROWS=…, TABLES=…, RUNS=3, INTO=docs/performance.md
	@$(CACHE)/bench -rows '$(ROWS)' -tables '$(TABLES)' -runs $(RUNS) -budget $(BUDGET) $(if $(INTO),-into '$(INTO)')

bench-growth: bench-tools ## Measure how cost grows with files, bytes, snapshots and index: RUNS=3, INTO=…
	@$(CACHE)/bench -growth -runs $(RUNS) $(if $(INTO),-into '$(INTO)')

bench-micro: ## Run the packages' own benchmarks
	go test -run '^$$' -bench . -benchmem ./schedule ./backup/... ./blobstore/...

.PHONY: bench-tools
bench-tools:
	@$(BUILD) tool restic kopia versitygw
	@cd operator/test/bench && CGO_ENABLED=0 GOWORK=off go build -o $(CACHE)/bench .

##@ Tools

include operator/test/build.mk
