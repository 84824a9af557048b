"""Runs the cells of examples/tour.ipynb and stores their outputs in the file, so that GitHub shows them.

python notebook.py            writes the outputs
python notebook.py --check    only compares; the exit code is 1 if the output of a cell has changed
"""

from __future__ import annotations

import ast
import base64
import contextlib
import io
import json
import sys
import traceback
from pathlib import Path
from typing import Any

import numpy as np

from framewire import Screen

NOTEBOOK = Path(__file__).parent / "examples" / "tour.ipynb"

Output = dict[str, Any]


def lines(text: str) -> list[str]:
    """Splits a text into lines, as notebooks store it."""
    return text.splitlines(keepends=True)


def run(source: str, names: dict[str, Any]) -> list[Output]:
    """Runs a cell, and returns its outputs: what it prints, and the value of its last expression."""
    tree = ast.parse(source)
    last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
    printed = io.StringIO()
    value = None
    with contextlib.redirect_stdout(printed):
        exec(compile(tree, "cell", "exec"), names)
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    outputs: list[Output] = []
    if printed.getvalue():
        outputs.append({"output_type": "stream", "name": "stdout", "text": lines(printed.getvalue())})
    if value is not None:
        data: dict[str, Any] = {"text/plain": lines(repr(value))}
        if isinstance(value, Screen):
            data["image/png"] = base64.b64encode(value.png()).decode()
        outputs.append({"output_type": "execute_result", "data": data, "metadata": {}})
    return outputs


def shown(output: Output) -> Any:
    """Makes an output comparable. The bytes of a PNG depend on the version of zlib, but its pixels do not."""
    data = output.get("data", {})
    picture = data.get("image/png")
    pixels = None if picture is None else np.asarray(Screen.from_png(base64.b64decode(picture))).tolist()
    return output["output_type"], output.get("text"), data.get("text/plain"), pixels


def main() -> int:
    """Writes the outputs, or compares them."""
    notebook = json.loads(NOTEBOOK.read_text())
    names: dict[str, Any] = {"__name__": "__main__"}
    failed = 0
    cells = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    for count, cell in enumerate(cells, 1):
        source = "".join(cell["source"])
        try:
            outputs = run(source, names)
        except Exception:
            traceback.print_exc()
            print(f"{NOTEBOOK.name}: cell {count} failed:\n{source}", file=sys.stderr)
            return 1
        for output in outputs:
            if output["output_type"] == "execute_result":
                output["execution_count"] = count
        if [shown(each) for each in outputs] != [shown(each) for each in cell["outputs"]]:
            failed += 1
            if "--check" in sys.argv:
                print(f"{NOTEBOOK.name}: cell {count} has a different output; run `python notebook.py`", file=sys.stderr)
        cell["outputs"], cell["execution_count"] = outputs, count
    if "--check" in sys.argv:
        return 1 if failed else 0
    NOTEBOOK.write_text(json.dumps(notebook, indent=1, ensure_ascii=False) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
