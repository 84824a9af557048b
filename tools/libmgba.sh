#!/bin/sh
# Builds libmgba as a static library and prints its folder. The folder contains `lib/libframewire_mgba.a`, the headers
# in `include/`, `licences/`, and the file `built`, which describes the source, the compiler and the options. If that
# folder exists, the script builds nothing.
#
# The source is Debian's package of mGBA, or the source tree in FRAMEWIRE_LIBMGBA_SOURCE. The script downloads the
# package through apt, which checks the signatures. For this, the script has a separate list of sources, so the
# machine's own lists do not change.
#
# FRAMEWIRE_LIBMGBA_DIR is the folder for the source and the built libraries; several checkouts can share it. The
# default is target/libmgba in this checkout.
set -eu

version=0.10.5
suite=trixie
keyring=/usr/share/keyrings/debian-archive-keyring.gpg
# The libraries that become a part of libmgba. They come from Debian's packages liblua5.4-dev, libpng-dev, zlib1g-dev,
# libminizip-dev and libinih-dev.
libraries="lua5.4 png16 z minizip inih"

say() { echo "libmgba: $*" >&2; }
die() { say "$@"; exit 1; }

here=$(cd "$(dirname "$0")" && pwd)
top=${FRAMEWIRE_LIBMGBA_DIR:-$here/../target/libmgba}
mkdir -p "$top"
top=$(cd "$top" && pwd)
cc=${CC:-cc}
command -v "$cc" >/dev/null || die "there is no C compiler '$cc'; install gcc, or name a compiler in CC"

# ---- the name of this build: a checksum of the source, this script, its programs, the compiler and CFLAGS ----

if [ -n "${FRAMEWIRE_LIBMGBA_SOURCE:-}" ]; then
    [ -f "$FRAMEWIRE_LIBMGBA_SOURCE/src/core/flags.h.in" ] ||
        die "FRAMEWIRE_LIBMGBA_SOURCE=$FRAMEWIRE_LIBMGBA_SOURCE is not mGBA's source: it has no src/core/flags.h.in"
    source=$(cd "$FRAMEWIRE_LIBMGBA_SOURCE" && pwd)
    origin="the source tree of FRAMEWIRE_LIBMGBA_SOURCE"
    contents=$(cd "$source" && find CMakeLists.txt version.cmake include src -type f -exec cksum {} + | LC_ALL=C sort)
else
    source=$top/mgba-$version
    origin="Debian's source package of mGBA $version"
    contents=$version
