# On a fresh Debian or Ubuntu with a Rust toolchain: `make install`, `make run` and `make test`.
CARGO ?= cargo

.PHONY: install run test bench lint fmt fuzz setup bless help

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

run: setup ## build and serve a demo workspace
	$(CARGO) build --release --locked --package toolgate-cli
	@scripts/demo target/release/toolgate

# The default directory is ~/.local/bin (root: /usr/local/bin); PREFIX and DESTDIR change it.
install: setup ## build and install toolgate
	$(CARGO) build --release --locked --package toolgate-cli
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" scripts/install "$(or $(CARGO_TARGET_DIR),target)/release/toolgate"

# Without a network, TOOLGATE_TESTS_OFFLINE=1 skips the tests with third-party clients.
# Without containers, TOOLGATE_TESTS_NO_CONTAINERS=1 skips the container tests. Skipped tests print a message.
test: setup lint ## run all tests and lints
	@scripts/setup-programs
	@scripts/setup-clients
	@scripts/setup-podman
	@scripts/setup-docker
	$(CARGO) test --workspace --locked

bench: setup ## run the benchmarks, compared with peers
	@scripts/bench-peers
	$(CARGO) bench --workspace --locked --bench '*'

lint: setup ## check formatting and clippy; warnings are errors
	$(CARGO) fmt --all --check
	@scripts/lint-spelling
	$(CARGO) clippy --workspace --all-targets --locked -- --deny warnings

fmt: ## format the sources
	$(CARGO) fmt --all

fuzz: setup ## run every fuzz target FUZZ_RUNS times (needs a nightly toolchain)
	@scripts/fuzz

bless: setup ## rewrite generated files and snapshots
	TOOLGATE_BLESS=1 $(CARGO) test --workspace --locked

setup:
	@scripts/setup
