#!/usr/bin/env python3
"""Runs the Python examples in Markdown files, with the Python that runs this script.

    python tools/examples.py FILE...

The examples use the server at FRAMEWIRE_URL.
"""

import re
import subprocess
import sys
import tempfile
from pathlib import Path


def main() -> int:
    """Runs the examples. Returns 1 if one fails."""
    failed = 0
    for page in map(Path, sys.argv[1:]):
        blocks = re.findall(r"```python\n(.*?)```", page.read_text(), re.DOTALL)
        # Skips examples that need the reader's own game file.
        blocks = [block for block in blocks if "my-game" not in block]
        for block in blocks:
            with tempfile.TemporaryDirectory() as folder:
                run = subprocess.run([sys.executable, "-W", "error", "-c", block], cwd=folder, capture_output=True, text=True)
            if run.returncode or run.stderr:
                failed += 1
                print(f"{page}: this example failed:\n{block}\n{run.stderr}", file=sys.stderr)
        print(f"{page.name}: {len(blocks)} examples")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
