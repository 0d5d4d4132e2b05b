#!/usr/bin/env bash
# Installs onnxruntime-node, the CPU peer of tests/parity and bench/, into build/peers. Does nothing when it
# is there. Its own install script is skipped: it fetches CUDA libraries, and the CPU ones are in the package.
# Another version than the newest: ORT_VERSION=1.30.0 bench/peers/install.sh
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
prefix=$root/build/peers
version=${ORT_VERSION:-latest}
installed=$prefix/node_modules/onnxruntime-node/package.json

for tool in node npm; do
  if ! command -v "$tool" >/dev/null; then
    echo "error: '$tool' is not installed; install it with: apt-get install nodejs npm" >&2
    exit 2
  fi
done

if [[ -f $installed ]]; then
  have=$(node -p 'require(process.argv[1]).version' "$installed")
  if [[ $version == latest || $version == "$have" ]]; then
    echo "onnxruntime-node $have is installed"
    exit 0
  fi
fi

mkdir -p "$prefix"
npm install --ignore-scripts --no-save --no-audit --no-fund --prefix "$prefix" "onnxruntime-node@$version" >&2
echo "onnxruntime-node $(node -p 'require(process.argv[1]).version' "$installed") installed"
