#!/usr/bin/env python3
"""Makes a ROM from IN, the program as a raw binary: writes the header's fields and checksum, and pads the file.

    cartridge.py MAP IN OUT

The title, code, maker and version come from the [rom] table of MAP, a TOML file such as memory-map.toml. The area for
the console maker's logo stays empty, because the BIOS that is built into emulators does not check it.
"""

import sys
import tomllib
from pathlib import Path

TITLE, CODE, MAKER, FIXED, VERSION, CHECKSUM = 0xA0, 0xAC, 0xB0, 0xB2, 0xBC, 0xBD
BRANCH_OPCODE_AT, BRANCH_OPCODE, FIXED_VALUE = 3, 0xEA, 0x96


def put(image, offset, text, size):
    """Writes an ASCII field, padded with zeros."""
    raw = text.encode("ascii")
    if len(raw) > size:
        sys.exit(f"{text!r} is longer than the {size} bytes the header has for it")
    image[offset : offset + size] = raw.ljust(size, b"\0")


def main():
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    rom = tomllib.loads(Path(sys.argv[1]).read_text())["rom"]
    image = bytearray(Path(sys.argv[2]).read_bytes())
    if image[BRANCH_OPCODE_AT] != BRANCH_OPCODE:
        sys.exit("the program does not begin with an ARM branch, so emulators would not recognise it as a cartridge")

    put(image, TITLE, rom["title"], 12)
    put(image, CODE, rom["code"], 4)
    put(image, MAKER, rom["maker"], 2)
    image[FIXED] = FIXED_VALUE
    image[VERSION] = rom["version"]
    image[CHECKSUM] = -(0x19 + sum(image[TITLE:VERSION + 1])) & 0xFF

    # The size of a cartridge is a power of two. Unused bytes of a real cartridge read as 0xFF.
    size = 1 << (len(image) - 1).bit_length()
    Path(sys.argv[3]).write_bytes(image.ljust(size, b"\xff"))


if __name__ == "__main__":
    main()
