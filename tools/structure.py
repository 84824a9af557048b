#!/usr/bin/env python3
"""Checks the structure of the checkout.

The table in ARCHITECTURE.md must have the crates and their dependencies. Every file that a text names or links to must
exist. A type name must have one meaning in a crate. The files of `crates/http` must not form a large cycle of imports.

    tools/structure.py          prints each finding as `PLACE: what is wrong`; the exit code is 1 if there is one
    tools/structure.py cycles   prints the cycles of imports between the files of each crate
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

# A path of a file, from the root of the checkout, or the end of such a path, such as `op/table.rs`.
NAMED = re.compile(r"(?<![\w./{}$%:~-])([\w-]+(?:/[\w.-]+)+\.(?:rs|lua|ts|toml|md|sh|tsv))(?![\w*/{(-])")
TEXT = re.compile(r"(\.(rs|lua|ts|js|py|sh|c|h|md|toml|yml|css|html)|/Makefile|^Makefile)$")
SKIPPED = re.compile(r"^docs/(study|performance)/|^CHANGELOG")


def tracked() -> list[str]:
    listed = subprocess.run(["git", "ls-files"], check=True, capture_output=True, text=True).stdout
    return [path for path in listed.splitlines() if Path(path).is_file()]


def missing_files() -> list[str]:
    files = tracked()
    ends = {path[at:] for path in files for at in range(len(path)) if at == 0 or path[at - 1] == "/"}
    return [
        f"{path}:{number}: there is no file {name}"
        for path in files
        if TEXT.search(path) and not SKIPPED.search(path)
        for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1)
        for name in NAMED.findall(line)
        if name not in ends and not name.startswith("target/")
    ]


def wrong_dependencies() -> list[str]:
    """Rows of ARCHITECTURE.md whose last column does not begin with the crate's dependencies in alphabetical order."""
    command = ["cargo", "metadata", "--no-deps", "--format-version", "1", "--locked"]
    packages = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["packages"]
    names = {package["name"]: Path(package["manifest_path"]).parent.name for package in packages}
    rows = {}
    for number, line in enumerate(Path("ARCHITECTURE.md").read_text(encoding="utf-8").splitlines(), 1):
        if row := re.match(r"\| `crates/(\w+)` \|.*\| ([^|]+) \|$", line):
            rows[row[1]] = (number, row[2])
    found = []
    for package in packages:
        folder = names[package["name"]]
        if Path(package["manifest_path"]).parent.parent.name != "crates":
            continue
        needs = {names[each["name"]] for each in package["dependencies"] if each["kind"] is None and each["name"] in names}
        expected = ", ".join(sorted(needs)) or "nothing"
        number, text = rows.get(folder, (1, ""))
        if text.split(";")[0] != expected:
            found.append(
                f"ARCHITECTURE.md:{number}: for crates/{folder}, the table has: {text or 'no row'}; use: {expected}"
            )
    for folder, (number, _) in rows.items():
        if folder not in names.values():
            found.append(f"ARCHITECTURE.md:{number}: there is no crates/{folder}")
    return found


# Names of types that may occur more than once in a crate: each subcommand has a type with such a name.
SEVERAL = {("framewire", "Args"), ("framewire", "Command")}
# The largest number of files that may be in a cycle of imports in crates/http.
LARGEST_CYCLE = 10


def sources() -> Iterator[tuple[str, Path, str]]:
    """The crate, the path and the code of each source file in the crates, without its tests and comments."""
    for path in map(Path, tracked()):
        if path.suffix == ".rs" and path.parts[0] == "crates" and path.parts[2] == "src" and path.name != "tests.rs":
            code = path.read_text(encoding="utf-8").split("#[cfg(test)]\nmod ")[0]
            yield path.parts[1], path, re.sub(r"//.*", "", code)


