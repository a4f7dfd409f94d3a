#!/usr/bin/env bash
# Run by the harness once, before the first launch: installs the gateway from source, and creates its data folder with
# the key that definition.json declares. Needs git, Node and npm.
set -euo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
repository=${TOLLGATE_REPOSITORY:-$(node -p "require('$here/definition.json').repo")}

[ -d "$here/src" ] || git clone --quiet "$repository" "$here/src"
[ -z "${TOLLGATE_COMMIT:-}" ] || git -C "$here/src" checkout --quiet "$TOLLGATE_COMMIT"
cd "$here/src"
npm ci --silent --omit=dev
key=$(node -p "require('$here/definition.json').auth")
[ -d "$here/data" ] || node_modules/.bin/bun run bench/manifest/create-data.ts "$here/data" "$key"
echo "build: tollgate at $(git rev-parse --short HEAD)"
