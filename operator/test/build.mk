# Programs that tests and demonstrations run, built into .cache as far as they are missing or not as pinned.
# Included by the Makefile at the root of the repository.

BUILD := operator/test/build.sh

.PHONY: control-plane csi-driver tools
control-plane: ## Build etcd, Kubernetes and the CSI controllers (about 6 minutes the first time)
	@$(BUILD) control-plane

csi-driver: ## Build the CSI driver for tests and the demo
	@$(BUILD) csi-driver

tools: ## Build the pinned tools: controller-gen, restic (two versions), versitygw, fake-gcs-server
	@$(BUILD) tool controller-gen restic restic-0.14 versitygw fake-gcs-server

tool-%: ## Build one pinned tool more: tool-golangci-lint, tool-apidiff, tool-kubebuilder, tool-kopia
	@$(BUILD) tool $*
