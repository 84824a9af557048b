#!/usr/bin/env python3
"""Turns the drawings in art/ into a C header.

    art.py OUT SPRITES FONT...

A drawing is text. A sprite begins with `sprite NAME` and has a hexadecimal palette index or `.` (transparent) for each
pixel. Its width and height are multiples of 8. A font file has blocks. A block begins with a line such as `: A B C`,
which names its characters. Then come the drawings of these characters, next to each other, with one column of space
between them. `#` is a set pixel. The size of the characters is in the file's name, such as `font-3x5.txt`, and becomes
the font's name. Lines that begin with `//` are comments.
"""

import re
import sys
from pathlib import Path

FIRST, LAST = 32, 95  # the first and the last ASCII code in a font's array; characters without a drawing are blank


def lines_of(path):
    return [line.rstrip() for line in Path(path).read_text().splitlines() if not line.startswith("//")]


def sprites(path):
    """C arrays with the sprites' tiles, in the console's format: 4 bits per pixel, and a u32 for a row of 8 pixels."""
    blocks = re.split(r"^sprite (\w+)$", "\n".join(lines_of(path)), flags=re.M)[1:]
    for name, body in zip(blocks[::2], blocks[1::2]):
        rows = body.split()
        width, height = len(rows[0]), len(rows)
        if width % 8 or height % 8 or any(len(row) != width for row in rows):
            sys.exit(f"{path}: {name} is not made of whole 8 by 8 tiles")
        words = []
        for top in range(0, height, 8):
            for left in range(0, width, 8):
                for row in rows[top : top + 8]:
                    cells = row[left : left + 8].replace(".", "0")
                    words.append(int(cells[::-1], 16))
        yield f"static const u32 sprite_{name}[{len(words)}] = {{{', '.join(f'{w:#x}' for w in words)}}};"


def font(path):
    """A C array with the font's glyphs: one byte per row, with the leftmost pixel in bit 0."""
    width, height = map(int, re.search(r"(\d+)x(\d+)", Path(path).stem).groups())
    glyphs, lines = {}, [line for line in lines_of(path) if line]
    while lines:
        names, rows, lines = lines[0][1:].split(), lines[1 : height + 1], lines[height + 1 :]
        for i, name in enumerate(names):
            cells = [row[i * (width + 1) : i * (width + 1) + width] for row in rows]
            if any(len(cell) != width for cell in cells):
                sys.exit(f"{path}: {name} is not {width} wide")
            glyphs[ord(name)] = [sum(1 << x for x, c in enumerate(cell) if c == "#") for cell in cells]
    table = [glyphs.get(code, [0] * height) for code in range(FIRST, LAST + 1)]
    body = ",\n".join("    {" + ", ".join(map(str, rows)) + "}" for rows in table)
    return f"static const u8 font_{width}x{height}[{len(table)}][{height}] = {{\n{body}\n}};"


def main():
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    out, sprite_file, *fonts = sys.argv[1:]
    parts = [
        "/* Written by tools/art.py from the drawings in art/. Change the drawings, not this file. */",
        "#pragma once",
        '#include "gba.h"',
        f"#define FONT_FIRST {FIRST}",
        *sprites(sprite_file),
        *map(font, fonts),
    ]
    Path(out).write_text("\n".join(parts) + "\n")


if __name__ == "__main__":
    main()
