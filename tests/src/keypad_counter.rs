//! A game that counts the keypad interrupts of a GBA. The tests of other crates include this file by its path.

/// The program, for the address 0x080000C0.
const PROGRAM: [u32; 24] = [
    0xE28F_0034, // adr r0, interrupt
    0xE3A0_1403, // mov r1, #0x03000000
    0xE381_1902, // orr r1, r1, #0x8000
    0xE501_0004, // str r0, [r1, #-4]
    0xE3A0_1301, // mov r1, #0x04000000
    0xE3A0_0901, // mov r0, #0x4000
    0xE380_0001, // orr r0, r0, #1
    0xE281_2C01, // add r2, r1, #0x100
    0xE1C2_03B2, // strh r0, [r2, #0x32]: an interrupt while A is held
    0xE281_2C02, // add r2, r1, #0x200
    0xE3A0_0A01, // mov r0, #0x1000
    0xE1C2_00B0, // strh r0, [r2]
    0xE3A0_0001, // mov r0, #1
    0xE1C2_00B8, // strh r0, [r2, #8]
    0xEAFF_FFFE, // b to itself
    0xE3A0_1301, // interrupt: mov r1, #0x04000000
    0xE281_2C02, // add r2, r1, #0x200
    0xE3A0_0A01, // mov r0, #0x1000
    0xE1C2_00B2, // strh r0, [r2, #2]
    0xE3A0_3402, // mov r3, #0x02000000
    0xE593_0000, // ldr r0, [r3]
    0xE280_0001, // add r0, r0, #1
    0xE583_0000, // str r0, [r3]
    0xE12F_FF1E, // bx lr
];

/// A ROM that counts its keypad interrupts at 0x02000000. While A is held, it gets one when the keys are set, and one
/// in each frame. The header is that of `game`.
pub fn keypad_counter(game: &[u8]) -> Vec<u8> {
    let mut rom = game.to_vec();
    rom[..4].copy_from_slice(&0xEA00_002E_u32.to_le_bytes()); // b 0xC0
    for (place, word) in rom[0xC0..].chunks_exact_mut(4).zip(PROGRAM) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    rom
}
