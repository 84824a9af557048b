//! Tests of sound that is not mixed because nobody reads it.

use framewire_libmgba::{Core, Platform};

use crate::support::{COLOR, DEMO, gb, gba};

/// A GBA program that writes random values to random sound registers, except SOUNDBIAS, about every 5,000 cycles. It
/// never switches the sound off.
const NOISE: [u32; 21] = [
    0xE3A0_0301, // mov r0, #0x04000000
    0xE59F_4040, // ldr r4, the first number at the end
    0xE59F_5040, // ldr r5, the second
    0xE3A0_1001, // mov r1, #1
    0xE022_5491, // again: mla r2, r1, r4, r5
    0xE1A0_1002, // mov r1, r2
    0xE1A0_2D21, // lsr r2, r1, #26
    0xE202_203E, // and r2, r2, #0x3E
    0xE282_2060, // add r2, r2, #0x60
    0xE352_0088, // cmp r2, #0x88
    0x0AFF_FFF8, // beq again
    0xE1A0_3421, // lsr r3, r1, #8
    0xE352_0084, // cmp r2, #0x84
    0x0383_3080, // orreq r3, r3, #0x80: sound stays on
    0xE180_30B2, // strh r3, [r0, r2]
    0xE3A0_60C8, // mov r6, #200
    0xE256_6001, // wait: subs r6, r6, #1
    0x1AFF_FFFD, // bne wait
    0xEAFF_FFF0, // b again
    1_664_525,
    1_013_904_223,
];

/// A Game Boy program that does the same, about every 3,400 clock cycles.
const GB_NOISE: [u8; 46] = [
    0x3E, 0x80, 0xE0, 0x26, // the sound is on
    0x11, 0x34, 0x12, // ld de, 0x1234
    0x62, 0x6B, 0x29, 0x29, 0x19, // again: hl = de * 5
    0x11, 0x19, 0x36, 0x19, // add 0x3619
    0x54, 0x5D, // ld de, hl
    0x7C, 0xE6, 0x3F, 0xC6, 0x10, // a = (h & 0x3F) + 0x10: a register
    0xFE, 0x40, 0x30, 0xEC, // jr nc, again
    0x4F, 0x7D, 0x47, 0x79, // c = a, b = l
    0xFE, 0x26, 0x78, 0x20, 0x02, 0xF6, 0x80, // the switch stays on
    0xE2, // ldh [c], a
    0x06, 0xC8, 0x05, 0x20, 0xFD, // wait
    0x18, 0xD9, // jr again
];

/// Two cores of each game. The first mixes all sound.
fn pairs() -> Vec<[Core; 2]> {
    let mut gb_noise = gb("NOISE");
    gb_noise[0x150..][..GB_NOISE.len()].copy_from_slice(&GB_NOISE);
    let mut color_noise = gb_noise.clone();
    color_noise[COLOR] = 0x80;
    let mut noise = gba("NOISE", "BNSE");
    for (at, word) in noise[0xC0..].chunks_exact_mut(4).zip(NOISE) {
        at.copy_from_slice(&word.to_le_bytes());
    }
    [&noise, DEMO, &gb_noise, &color_noise]
        .map(|rom| {
            let mut pair = [(); 2].map(|()| Core::from_bytes(rom).unwrap());
            pair[0].mix_all_sound(true);
            pair
        })
        .into()
}

/// In some frames, changes the resolution of a GBA's samples, and lets DMA fill a FIFO from the ROM at the rate of a
/// timer. A Game Boy's sound is switched off for some frames.
fn disturb(core: &mut Core, frame: u32) {
    let random = frame.wrapping_mul(2_654_435_761) >> 7;
    if core.platform() == Platform::Gb {
        match frame % 50 {
            10 => core.write8(0xFF26, 0),
            20 => core.write8(0xFF26, 0x80),
            _ => {}
        }
        return;
    }
    match frame % 50 {
        // SOUNDBIAS.
        10 => core.write16(0x0400_0088, 0x200 | ((random & 3) << 14) as u16),
        20 => {
            core.write32(0x0400_00BC, 0x0800_0000);
            core.write32(0x0400_00C0, 0x0400_00A0);
            core.write32(0x0400_00C4, 0xB640_0000);
            core.write32(0x0400_0100, 0x0080_FC00 | random & 0x3FF);
        }
        40 => core.write16(0x0400_0102, 0),
        _ => {}
    }
}

#[test]
fn the_state_is_the_same_if_sound_is_not_mixed() {
    for [mut all, mut skipping] in pairs() {
        for frame in 0..3000 {
            for core in [&mut all, &mut skipping] {
                core.set_drawing(false);
                disturb(core, frame);
                core.run_frame();
            }
            if frame % 10 == 0 || frame > 2900 {
                assert!(
                    all.save_state(0).unwrap() == skipping.save_state(0).unwrap(),
                    "frame {frame} of {all:?}"
                );
            }
        }
    }
}

#[test]
fn sound_is_mixed_again_when_it_is_read() {
    for [mut all, mut skipping] in pairs() {
        let mut loud = 0;
        for frame in 0..3000u32 {
            for core in [&mut all, &mut skipping] {
                core.set_drawing(false);
                disturb(core, frame);
                core.run_frame();
            }
            // The buffer holds about ten frames. The test reads the sound only after the last four of every 30 frames.
            // Before these, the buffer fills up and stays full.
            if frame % 30 > 25 {
                let samples = all.read_samples();
                assert!(samples == skipping.read_samples(), "frame {frame} of {all:?}");
                loud += samples.iter().filter(|sample| sample.unsigned_abs() > 100).count();
            }
        }
        assert!(loud > 10_000, "{loud} loud samples in {all:?}");
    }
}
