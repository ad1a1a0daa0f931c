# The two commands: `make up` and `make test`. Everything else is for contributors.
#
#   ARGS=…          more arguments: `make up ARGS="--listen 127.0.0.1:9000"`,
#                   `make test ARGS="-p rcrt-store"`

SHELL := /bin/bash
.DEFAULT_GOAL := help
.PHONY: up test bench fuzz fuzz-api mcp-conformance mcp-clients mcp-servers a2a-clients test-deploy dist dashboard lint fmt audit clean help

up: preflight ## Build RCRT and start it on this machine
	@exec cargo run --locked --bin rcrt -- up $(ARGS)

test: preflight ## Run every test; nothing has to be started before
	@build/test $(ARGS)

bench: preflight ## Measure RCRT, baselines and comparable systems; ARGS="--quick" for a short run, ARGS="--only latency,waiting"
	@cargo build --locked --bin rcrt --bin bench --bin engine_floor && \
		exec cargo run --quiet --locked --bin bench -- $(ARGS)

fuzz: preflight ## Fuzz the parsers of untrusted input; ARGS="60 hosts" for a minute of one target
	@build/fuzz $(ARGS)

fuzz-api: preflight ## Test the running server against its OpenAPI document; ARGS="200 7" for more, with the seed 7
	@build/fuzz-api $(ARGS)

mcp-conformance: preflight ## Run the conformance suite of the Model Context Protocol; ARGS="2026-07-28" for one revision
	@cargo build --quiet --locked --bin rcrt && build/mcp-conformance $(ARGS)

mcp-clients: preflight ## Try the official SDKs and the Inspector of the Model Context Protocol
	@cargo build --quiet --locked --bin rcrt && build/try-mcp-clients $(ARGS)

mcp-servers: preflight ## Try real servers of the Model Context Protocol
	@cargo build --quiet --locked --bin rcrt && build/try-mcp-servers $(ARGS)

a2a-clients: preflight ## Try the official SDK of A2A in both directions
	@cargo build --quiet --locked --bin rcrt && build/try-a2a

test-deploy: preflight ## Check the image, the chart, the units and the alerts of deploy/
	@cargo build --quiet --locked --bin rcrt && build/test-deploy

dist: preflight ## Make a release archive in target/dist; SIGN_KEY=… signs its checksums with ssh-keygen
	@build/dist $(ARGS)

dashboard: ## Serve the dashboard's sources with hot reload, against RCRT_SERVER (http://127.0.0.1:8081 by default)
	@cd dashboard && { [ -d node_modules ] || npm ci --no-audit --no-fund; } && exec npm run --silent dev

lint: preflight check-format ## Check the format, the code and its documentation, as CI does
	@cargo clippy --locked --workspace --all-targets -- -D warnings
	@RUSTDOCFLAGS="-D warnings" cargo doc --locked --workspace --no-deps

fmt: ## Format the code
	@cargo fmt --all
	@cargo fmt --manifest-path fuzz/Cargo.toml

audit: preflight ## Check the dependencies as CI does: licences, advisories, none unused
	@build/audit

clean: ## Remove the build output; data folders and the cache stay
	@cargo clean
	@cargo clean --manifest-path fuzz/Cargo.toml

.PHONY: check-format
check-format:
	@cargo fmt --all --check
	@cargo fmt --manifest-path fuzz/Cargo.toml --check

.PHONY: preflight
preflight:
	@build/preflight

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1\t\2/p' Makefile | expand -t 16
