#!/bin/sh
# Builds mp3.wasm anew, the same each time, from packages with fixed versions. It needs Python 3.11 or newer.
set -eu
cd "$(dirname "$0")"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
python3 -m venv "$work/venv"
"$work/venv/bin/pip" -q install ziglang==0.17.1
cat >"$work/sources" <<END
miniaudio==1.71 --hash=sha256:ff51e2887bb673e2e757752b586b3dc924d59aa5fbcae9bbc45f4a111bd3262b
END
"$work/venv/bin/pip" -q download --no-deps --no-binary :all: --require-hashes -r "$work/sources" -d "$work"
tar -xzf "$work/miniaudio-1.71.tar.gz" -C "$work"
ZIG_GLOBAL_CACHE_DIR="$work/cache" ZIG_LOCAL_CACHE_DIR="$work/cache" "$work/venv/bin/python" -m ziglang cc \
	-target wasm32-wasi -mexec-model=reactor -O2 -s -Wl,--initial-memory=131072,--max-memory=131072 \
	-Wl,-z,stack-size=32768 -I "$work/miniaudio-1.71/miniaudio" -o "$work/mp3.wasm" mp3.c
cat "$work/mp3.wasm" >mp3.wasm
