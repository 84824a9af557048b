"""Writes the synchronous client (client.py and its parts) from the asynchronous one (aio.py and its parts).

python generate.py            writes the files
python generate.py --check    only compares; the exit code is 1 if a file is not up to date
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent / "framewire"

FILES = {
    "aio.py": "client.py",
    "_async_batch.py": "_sync_batch.py",
    "_async_files.py": "_sync_files.py",
    "_async_streams.py": "_sync_streams.py",
}
"""The asynchronous files, and the synchronous file that is made from each."""

# Patterns and their replacements, in the order in which they are applied.
CHANGES = [
    (r'"""An asynchronous client.*?"""\n', '"""A client of a Framewire server: `framewire.connect(url)`.\n\n'
     '`generate.py` makes this file from `aio.py`: change that one.\n"""\n'),
    (r"from framewire\._starting import .*\n", ""),
    (r"from framewire\._async_memory import AsyncMemory", "from framewire.memory import Memory"),
    (r"`generate\.py` makes `_sync_(\w+)\.py` from this file\.",
     r"`generate.py` makes this file from `_async_\1.py`: change that one."),
    (r"_async_(transport|batch|files|streams)\b(?!\.py)", r"_sync_\1"),
    (r" *@starting\w*\n", ""),
    (r"websockets\.asyncio\.", "websockets.sync."),
    (r"AsyncTransport", "SyncTransport"),
    (r"\bAsync([A-Z])", r"\1"),
    (r"enter_async_context", "enter_context"),
    (r"\baclose\b", "close"),
    (r"__a(enter|exit)__", r"__\1__"),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
]  # fmt: skip


def synchronous(text: str, file: str) -> str:
    """Converts the text of an asynchronous file to that of the synchronous file `file`."""
    for pattern, instead in CHANGES:
        text = re.sub(pattern, instead, text, flags=re.DOTALL if pattern.startswith('"""') else 0)
    ruff = [sys.executable, "-m", "ruff"]
    name = str(PACKAGE / file)
    check = [*ruff, "check", "--quiet", "--select", "I", "--fix", "--exit-zero", "--stdin-filename", name, "-"]
    text = subprocess.run(check, input=text, check=True, capture_output=True, text=True).stdout
    reformat = [*ruff, "format", "--quiet", "--stdin-filename", name, "-"]
    return subprocess.run(reformat, input=text, check=True, capture_output=True, text=True).stdout


def main() -> int:
    """Writes the files, or compares them."""
    for source, target in FILES.items():
        text = synchronous((PACKAGE / source).read_text(), target)
        if "--check" not in sys.argv:
            (PACKAGE / target).write_text(text)
        elif (PACKAGE / target).read_text() != text:
            print(f"framewire/{target} is not up to date: run `make generate`", file=sys.stderr)
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
