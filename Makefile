# Two commands do everything: make demo, make test.
export CGO_ENABLED = 0
GO ?= go

.PHONY: demo test build install bench vet lint race setup

# Without -buildvcs=false a clone of another user, as in a container, does not build.
build:
	@case "$$($(GO) env GOFLAGS)" in *benchwall*) echo "GOFLAGS take the second wall away: that is for bench alone" >&2; exit 1;; esac
	$(GO) build -trimpath -buildvcs=false -ldflags "-s -w" -o bin/ ./cmd/...

PREFIX ?= /usr/local

# Under sudo there is often no Go on PATH: then what was built before is installed.
install:
	@if command -v $(GO) >/dev/null; then $(MAKE) build; elif test -x bin/tether -a -x bin/tether-mcp; then echo "no $(GO) on PATH: installing bin/ as it was built"; \
	else echo "no $(GO) on PATH, and nothing built: run make build first, without sudo" >&2; exit 1; fi
	install -D -m 0755 bin/tether $(DESTDIR)$(PREFIX)/bin/tether
	install -D -m 0755 bin/tether-mcp $(DESTDIR)$(PREFIX)/bin/tether-mcp
	ln -sf tether $(DESTDIR)$(PREFIX)/bin/tether-sh

demo: build
	@bash demo/demo.sh bin/tether

# TETHER_NEED=all makes a missing kernel feature or program fail instead of skip.
test: setup vet
	@sh script/test
	@cd internal/egress/oracle && $(GO) vet . && $(GO) test .

vet:
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { echo "gofmt would change:"; gofmt -l $$(git ls-files '*.go'); exit 1; }
	$(GO) vet ./...
	GOOS=darwin GOARCH=amd64 $(GO) vet ./...
	GOOS=darwin GOARCH=arm64 $(GO) vet ./...
	GOOS=windows $(GO) vet ./...

lint:
	@sh script/lint

# What runs in parallel for real, under the race detector, which takes cgo.
race:
	@sh script/race

setup:
	@sh script/setup

bench: build
	$(GO) run ./bench bin/tether

