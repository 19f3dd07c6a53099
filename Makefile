# Everything is built from Go modules and two small C files; the compilers are
# all that must be there. `make` alone lists what can be done.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -c
.DEFAULT_GOAL := help

BIN     := $(CURDIR)/bin
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

# The Kubernetes that the one-machine cluster is made of.
KUBERNETES := 1.37.0
KUBE_FLAGS := -s -w \
  -X k8s.io/component-base/version.gitVersion=v$(KUBERNETES) \
  -X k8s.io/component-base/version.gitMajor=$(word 1,$(subst ., ,$(KUBERNETES))) \
  -X k8s.io/component-base/version.gitMinor=$(word 2,$(subst ., ,$(KUBERNETES)))

CONTAINERD := github.com/containerd/containerd/v2/cmd
CNI        := github.com/containernetworking/plugins/plugins
CFLAGS     := -O2 -Wall -Wextra -Werror

# A build that takes minutes says how far it is.
COUNT = ./hack/count-packages

##@ Use it

.PHONY: up
up: build ## Bring up a cluster on this machine, run a Pod with a GPU, show what it saw
	@$(BIN)/kilter up
	@./hack/run-example $(BIN)/kilter examples/vector-add.yaml vector-add

.PHONY: down
down: ## Take the cluster away
	@$(BIN)/kilter down

##@ Build

.PHONY: build
build: preflight packages build-kilter build-programs build-runtime build-kubernetes ## Build everything into bin/

.PHONY: build-kilter
build-kilter: ## Build the agent and command line
	@echo "kilter"
	@CGO_ENABLED=1 go build -v -trimpath -ldflags "-s -w -X github.com/kilter-dev/kilter/cli.version=$(VERSION)" -o $(BIN)/kilter ./cmd/kilter 2>&1 | $(COUNT)

.PHONY: build-programs
build-programs: ## Build the small programs that run in Pods
	@mkdir -p $(BIN)
	@gcc $(CFLAGS) -static -s -o $(BIN)/pause cluster/pause/pause.c
	@gcc $(CFLAGS) -o $(BIN)/vector-add examples/vector-add/vector-add.c -ldl

.PHONY: build-runtime
build-runtime: ## Build containerd, runc and the network plugins
	@echo "containerd, runc and network plugins"
	@cd cluster && CGO_ENABLED=0 go build -v -trimpath -tags "no_btrfs no_devmapper no_zfs" -ldflags "-s -w" -o $(BIN)/ $(CONTAINERD)/containerd $(CONTAINERD)/containerd-shim-runc-v2 2>&1 | ../$(COUNT)
	@cd cluster && CGO_ENABLED=1 go build -v -trimpath -tags "seccomp netgo osusergo" -ldflags "-s -w -extldflags -static" -o $(BIN)/runc github.com/opencontainers/runc 2>&1 | ../$(COUNT)
	@cd cluster && CGO_ENABLED=0 go build -v -trimpath -ldflags "-s -w" -o $(BIN)/cni/ $(CNI)/ipam/host-local $(CNI)/main/bridge 2>&1 | ../$(COUNT)

.PHONY: build-kubernetes
build-kubernetes: ## Build Kubernetes itself (about ten minutes the first time on two cores)
	@echo "Kubernetes $(KUBERNETES) (the first time takes minutes)"
	@cd cluster && CGO_ENABLED=0 go build -v -trimpath -ldflags "$(KUBE_FLAGS)" -o $(BIN)/ ./cmd/kilter-cluster 2>&1 | ../$(COUNT)

.PHONY: preflight
preflight: # What would make a build fail half-way, said at once
	@./hack/preflight

.PHONY: packages
packages: # What is needed of Debian beside the compilers
	@./hack/install-packages

.PHONY: bundle
bundle: build ## Pack everything a machine without network needs into build/kilter.tar.xz
	@mkdir -p build
	@CGO_ENABLED=0 go build -trimpath -ldflags "-s -w" -o $(BIN)/probe ./test/probe
	@echo "packing build/kilter.tar.xz (a minute)"
	@tar -c bin hack/prove-gpu hack/run-example examples/*.yaml | xz -T2 -9 > build/kilter.tar.xz
	@ls -lh build/kilter.tar.xz | awk '{print "  " $$5}'

.PHONY: prove-gpu
prove-gpu: ## On a machine with an NVIDIA GPU: show that Pods get it, and write a report
	@if [ ! -x bin/kilter ]; then tar -xJf build/kilter.tar.xz; fi
	@./hack/prove-gpu bin build/proof.md

##@ Check

.PHONY: test
test: build check test-unit test-cluster test-e2e ## Run every test (as root: the end-to-end tests run a real cluster)

.PHONY: check
check: ## Formatting and vet
	@echo "gofmt, vet"
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); [ -z "$$unformatted" ] || { echo "not gofmt-ed:"; echo "$$unformatted"; exit 1; }
	@go vet ./...
	@go vet -tags e2e ./test/...
	@cd cluster && go vet $$(go list ./... | grep -v /cmd/)

.PHONY: test-unit
test-unit: ## Tests of the rooms, with the race detector
	go test -race ./...

.PHONY: test-cluster
test-cluster: ## Tests of the one-machine cluster's parts
	cd cluster && go test -vet=off $$(go list ./... | grep -v /cmd/)

.PHONY: test-e2e
test-e2e: build-kilter build-programs ## Tests on a real cluster with real kubelets
	KILTER_BIN=$(BIN) go test -tags e2e -count=1 -timeout 20m -v ./test/e2e

.PHONY: bench
bench: build ## Measure starting times, Allocate and the agent's footprint
	KILTER_BIN=$(BIN) go test -tags e2e -count=1 -timeout 20m -v -run TestNumbers ./test/e2e -measure

.PHONY: lint
lint: ## golangci-lint, built from its module (not part of make test)
	go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.12.0 run ./...

.PHONY: clean
clean: ## Remove what was built
	rm -rf $(BIN)

.PHONY: help
help: # This list
	@awk 'BEGIN {FS = ":.*## "} /^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z0-9-]+:.*## / {printf "  make %-18s %s\n", $$1, $$2}' $(MAKEFILE_LIST); echo
