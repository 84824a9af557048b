//! The names of the processors' registers.

/// The registers of the Game Boy Advance: r13 is the stack pointer, r14 the link register, r15 the program counter.
pub const ADVANCE: [&str; 17] = [
    "r0", "r1", "r2", "r3", "r4", "r5", "r6", "r7", "r8", "r9", "r10", "r11", "r12", "r13", "r14", "r15",
    "cpsr",
];

/// The registers of the Game Boy, and its pairs of registers.
pub const GAME_BOY: [&str; 14] = ["a", "f", "b", "c", "d", "e", "h", "l", "af", "bc", "de", "hl", "sp", "pc"];
