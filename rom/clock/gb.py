#!/usr/bin/env python3
"""Writes the ROM of a Game Boy game that reads its cartridge's clock (MBC3) in each frame.

    gb.py OUT

Tests find these values in work RAM. At C000: seconds, minutes, hours, the low and the high part of the days. At C008:
the number of frames (16 bits). At C00A: a checksum of all seconds that were read so far, so two runs that differ in one
frame have different checksums from then on. The shade of the screen also shows the seconds.
"""

import sys
from pathlib import Path

START = 0x150
SIZE = 0x8000


class Code:
    """Bytes with labels for relative jumps."""

    def __init__(self):
        self.bytes = bytearray()
        self.labels = {}
        self.jumps = []

    def label(self, name):
        self.labels[name] = len(self.bytes)

    def put(self, *values):
        self.bytes += bytes(values)

    def jump(self, opcode, label):
        """A jump of two bytes: 0x18 always, 0x20 if not zero, 0x28 if zero."""
        self.put(opcode, 0)
        self.jumps.append((len(self.bytes), label))

    def done(self):
        for at, label in self.jumps:
            self.bytes[at - 1] = (self.labels[label] - at) & 0xFF
        return self.bytes


def program():
    code = Code()
    put, label, jump = code.put, code.label, code.jump
    put(0xF3)  # di
    put(0x3E, 0x0A, 0xEA, 0x00, 0x00)  # enable the RAM and the clock
    put(0xAF)  # a = 0
    for low in range(0x10):
        put(0xEA, low, 0xC0)  # [C000..C00F] = 0

    label("frame")
    put(0xF0, 0x44, 0xFE, 0x90)  # line 144?
    jump(0x20, "frame")
    put(0xAF, 0xEA, 0x00, 0x60, 0x3C, 0xEA, 0x00, 0x60)  # latch: 0, then 1
    put(0x21, 0x00, 0xC0, 0x0E, 0x08)  # hl = C000, c = the first register
    label("register")
    put(0x79, 0xEA, 0x00, 0x40, 0xFA, 0x00, 0xA0, 0x22)  # [hl++] = register c
    put(0x0C, 0x79, 0xFE, 0x0D)  # up to 0C
    jump(0x20, "register")

    put(0x21, 0x08, 0xC0, 0x34)  # frames, low part
    jump(0x20, "counted")
    put(0x23, 0x34)  # and high part
    label("counted")
    put(0x21, 0x0A, 0xC0, 0xFA, 0x00, 0xC0, 0x86, 0x07, 0x77)  # the sum: add the seconds, rotate
    put(0xFA, 0x00, 0xC0, 0xE0, 0x47)  # the shades are the seconds

    label("line")
    put(0xF0, 0x44, 0xFE, 0x90)
    jump(0x28, "line")
    jump(0x18, "frame")
    return code.done()


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    image = bytearray(SIZE)
    image[0x100:0x104] = bytes([0x00, 0xC3, START & 0xFF, START >> 8])
    image[0x104:0x108] = bytes([0xCE, 0xED, 0x66, 0x66])  # the logo's beginning: libmgba looks for it
    image[0x134:0x139] = b"CLOCK"
    image[0x147] = 0x10  # MBC3 with clock, RAM and battery
    image[0x149] = 0x02  # 8 KiB of RAM
    image[0x14D] = -sum(image[0x134:0x14D]) - (0x14D - 0x134) & 0xFF
    code = program()
    image[START : START + len(code)] = code
    Path(sys.argv[1]).write_bytes(image)


if __name__ == "__main__":
    main()
