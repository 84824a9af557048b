#!/bin/sh
# Tests the archive of `make dist` in minimal Debian 11, 12 and 13 systems, which have little more than a C library and
# a shell. The first run installs these systems with debootstrap in target/systems, which takes a minute or two. Every
# run needs root.
#
#   tools/dist-check.sh [ARCHIVE]    the default is the archive of this version in dist
set -eu

cd "$(dirname "$0")/.."
suites="bullseye bookworm trixie"
systems=target/systems
# The program may need only these files: the C library with its parts, and GCC's runtime library, libgcc_s.
allowed='^(linux-vdso\.so\.1|/lib64/ld-linux-x86-64\.so\.2|lib(c|m|dl|rt|pthread|gcc_s)\.so\.[0-9]+)$'
# The limits: the program's size in bytes, the memory of `framewire --version` in KiB, and its time in microseconds,
# which includes a run of `date`.
largest=16000000
most_memory=12288
longest=5000

say() { echo "dist-check: $*"; }
die() { say "$*" >&2; exit 1; }

[ "$(id -u)" = 0 ] || die "only root can install and enter such systems; run this script with sudo"
version=$(sed -n 's/^version = "\(.*\)"$/\1/p' Cargo.toml | head -n 1)
archive=${1:-dist/framewire-$version-x86_64-linux.tar.gz}
[ -f "$archive" ] || die "there is no $archive; make it with \`make dist\`"
name=$(basename "$archive" .tar.gz)

for tool in debootstrap time; do
    # This looks for files, because the shell may have a built-in `time`.
    [ -e "/usr/bin/$tool" ] || [ -e "/usr/sbin/$tool" ] ||
        DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $tool
done
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' | grep -v security | head -n 1)
mkdir -p "$systems"
systems=$(cd "$systems" && pwd)
for suite in $suites; do
    [ ! -d "$systems/$suite" ] || continue
    say "installing a system of Debian $suite"
    rm -rf "$systems/$suite.new"
    debootstrap --variant=minbase "$suite" "$systems/$suite.new" "${mirror:-http://deb.debian.org/debian}" \
        >"$systems/$suite.log" 2>&1 || { tail -n 5 "$systems/$suite.log" >&2; die "debootstrap failed"; }
    mv "$systems/$suite.new" "$systems/$suite"
done

# ---- the program's libraries, size, memory and time ----

work=$(mktemp -d)
trap 'rm -rf "$work"; for suite in $suites; do rm -rf "$systems/$suite/try"; done' EXIT
trap 'exit 1' HUP INT TERM
tar -xzf "$archive" -C "$work"
program=$work/$name/framewire
for library in $(ldd "$program" | awk '{ print $1 }'); do
    echo "$library" | grep -qE "$allowed" || die "the program needs $library; only the C library and libgcc_s are allowed"
done
size=$(wc -c <"$program")
[ "$size" -lt $largest ] || die "the program has $size bytes; it must have less than $largest"
memory=$(/usr/bin/time -f %M "$program" --version 2>&1 >/dev/null)
[ "$memory" -lt $most_memory ] || die "framewire --version takes $memory KiB; it must take less than $most_memory"
# The shortest time of ten runs counts, because other programs on the machine can only make a run slower.
best=$(for _ in 1 2 3 4 5 6 7 8 9 10; do
    begin=$(date +%s%N)
    "$program" --version >/dev/null
    echo $((($(date +%s%N) - begin) / 1000))
done | sort -n | head -n 1)
[ "$best" -lt $longest ] || die "framewire --version takes $best microseconds; it must take less than $longest"
say "framewire --version takes $best microseconds and $memory KiB"
say "the program has $size bytes and needs only the C library and libgcc_s"

# ---- the bundle for clients of MCP ----

bundle=${archive%.tar.gz}.mcpb
[ -f "$bundle" ] || die "there is no $bundle; make it with \`make dist\`"
python3 -m zipfile -e "$bundle" "$work/bundle"
cmp -s "$work/bundle/server/framewire" "$program" || die "the program in $bundle differs from that in the archive"
sum=$(sha256sum "$bundle" | cut -d ' ' -f 1)
grep -q "\"fileSha256\": \"$sum\"" "$(dirname "$bundle")/server.json" || die "server.json does not have the SHA-256 of $bundle"
say "the bundle for clients of MCP has the same program"

# ---- each system ----

for suite in $suites; do
    try=$systems/$suite/try
    rm -rf "$try"
    mkdir "$try"
    tar -xzf "$archive" -C "$try"
    cp rom/framewire-demo.gba "$try/demo.gba"
    # These commands load a game, press keys, read memory and take a picture. Each command uses HTTP within its own
    # process.
    cat >"$try/run" <<END
set -eu
cd /try/$name
sha256sum --quiet -c SHA256SUMS
./framewire --version >/dev/null
./framewire man /try/man
./framewire read --rom /try/demo.gba --after 120 --keys 'Start:2 .:60' --json 0x02000000 0x02000044
./framewire screenshot --rom /try/demo.gba --after 60 /try/picture.png
END
    chroot "$systems/$suite" /bin/sh /try/run >"$work/$suite.out" 2>"$work/$suite.err" ||
        { cat "$work/$suite.out" "$work/$suite.err" >&2; die "the program does not work on $suite"; }
    cksum <"$try/picture.png" >>"$work/$suite.out"
    cmp -s "$work/$suite.out" "$work/bullseye.out" || die "memory or the picture differs between bullseye and $suite"
    say "$suite: works ($(chroot "$systems/$suite" /bin/sh -c 'ldd --version' | head -n 1 | sed 's/.* //'))"
done
