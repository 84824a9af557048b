#!/bin/sh
# Downloads libkqueue, a library that implements kqueue (the BSDs' interface for events) on Linux, and prints its path.
# Debian has it only in `experimental`. The script uses apt with a separate list of sources, and only unpacks the
# package. So the machine's own lists and installed packages do not change.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$here/../target/libkqueue
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
mkdir -p "$top"
top=$(cd "$top" && pwd)
find_library() { find "$top/root" -name 'libkqueue.so.0' 2>/dev/null | head -n 1; }

library=$(find_library)
if [ -z "$library" ]; then
    mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' | grep -v security | head -n 1)
    apt=$top/apt
    mkdir -p "$apt/empty" "$apt/lists/partial" "$apt/archives/partial" "$top/root"
    if [ -z "$mirror" ]; then
        echo "libkqueue: apt has no Debian archive to fetch it from; add one to /etc/apt/sources.list" >&2
        exit 1
    fi
    echo "deb [signed-by=$keyring] $mirror experimental main" >"$apt/sources.list"
    private() {
        apt-get -qq -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts="$apt/empty" \
            -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt" -o APT::Sandbox::User= "$@" >&2
    }
    private update
    (cd "$top" && private download libkqueue0t64)
    for package in "$top"/libkqueue0t64_*.deb; do dpkg-deb -x "$package" "$top/root"; done
    library=$(find_library)
fi
if [ -z "$library" ]; then
    echo "libkqueue: the package libkqueue0t64 has no libkqueue.so.0" >&2
    exit 1
fi
echo "$library"
