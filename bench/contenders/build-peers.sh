#!/usr/bin/env bash
# Builds the gateways that no package registry offers as a program, from their public source, into a peers' folder:
#   bench/contenders/build-peers.sh [FOLDER]
# Needs git, cargo and go. BUSBAR_SOURCE and BIFROST_SOURCE may name local clones.
set -euo pipefail
folder=${1:-${TMPDIR:-/tmp}/tollgate-bench-peers}
busbar=$folder/busbar
bifrost=$folder/bifrost
mkdir -p "$busbar" "$bifrost"

[ -d "$busbar/source" ] || git clone --quiet "${BUSBAR_SOURCE:-https://github.com/GetBusbar/busbar}" "$busbar/source"
cargo build --release --package busbar --ignore-rust-version --manifest-path "$busbar/source/Cargo.toml"
cp "$busbar/source/target/release/busbar" "$busbar/busbar"
echo "built $("$busbar/busbar" --version)"

[ -d "$bifrost/source" ] || git clone --quiet "${BIFROST_SOURCE:-https://github.com/maximhq/bifrost}" "$bifrost/source"
cd "$bifrost/source/transports"
# Its modules name each other by versions that not every Go proxy has: take those of the same commit.
for module in core framework $(cd .. && ls -d plugins/*); do
  go mod edit -replace "github.com/maximhq/bifrost/$module=../$module"
done
# The program embeds its web pages; the benchmark needs none.
mkdir -p bifrost-http/ui
echo '<!doctype html><title>Bifrost</title>' > bifrost-http/ui/index.html
go build -mod=mod -o "$bifrost/bifrost-http" ./bifrost-http
echo "built bifrost of $(git log -1 --format='%h, %as')"
