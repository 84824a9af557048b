"""Runs a ROM in stable-retro, frame by frame, and gets the picture of each frame. Prints frames per second.

retro.py ROM FRAMES     needs a Python with stable-retro: pip install stable-retro
"""

import os
import sys
import time

import stable_retro as retro

rom, frames = sys.argv[1], int(sys.argv[2])
emulator = retro.RetroEmulator(os.path.abspath(rom))
for _ in range(300):
    emulator.step()
seen = 0
start = time.monotonic()
for _ in range(frames):
    emulator.step()
    screen = emulator.get_screen()
    seen += int(screen[80, 120, 0])  # use each picture, as a program would
print(f"{frames / (time.monotonic() - start):.1f}")
