@ Cartridge header and start of the game that reads the clock.

    .section .text.start, "ax"
    .cpu arm7tdmi
    .arm
    .global _start
_start:
    b start
    .space 0xC0 - 4             @ header; tools/cartridge.py fills it in
    .space 0x40                 @ mGBA looks here for signs of a program that is sent over a link cable

start:
    ldr sp, =0x03007F00
    ldr r0, =game
    bx r0
    .pool
