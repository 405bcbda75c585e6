# The entry points of this repository; `make help` lists them.
# The work is in scripts/, so that each step can be read and run by itself.

.DEFAULT_GOAL := help
.PHONY: help setup demo check it test test-all lambda model test-schemathesis test-ministack test-dynamodb-local fuzz handler-costs bench-cold sim sim-hours clean-tools

help: ## list these targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' $(MAKEFILE_LIST) | \
		while IFS='|' read -r target does; do printf '%-22s %s\n' "$$target" "$$does"; done

setup: ## install what is missing, below .onsale/ and .venv/ only, and say what
	@scripts/setup

demo: ## build, then sell out a stadium and a train to a crowd, and audit the result
	@scripts/setup demo
	@scripts/onsale demo

check: ## the inner loop, a minute: format, compile, lints, unit tests of the engine and the models, texts
	@scripts/check

it: ## the tests of one subject: make it T=handlers, make it T='store::claims --nocapture'
	@scripts/it $(T)

test: ## all that a merge needs: install what is missing; format, lints, documentation, tests; the last line counts them
	@scripts/test

test-all: ## what is heavy and changes rarely, once before an issue is closed: docs/correctness.md lists it
	@scripts/test-all

lambda: ## build and zip every Lambda function: for this machine, or ARCH=arm64 or x86_64
	@scripts/setup $(if $(filter arm64,$(ARCH)),arm64,lambda)
	@ARCH=$(ARCH) scripts/lambda

model: setup ## model checking: every state of small models, with more faults than `make test` has time for; ARGS='cancel --faults 2' explores one
	@scripts/model $(ARGS)

test-schemathesis: setup ## requests made of our OpenAPI document; ARGS='--max-examples 500 --seed 7' makes it a long run
	@scripts/test-schemathesis $(ARGS)

test-ministack: ## the integration tests with ministack in place of our DynamoDB emulator and fake SQS
	@scripts/setup ministack
	@scripts/test-against ministack

test-dynamodb-local: ## the same with Amazon's DynamoDB Local; ONSALE_DYNAMODB_LOCAL=1 accepts its licence
	@scripts/setup dynamodb-local
	@scripts/test-against dynamodb-local

fuzz: ## fuzz every parser of untrusted input; TARGET=sale-file SECONDS=600, or every target
	@scripts/setup fuzz
	@scripts/fuzz $(or $(TARGET),all) $(or $(SECONDS),60)

handler-costs: ## count instructions and allocations of a request in each handler, against the written table
	@scripts/handler-costs --check

bench-cold: ## cold start of each function, beside that of an empty function; ARGS=reserve measures one
	@scripts/setup demo
	@scripts/bench-cold $(ARGS)

sim: ## one seed of the simulator, call by call: SEED=n, and WITHOUT=guard to remove a guard
	@scripts/sim --seed $(SEED) $(if $(WITHOUT),--without $(WITHOUT))

sim-hours: ## new seeds of the simulator for HOURS=1, or until an invariant is broken
	@scripts/sim --hours $(or $(HOURS),1)

clean-tools: ## remove what setup installed (below .onsale/tools and .venv)
	rm -rf .onsale/tools .venv
