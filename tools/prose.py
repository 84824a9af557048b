#!/usr/bin/env python3
"""Finds words that make comments, documents, help and error texts hard to read.

    tools/prose.py [PATH...]    checks these files and folders; without any, the whole checkout

Each finding is `FILE:LINE: the word: what to write instead`. The exit code is 1 if there is one.
"""

import re
import subprocess
import sys
from pathlib import Path

# What not to write, and what to write instead.
WORDS = {
    r"behind(?! the feature)": '"after"; of code, "by" or "under"',
    r"besides?": '"next to", "compared with" or "as well as"',
    r"who(so)?ever|whomever": '"clients that", "anyone who", or the name of the reader',
    r"anew": '"again"',
    r"mend(s|ed|ing)?": '"fix"',
    r"so many(?! that)": '"this many" or "how many"',
    r"(?<!there )(?<!There )(is|are|was|were) none": '"there is no ..."',
    r"(?<!there )(?<!There )(is|are|was|were) no(?! longer| more| less)": '"is not a ..." or "there is no ..."',
    r"(has|have|had) not(?=[.,;:)\"])": '"does not have"',
    r"(is|are|was|were|be|been|being) told": '"gets", "learns", or "... reports"',
    r"tells": '"reports", "returns" or "says"',
    r"(no|given|gives?) leave": '"is allowed"',
    r"in vain": '"without success"',
    r"hitherto|thereof|therein|whereof|wherein|thence|hence": "a common word",
}

# Files without prose, or with prose that is not ours.
SKIPPED = re.compile(
    r"\.(png|gba|json|jsonl|lock|svg|tsv|gz|zst|pem)$|^LICENSE|requirements\.txt$|^docs/(study|performance)/|^tools/prose\.py$"
)

# The name of a Rust function, such as a test: it is read as words.
NAME = re.compile(r"\bfn (\w+)")
PATTERNS = [(re.compile(rf"(?<![\w./-])(?:{word})(?![\w-])"), instead) for word, instead in WORDS.items()]


def findings(path: str) -> list[str]:
    lines = Path(path).read_text(encoding="utf-8", errors="replace").splitlines()
    return [
        f"{path}:{number}: {match[0]!r}: write {instead}"
        for number, line in enumerate(lines, 1)
        for text in [line, *(name.replace("_", " ") for name in NAME.findall(line))]
        for pattern, instead in PATTERNS
        for match in pattern.finditer(text)
    ]


def main(paths: list[str]) -> int:
    listed = subprocess.run(["git", "ls-files", "--", *paths], check=True, capture_output=True, text=True).stdout
    files = [path for path in listed.splitlines() if not SKIPPED.search(path) and Path(path).is_file()]
    problems = [line for path in files for line in findings(path)]
    print("\n".join(problems), end="\n" if problems else "")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