fi
programs=$here/../crates/libmgba/programs
key=$({ cat "$0" "$programs"/*; echo "$contents ${CFLAGS:-}"; "$cc" --version; } | cksum | tr ' ' '-')
out=$top/$key

if [ -f "$out/built" ]; then
    echo "$out"
    exit
fi

# Only one build runs at a time. A build that waited for another one then finds the result and ends. tools/setup.sh
# holds the lock while it installs the packages.
if [ -z "${FRAMEWIRE_LIBMGBA_LOCKED:-}" ] && command -v flock >/dev/null; then
    export FRAMEWIRE_LIBMGBA_LOCKED=1
    exec flock "$top/lock" "$0" "$@"
fi

for tool in cmake make ar nm objcopy; do
    command -v $tool >/dev/null || die "the program $tool is missing; \`make setup\` installs it (Debian: apt install cmake make binutils)"
done
archives=""
for name in $libraries; do
    archive=$("$cc" -print-file-name="lib$name.a")
    [ -f "$archive" ] ||
        die "the static library lib$name.a is missing; \`make setup\` installs it (Debian: apt install liblua5.4-dev libpng-dev zlib1g-dev libminizip-dev libinih-dev)"
    archives="$archives $archive"
done

# ---- the source ----

# Prints the addresses of the Debian mirrors in this machine's own lists.
mirrors() {
    apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Component: main' | sort -u | grep -v security
}

# Downloads the source package from the mirror $1 into the folder $2.
download() {
    apt=$2/apt
    mkdir -p "$apt/empty" "$apt/lists/partial" "$apt/archives/partial"
    echo "deb-src [signed-by=$keyring] $1 $suite main" >"$apt/sources.list"
    set -- "$2" -q -o Dir::Etc::SourceList="$apt/sources.list" -o Dir::Etc::SourceParts="$apt/empty" \
        -o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt" -o Acquire::Languages=none -o APT::Sandbox::User= \
        -o APT::Get::List-Cleanup=false
    folder=$1
    shift
    apt-get "$@" update >&2 || return 1
    found=$(apt-cache "$@" showsrc --only-source mgba | sed -n 's/^Version: //p' | grep "^$version[+-]" | tail -n 1)
    [ -n "$found" ] || { say "Debian $suite has no mGBA $version"; return 1; }
    (cd "$folder" && apt-get "$@" source --download-only "mgba=$found" >&2)
}

fetch() {
    for tool in apt-get dpkg-source; do
        command -v $tool >/dev/null || die "the program $tool is missing. Install dpkg-dev on Debian; on other systems set" \
            "FRAMEWIRE_LIBMGBA_SOURCE to a folder with the source of mGBA $version, or build with" \
            "--features system-libmgba to use an installed libmgba"
    done
    [ -f "$keyring" ] || die "$keyring, with which the source is checked, is missing: apt install debian-archive-keyring"
    new=$source.new
    for mirror in $(mirrors); do
        rm -rf "$new"
        mkdir -p "$new"
        if download "$mirror" "$new"; then
            dpkg-source --no-check -x "$new"/mgba_*.dsc "$new/tree" >&2
            # `--no-check` is safe, because apt has already checked the archive's signature and the package's checksums.
            rm -rf "$source"
            mv "$new/tree" "$source"
            rm -rf "$new"
            return
        fi
    done
    rm -rf "$new"
    die "the source of mGBA $version could not be downloaded (see above). With no network, set FRAMEWIRE_LIBMGBA_SOURCE" \
        "to a folder with that source, or build with --features system-libmgba to use an installed libmgba"
}

if [ -z "${FRAMEWIRE_LIBMGBA_SOURCE:-}" ] && [ ! -d "$source" ]; then
    say "downloading $origin"
    fetch
fi

# ---- the build ----

# The profile-guided optimisation below works only with gcc, because Clang's profiles have another format.
tuned=no
if ! echo __clang__ | "$cc" -E -P - | grep -q 1; then
    tuned=yes
fi
say "building $origin; this takes a minute or two"
build=$out.build
rm -rf "$build"
mkdir -p "$build"
jobs=${NUM_JOBS:-$(getconf _NPROCESSORS_ONLN)}
# mGBA's build asks git for a version. This keeps git from finding the repository of Framewire.
GIT_CEILING_DIRECTORIES=$(dirname "$source")
export GIT_CEILING_DIRECTORIES

# Emulation spends most of its time in a few files, which are compiled twice. The first build counts which branches are
# taken while games are played. The second build uses these counts, and optimises the files together (LTO). All other
# files, such as the disassemblers, are compiled once and with little optimisation, which takes half the time.
cat >"$build/compile" <<'END'
#!/bin/sh
case "$*" in
    *.dir/src/*/debugger/* | *.dir/src/*/decoder* | *.dir/src/*/extra/* | *.dir/src/*/sio/* | *.dir/src/*/cheats* | \
        *.dir/src/*/overrides.c*) ;;
    *.dir/src/arm/* | *.dir/src/gb/* | *.dir/src/gba/* | *.dir/src/sm83/* | *.dir/src/core/timing.c* | *blip_buf.c*)
        # shellcheck disable=SC2086
        exec "$@" $FRAMEWIRE_HOT ;;
esac
exec "$@" -O1
END
chmod +x "$build/compile"

lua=$("$cc" -print-file-name=liblua5.4.a)
features="-DUSE_DEBUGGERS=ON -DUSE_ZLIB=ON -DUSE_MINIZIP=ON -DUSE_PNG=ON -DUSE_LZMA=ON -DENABLE_SCRIPTING=ON -DUSE_LUA=5.4"
for feature in EDITLINE GDB_STUB FFMPEG LIBZIP SQLITE3 ELF DISCORD_RPC EPOXY; do
    features="$features -DUSE_$feature=OFF"
done
for part in QT SDL GL GLES2 GLES3 LTO SHARED; do
    features="$features -DBUILD_$part=OFF"
done
# shellcheck disable=SC2086
cmake -S "$source" -B "$build" -Wno-dev -G "Unix Makefiles" -DCMAKE_C_COMPILER="$cc" -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_C_COMPILER_LAUNCHER="$build/compile" \
    -DCMAKE_C_FLAGS="-w -fvisibility=hidden -ffunction-sections -fdata-sections ${CFLAGS:-}" \
    -DCMAKE_C_FLAGS_RELEASE="-O3 -DNDEBUG" \
    -DCMAKE_POSITION_INDEPENDENT_CODE=ON -DBUILD_STATIC=ON -DLUA_LIBRARY="$lua" $features >"$build/configure.log" 2>&1 ||
    { tail -n 30 "$build/configure.log" >&2; die "configuring mGBA failed"; }

# Compiles the files that have no object file yet. The files in which emulation spends its time get the options $1.
compile() {
    FRAMEWIRE_HOT=$1 MAKEFLAGS="" cmake --build "$build" --target mgba -j "$jobs" >"$build/build.log" 2>&1 ||
        { tail -n 30 "$build/build.log" >&2; die "building mGBA failed"; }
}

if [ $tuned = yes ]; then
    compile "-fprofile-generate"
    # shellcheck disable=SC2086
    "$cc" -O1 -w -pthread -fprofile-generate -I"$build/include" -I"$source/include" -o "$build/train" \
        "$programs/train.c" "$build/libmgba.a" $archives -lm -ldl
    "$build/train" "$here/../rom/framewire-demo.gba" "$programs"/*.hex
    names="$build/names.all"
    nm --defined-only --format=posix "$build/libmgba.a" 2>/dev/null >"$names"
    grep -rlZ --include='*.o' __gcov_init "$build" | xargs -0 rm
    compile "-flto -fprofile-use -fprofile-partial-training"
else
    compile ""
    names="$build/names.all"
    nm --defined-only --format=posix "$build/libmgba.a" 2>/dev/null >"$names"
fi

# ---- one archive, in which only mGBA's own symbols are global ----

made=$out.new
rm -rf "$made"
mkdir -p "$made/include" "$made/lib" "$made/licences"
awk 'NF > 1 && $2 ~ /[A-Z]/ && $1 !~ /gcov/ { print $1 }' "$names" | sort -u >"$build/names"
together=""
[ $tuned = no ] || together="-flto=$jobs -flinker-output=nolto-rel -O3 -fPIC"
# shellcheck disable=SC2086
"$cc" -r -nostdlib $together -o "$build/linked.o" -Wl,--whole-archive "$build/libmgba.a" -Wl,--no-whole-archive \
    -Wl,--start-group $archives -Wl,--end-group
# Debian's static Lua is compiled for programs. In a shared library, such as the module of the Python package, it cannot
# use the C library's variables stdin, stdout and stderr. So it gets other variables with the same values.
{
    echo "#include <stdio.h>"
    for stream in stdin stdout stderr; do
        echo "FILE* framewire_$stream;"
        echo "__attribute__((constructor)) static void set_$stream(void) { framewire_$stream = $stream; }"
    done
} >"$build/streams.c"
"$cc" -O2 -fPIC -c -o "$build/streams.o" "$build/streams.c"
objcopy --redefine-sym stdin=framewire_stdin --redefine-sym stdout=framewire_stdout \
    --redefine-sym stderr=framewire_stderr "$build/linked.o"
"$cc" -r -nostdlib -o "$build/all.o" "$build/linked.o" "$build/streams.o"
objcopy --keep-global-symbols="$build/names" "$build/all.o"
ar crD "$made/lib/libframewire_mgba.a" "$build/all.o"
cp -R "$source/include/." "$made/include/"
cp -R "$build/include/." "$made/include/"
cp "$source/LICENSE" "$made/licences/mgba.txt"
cp "$source"/res/licenses/blip_buf.txt "$made/licences/"
optimised="-O3"
[ $tuned = no ] || optimised="$optimised, with a profile and link-time optimisation"
echo "from $origin by $("$cc" --version | head -n 1), $optimised" >"$made/built"
rm -rf "$out" "$build"
mv "$made" "$out"
echo "$out"
