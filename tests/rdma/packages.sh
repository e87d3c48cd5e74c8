#!/bin/sh
# Debian packages that `make test-rdma` uses: the emulator, and what the guest reads from this machine.
# Installs what is missing if it may; else says what to install. The kernel itself is never installed.
set -eu
packages="qemu-system-x86 busybox-static cpio kmod dpkg iproute2 rdma-core ibverbs-providers python3-pyverbs perftest"
if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
    echo "test-rdma: this needs Debian or Ubuntu: apt-get supplies the guest's kernel" >&2
    exit 1
fi
missing=""
for package in $packages; do
    state=$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)
    [ "$state" = installed ] || missing="$missing $package"
done
# Without package lists apt can name no kernel.
if [ -n "$missing" ] || ! apt-cache show linux-image-amd64 >/dev/null 2>&1; then
    if [ "$(id -u)" != 0 ]; then
        echo "test-rdma: run as root, once: apt-get update && apt-get install$missing" >&2
        exit 1
    fi
    apt-get update -q
    if [ -n "$missing" ]; then
        # shellcheck disable=SC2086 # a list of words
        DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends $missing
    fi
fi
