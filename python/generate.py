"""Writes framewire/client.py, the synchronous client, from framewire/aio.py, the asynchronous one.

python generate.py            writes it
python generate.py --check    only compares; the exit code is 1 if it is not up to date
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PACKAGE = Path(__file__).parent / "framewire"

# What to replace, in this order.
CHANGES = [
    (r'"""An asynchronous client.*?"""\n', '"""A client of a Framewire server: `framewire.connect(url)`.\n\n'
     '`generate.py` makes this file from `aio.py`: change that one.\n"""\n'),
    (r"from framewire\._starting import .*\n", ""),
    (r"from framewire\._async_memory import AsyncMemory", "from framewire.memory import Memory"),
    (r"_async_transport", "_sync_transport"),
    (r" *@starting\w*\n", ""),
    (r"websockets\.asyncio\.", "websockets.sync."),
    (r"AsyncIterator", "Iterator"),
    (r"AsyncTransport", "SyncTransport"),
    (r"\bAsync([A-Z])", r"\1"),
    (r"enter_async_context", "enter_context"),
    (r"\baclose\b", "close"),
    (r"__a(enter|exit|iter|next)__", r"__\1__"),
    (r"\basync (def|with|for)\b", r"\1"),
    (r"\bawait ", ""),
]  # fmt: skip


def synchronous(text: str) -> str:
    """The synchronous client for an asynchronous one."""
    for pattern, instead in CHANGES:
        text = re.sub(pattern, instead, text, flags=re.DOTALL if pattern.startswith('"""') else 0)
    ruff = [sys.executable, "-m", "ruff"]
    name = str(PACKAGE / "client.py")
    check = [*ruff, "check", "--quiet", "--select", "I", "--fix", "--exit-zero", "--stdin-filename", name, "-"]
    text = subprocess.run(check, input=text, check=True, capture_output=True, text=True).stdout
    reformat = [*ruff, "format", "--quiet", "--stdin-filename", name, "-"]
    return subprocess.run(reformat, input=text, check=True, capture_output=True, text=True).stdout


def main() -> int:
    """Writes the file, or compares it."""
    text = synchronous((PACKAGE / "aio.py").read_text())
    target = PACKAGE / "client.py"
    if "--check" not in sys.argv:
        target.write_text(text)
    elif target.read_text() != text:
        print("framewire/client.py is not up to date: run `make generate`", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
