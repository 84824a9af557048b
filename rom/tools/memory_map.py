#!/usr/bin/env python3
"""Turns memory-map.toml into the game's C header and into README.md's table.

    memory_map.py header MAP OUT      write the C header
    memory_map.py readme MAP README   rewrite the table between README's markers
    memory_map.py check  MAP README   fail if that table is out of date
"""

import re
import sys
import tomllib
from pathlib import Path

SIZES = {"u8": 1, "u16": 2, "u32": 4, "i16": 2}
KEYS = ["A", "B", "Select", "Start", "Right", "Left", "Up", "Down", "R", "L"]
BEGIN, END = "<!-- memory map: written by `make readme` -->\n", "<!-- end of memory map -->\n"


def parse_type(text):
    """`u16[4]` -> ("u16", 4); a plain `u16` has no count."""
    match = re.fullmatch(r"(\w+)(?:\[(\d+)\])?", text)
    if not match or match[1] not in SIZES:
        sys.exit(f"unknown type {text!r}: use one of {', '.join(SIZES)}, or T[n]")
    return match[1], int(match[2]) if match[2] else None


def load(path):
    """Reads the map. Checks that the fields are in order, aligned and do not overlap, and that the lamps are in order.

    A lamp is a place on the screen that shows whether a key is held.
    """
    data = tomllib.loads(Path(path).read_text())
    end = data["memory"]["base"]
    for field in data["field"]:
        base, count = parse_type(field["type"])
        if field["address"] < end:
            sys.exit(f"{field['name']}: starts at {field['address']:#010x}, inside the field before it")
        if field["address"] % SIZES[base]:
            sys.exit(f"{field['name']}: {field['address']:#010x} is not aligned for {base}")
        end = field["address"] + SIZES[base] * (count or 1)
    if [lamp["key"] for lamp in data["lamp"]] != KEYS:
        sys.exit(f"lamps must be in the order of the keys: {', '.join(KEYS)}")
    return data


def colour(text):
    """Converts `#rrggbb` to the console's 15 bits. Refuses colours that the console cannot show exactly."""
    channels = [int(text[i : i + 2], 16) for i in (1, 3, 5)]
    fives = [c >> 3 for c in channels]
    if [c << 3 | c >> 2 for c in fives] != channels:
        nearest = "".join(f"{c << 3 | c >> 2:02x}" for c in fives)
        sys.exit(f"{text}: not one of the console's colours; the nearest is #{nearest}")
    return fives[0] | fives[1] << 5 | fives[2] << 10


def header(data):
    """The C header: a struct for the memory, assertions for its offsets, and all constants of the map."""
    base = data["memory"]["base"]
    members, asserts, end, gaps = [], [], 0, 0
    for field in data["field"]:
        offset, (kind, count) = field["address"] - base, parse_type(field["type"])
        if offset > end:
            members.append(f"    u8 gap_{gaps}[{offset - end}];")
            gaps += 1
        name = field["name"]
        members.append(f"    {kind} {name}{f'[{count}]' if count else ''};")
        asserts.append(f'_Static_assert(offsetof(struct memory, {name}) == {offset:#x}, "{name} has moved");')
        end = offset + SIZES[kind] * (count or 1)

    constants = [f"#define STATE_{name.upper()} {value}" for name, value in data["states"].items()]
    constants += [f"#define BRICK_{name.upper()} {value}" for name, value in data["brick_kinds"].items()]
    for table in ("rules", "geometry"):
        constants += [f"#define {name.upper()} {value:#x}" for name, value in data[table].items()]
    save = data["save"]
    magic = int.from_bytes(save["magic"].encode(), "little")
    constants += [
        f"#define SAVE_ADDRESS {save['address']:#x}",
        f"#define SAVE_MAGIC {magic:#x}",
        f"#define SAVE_SCORE_OFFSET {save['score_offset']}",
        f"#define SAVE_CHECK_OFFSET {save['check_offset']}",
        f"#define KEY_COUNT {len(KEYS)}",
    ]
    constants += [f"#define KEY_{key.upper()} {1 << bit:#x}" for bit, key in enumerate(KEYS)]
    constants += [f"#define LAMP_{key.upper()} {bit}" for bit, key in enumerate(KEYS)]

    lamps = [
        f"    {{{lamp['x']}, {lamp['y']}, {colour(lamp['lit']):#06x}, {colour(lamp['unlit']):#06x}}}, /* {lamp['key']} */"
        for lamp in data["lamp"]
    ]
    parts = [
        "/* Written by tools/memory_map.py from memory-map.toml. Change that file, not this one. */",
        "#pragma once",
        "#include <stddef.h>",
        '#include "gba.h"',
        "",
        *constants,
        "",
        "struct memory {",
        *members,
        "};",
        *asserts,
        "",
        "struct lamp {",
        "    u8 x, y;",
        "    u16 lit, unlit;",
        "};",
        "static const struct lamp lamps[KEY_COUNT] = {",
        *lamps,
        "};",
    ]
    return "\n".join(parts) + "\n"


def readme(data, text):
    """README's text with a new table between its markers."""
    rows = [
        f"| `{field['address']:#010x}` | `{field['name']}` | `{field['type']}` | {field['doc']} |"
        for field in data["field"]
    ]
    table = "\n".join(["| address | name | type | what |", "| --- | --- | --- | --- |", *rows])
    head, rest = text.split(BEGIN)
    return head + BEGIN + "\n" + table + "\n\n" + END + rest.split(END)[1]


def main():
    if len(sys.argv) != 4 or sys.argv[1] not in ("header", "readme", "check"):
        sys.exit(__doc__)
    command, data, path = sys.argv[1], load(sys.argv[2]), Path(sys.argv[3])
    if command == "header":
        path.write_text(header(data))
    elif command == "readme":
        path.write_text(readme(data, path.read_text()))
    elif readme(data, path.read_text()) != path.read_text():
        sys.exit(f"{path}: the memory map's table is out of date; run `make readme`")


if __name__ == "__main__":
    main()
