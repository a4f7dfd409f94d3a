#!/usr/bin/env bash
# Builds the gateways that no package registry offers as a program, from their public source, into a peers' folder:
#   bench/contenders/build-peers.sh [FOLDER]
# Needs git and cargo. BUSBAR_SOURCE may name a local clone.
set -euo pipefail
folder=${1:-${TMPDIR:-/tmp}/tollgate-bench-peers}
source=${BUSBAR_SOURCE:-https://github.com/GetBusbar/busbar}

mkdir -p "$folder/busbar"
[ -d "$folder/busbar/source" ] || git clone --quiet "$source" "$folder/busbar/source"
cargo build --release --package busbar --ignore-rust-version --manifest-path "$folder/busbar/source/Cargo.toml"
cp "$folder/busbar/source/target/release/busbar" "$folder/busbar/busbar"
echo "built $("$folder/busbar/busbar" --version)"
