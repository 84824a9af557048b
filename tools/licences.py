#!/usr/bin/env python3
"""Writes the licences of the Rust crates in a program or library of Framewire.

    tools/licences.py FILE TARGET OPTION...    writes FILE; the options choose packages and features, as for cargo build

The exit code is 1 if a crate does not contain the text of its licence, and this script has no text for that licence.
"""

import json
import subprocess
import sys
from pathlib import Path

NAMES = ("LICEN", "COPYING", "NOTICE", "UNLICENSE", "COPYRIGHT")
ROOT = Path(__file__).resolve().parent.parent
RULE = "=" * 100


def output(*command: str) -> str:
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def crates(target: str, options: list[str]) -> list[dict]:
    """The crates from outside this workspace that the chosen packages need, without build and test dependencies."""
    tree = output("cargo", "tree", "--locked", *options, "--edges", "normal", "--target", target, "--prefix", "none")
    linked = {tuple(line.split(" ")[:2]) for line in tree.splitlines() if line}
    metadata = json.loads(output("cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target))
    found = [each for each in metadata["packages"] if each["source"] and (each["name"], "v" + each["version"]) in linked]
    return sorted(found, key=lambda each: (each["name"], each["version"]))


def texts(crate: dict) -> list[str]:
    """The texts of a crate's licences: the files in its package, or else the usual text of the licence it names."""
    folder = Path(crate["manifest_path"]).parent
    files = sorted(path for path in folder.iterdir() if path.name.upper().startswith(NAMES) and path.is_file())
    if files:
        return [path.read_text(encoding="utf-8", errors="replace").strip() for path in files]
    authors = ", ".join(crate["authors"]) or f"the authors of {crate['name']}"
    licence = crate["license"] or ""
    if "MIT" in licence:
        text = (ROOT / "LICENSE-MIT").read_text(encoding="utf-8")
        permission = text[text.index("Permission is hereby granted") :].strip()
        return [f"MIT License\n\nCopyright (c) {authors}\n\n{permission}"]
    if "Apache-2.0" in licence:
        return [(ROOT / "LICENSE-APACHE").read_text(encoding="utf-8").strip()]
    sys.exit(f"{crate['name']} {crate['version']}: no file with its licence ({licence or 'not named'}); add a text for it")


def main() -> int:
    if len(sys.argv) < 4:
        print(__doc__, file=sys.stderr)
        return 2
    found = crates(sys.argv[2], sys.argv[3:])
    # Most crates have the same texts, so each text is written once.
    users: dict[str, list[str]] = {}
    lines = ["This program contains these Rust crates. The texts of their licences are below.", ""]
    for crate in found:
        name = f"{crate['name']} {crate['version']}"
        lines.append(f"{name}: {crate['license']}; source: https://crates.io/crates/{crate['name']}/{crate['version']}")
        for text in texts(crate):
            users.setdefault(text, []).append(name)
    for text, names in users.items():
        lines += ["", RULE, ", ".join(names), RULE, "", text]
    Path(sys.argv[1]).write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