def repeated_types() -> list[str]:
    """Types with the same name as another type in their crate. Only types at the top level of a file are checked."""
    declared = re.compile(r"^(?:pub(?:\([\w ]+\))? )?(?:struct|enum|trait|union|type) (\w+)", re.MULTILINE)
    found, known = [], {}
    for crate, path, code in sources():
        for match in declared.finditer(code):
            key = crate, match[1]
            # In crates/channel, aliases such as `type Sender = ring::Sender<...>` only fill in a type parameter.
            if "= ring::" in code[match.start() :].split("\n", 1)[0] or match[1] == "Result" or key in SEVERAL:
                continue
            place = f"{path}:{code[: match.start()].count(chr(10)) + 1}"
            if key in known:
                found.append(f"{place}: {match[1]} is also a type in {known[key]}; give one of them another name")
            known.setdefault(key, place)
    return found


def imports(text: str) -> Iterator[list[str]]:
    """The paths that begin with `crate`, `super` or `self`, in `use` declarations and in other code."""
    for match in re.finditer(r"\b(?:crate|super|self)(?:::\w+)*(?:::\{)?", text):
        path = match[0].removesuffix("::{").split("::")
        if not match[0].endswith("{"):
            yield path
            continue
        depth, name, outer = 1, "", []
        for letter in text[match.end() :]:
            if letter in "{},":
                yield path + [part for part in "".join([*outer, name]).split("::") if part]
                if letter == "{":
                    outer.append(name)
                    depth += 1
                elif letter == "}":
                    depth -= 1
                    outer = outer[:-1]
                name = ""
                if depth == 0:
                    break
            elif not letter.isspace():
                name += letter


def cycles(crate: str) -> list[list[str]]:
    """Groups of files that import each other, directly or through others of the group. The largest comes first."""
    modules = {}
    for owner, path, code in sources():
        if owner == crate:
            inside = path.relative_to(f"crates/{crate}/src").with_suffix("").parts
            modules[inside[:-1] if inside[-1] in ("mod", "lib", "main") else inside] = code
    graph: dict[tuple[str, ...], set[tuple[str, ...]]] = {}
    for module, code in modules.items():
        graph[module] = set()
        for path in imports(code):
            at = () if path[0] == "crate" else module[: len(module) - path.count("super")]
            at += tuple(part for part in path if part not in ("crate", "super", "self"))
            while at and at not in modules:
                at = at[:-1]
            if at not in ((), module):
                graph[module].add(at)
    reached = {}
    for module in graph:
        seen, left = set(), [module]
        while left:
            for other in graph[left.pop()] - seen:
                seen.add(other)
                left.append(other)
        reached[module] = seen
    groups = {tuple(sorted(b for b in reached[a] if a in reached[b])) for a in graph if a in reached[a]}
    return sorted((["/".join(module) for module in group] for group in groups), key=len, reverse=True)


def large_cycles() -> list[str]:
    return [
        f"crates/http/src: a cycle of imports has {len(group)} files; at most {LARGEST_CYCLE} are allowed. "
        f"The files are: {', '.join(group)}"
        for group in cycles("http")
        if len(group) > LARGEST_CYCLE
    ]


def dead_links() -> list[str]:
    """Relative links of Markdown files to files that do not exist."""
    return [
        f"{path}:{number}: there is no file {target}"
        for path in tracked()
        if path.endswith(".md") and not SKIPPED.search(path)
        for number, line in enumerate(Path(path).read_text(encoding="utf-8").splitlines(), 1)
        for target in re.findall(r"\]\(([^)#:\s]+)(?:#[^)]*)?\)", line)
        if not (Path(path).parent / target).exists()
    ]


def main() -> int:
    if sys.argv[1:] == ["cycles"]:
        for crate in sorted({crate for crate, _, _ in sources()}):
            for group in cycles(crate):
                print(f"crates/{crate}: {len(group)} files: {', '.join(group)}")
        return 0
    problems = missing_files() + dead_links() + wrong_dependencies() + repeated_types() + large_cycles()
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
