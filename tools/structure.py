#!/usr/bin/env python3
"""Compares ARCHITECTURE.md with the crates, and checks that every file that is named in the checkout exists.

    tools/structure.py    each finding is `FILE:LINE: what is wrong`; the exit code is 1 if there is one
"""

import json
import re
import subprocess
import sys
from pathlib import Path

# A path: from the root of the checkout, or the end of one, such as `op/table.rs`.
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
    """The column `depends on` has the workspace's crates that a crate needs, in the order of the alphabet."""
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
            found.append(f"ARCHITECTURE.md:{number}: crates/{folder} depends on: {expected}; not: {text or 'no row'}")
    for folder, (number, _) in rows.items():
        if folder not in names.values():
            found.append(f"ARCHITECTURE.md:{number}: there is no crates/{folder}")
    return found


def main() -> int:
    problems = missing_files() + wrong_dependencies()
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
