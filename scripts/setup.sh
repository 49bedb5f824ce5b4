#!/bin/sh
# Installs what building RocksDB needs and a bare Debian or Ubuntu lacks, and says what is coming.
set -eu

have_libclang() {
    ldconfig -p 2>/dev/null | grep -q 'libclang[-.0-9]*\.so' && return 0
    for file in /usr/lib/llvm-*/lib/libclang*.so* /usr/lib/*/libclang*.so* ${LIBCLANG_PATH:+"$LIBCLANG_PATH"/libclang*}; do
        [ -e "$file" ] && return 0
    done
    return 1
}

missing=
case $(uname -s) in
Linux)
    command -v clang++ >/dev/null 2>&1 || missing="$missing clang"
    have_libclang || missing="$missing libclang-dev"
    command -v pkg-config >/dev/null 2>&1 || missing="$missing pkg-config"
    { command -v pkg-config >/dev/null 2>&1 && pkg-config --exists liburing 2>/dev/null; } || missing="$missing liburing-dev"
    command -v g++ >/dev/null 2>&1 || missing="$missing g++"
    ;;
Darwin)
    command -v clang++ >/dev/null 2>&1 || {
        echo "setup: clang++ is missing; install it with: xcode-select --install" >&2
        exit 1
    }
    ;;
esac

if [ -n "$missing" ]; then
    if ! command -v apt-get >/dev/null 2>&1; then
        echo "setup: please install what these Debian packages hold, and try again:$missing" >&2
        exit 1
    fi
    if [ "$(id -u)" = 0 ]; then
        root=
    elif command -v sudo >/dev/null 2>&1; then
        root=sudo
    else
        echo "setup: these packages are missing, and installing them needs root or sudo:$missing" >&2
        echo "setup: as root, run: apt-get install --no-install-recommends$missing" >&2
        exit 1
    fi
    echo "setup: installing$missing"
    # One package list for all attempts; a machine may be new.
    $root apt-get update -q
    # shellcheck disable=SC2086
    DEBIAN_FRONTEND=noninteractive $root apt-get install -q -y --no-install-recommends $missing
fi

target=${CARGO_TARGET_DIR:-target}
if ! ls "$target"/release/build/librocksdb-sys-*/out/librocksdb.a >/dev/null 2>&1; then
    echo "setup: RocksDB is compiled first. That takes 10 to 50 minutes, and happens only once."
fi
