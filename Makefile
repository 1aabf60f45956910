# On a fresh Debian or Ubuntu with a Rust toolchain: `make install`, `make run` and `make test`.
CARGO ?= cargo

.PHONY: install run test bench lint fmt fuzz setup bless help

help: ## what can be made
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## /  make \1\t/' | expand -t 16

run: setup ## build, and start the gateway on a demo workspace
	$(CARGO) build --release --locked --package toolgate-cli
	@scripts/demo target/release/toolgate

# PREFIX and DESTDIR choose another place than ~/.local/bin (root: /usr/local/bin).
install: setup ## build, and put toolgate on the PATH
	$(CARGO) build --release --locked --package toolgate-cli
	@PREFIX="$(PREFIX)" DESTDIR="$(DESTDIR)" scripts/install "$(or $(CARGO_TARGET_DIR),target)/release/toolgate"

# Without a network: TOOLGATE_TESTS_OFFLINE=1 make test leaves out the clients that others wrote, and says so.
# On a machine that runs no containers: TOOLGATE_TESTS_NO_CONTAINERS=1 make test leaves out the tests of containers, and says so.
test: setup lint ## everything that must hold before a change lands
	@scripts/setup-programs
	@scripts/setup-clients
	@scripts/setup-podman
	@scripts/setup-docker
	$(CARGO) test --workspace --locked

bench: setup ## ratios measured side by side in one run
	@scripts/bench-peers
	$(CARGO) bench --workspace --locked --bench '*'

lint: setup ## formatting and clippy, warnings denied
	$(CARGO) fmt --all --check
	$(CARGO) clippy --workspace --all-targets --locked -- --deny warnings

fmt: ## format the sources
	$(CARGO) fmt --all

fuzz: setup ## every fuzz target, FUZZ_RUNS executions each (needs a nightly toolchain)
	@scripts/fuzz

bless: setup ## accept the generated files and snapshots as they are now
	TOOLGATE_BLESS=1 $(CARGO) test --workspace --locked

setup:
	@scripts/setup
