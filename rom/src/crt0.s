@ Cartridge header, start-up and the interrupt handler.

    .section .crt0, "ax"
    .cpu arm7tdmi
    .arm
    .global _start
_start:
    b start
    .space 0xC0 - 4             @ header; tools/cartridge.py fills it in

start:
    mov r0, #0x12               @ interrupt mode
    msr cpsr_c, r0
    ldr sp, =__stack_irq
    mov r0, #0x1F               @ system mode, interrupts on
    msr cpsr_c, r0
    ldr sp, =__stack_user

    ldr r0, =__data_load
    ldr r1, =__data_start
    ldr r2, =__data_end
1:  cmp r1, r2
    ldrlo r3, [r0], #4
    strlo r3, [r1], #4
    blo 1b

    ldr r1, =__bss_start
    ldr r2, =__bss_end
    mov r3, #0
2:  cmp r1, r2
    strlo r3, [r1], #4
    blo 2b

    ldr r1, =0x03007FFC         @ where the BIOS finds the handler's address
    ldr r0, =interrupt
    str r0, [r1]
    ldr r0, =main
    mov lr, pc
    bx r0
3:  b 3b

@ Acknowledges all raised interrupts, to the hardware and to the BIOS's wait call.
interrupt:
    ldr r1, =0x04000200
    ldr r2, [r1]                @ enabled in the low half, raised in the high half
    and r2, r2, r2, lsr #16
    strh r2, [r1, #2]
    ldr r1, =0x03007FF8
    ldrh r3, [r1]
    orr r3, r3, r2
    strh r3, [r1]
    bx lr

    .pool
    @ If the first instructions after the header contain work RAM addresses, mGBA takes a small program for one that
    @ is sent over a link cable. So the rest of the program must not be near the header.
    .align 9
