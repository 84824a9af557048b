//! The registers of the Game Boy and the Game Boy Color, as the Pan Docs name them.

use super::{Fields, IoRegister, register};

/// The parts of the interrupt registers, a bit for each cause.
const INTERRUPTS: Fields =
    &[("vblank", 0, 1), ("stat", 1, 1), ("timer", 2, 1), ("serial", 3, 1), ("keypad", 4, 1)];
/// Those of a palette.
const PALETTE: Fields = &[("color0", 0, 2), ("color1", 2, 2), ("color2", 4, 2), ("color3", 6, 2)];
/// Those of the index into the colours.
const PALETTE_INDEX: Fields = &[("index", 0, 6), ("increment", 7, 1)];

/// In the order of their addresses.
pub(in super::super) const GB: &[IoRegister] = &[
    register(
        "P1",
        0x0000ff00,
        1,
        "Keys; 0 is pressed",
        &[
            ("right_a", 0, 1),
            ("left_b", 1, 1),
            ("up_select", 2, 1),
            ("down_start", 3, 1),
            ("directions", 4, 1),
            ("buttons", 5, 1),
        ],
    ),
    register("SB", 0x0000ff01, 1, "Serial data", &[]),
    register(
        "SC",
        0x0000ff02,
        1,
        "Serial control",
        &[("internal_clock", 0, 1), ("fast", 1, 1), ("start", 7, 1)],
    ),
    register("DIV", 0x0000ff04, 1, "Divider", &[]),
    register("TIMA", 0x0000ff05, 1, "Timer counter", &[]),
    register("TMA", 0x0000ff06, 1, "Timer modulo", &[]),
    register("TAC", 0x0000ff07, 1, "Timer control", &[("clock", 0, 2), ("enable", 2, 1)]),
    register("IF", 0x0000ff0f, 1, "Interrupts that are requested", INTERRUPTS),
    register("NR10", 0x0000ff10, 1, "Channel 1 sweep", &[]),
    register("NR11", 0x0000ff11, 1, "Channel 1 duty and length", &[]),
    register("NR12", 0x0000ff12, 1, "Channel 1 envelope", &[]),
    register("NR13", 0x0000ff13, 1, "Channel 1 frequency, low, write only", &[]),
    register("NR14", 0x0000ff14, 1, "Channel 1 frequency, high", &[]),
    register("NR21", 0x0000ff16, 1, "Channel 2 duty and length", &[]),
    register("NR22", 0x0000ff17, 1, "Channel 2 envelope", &[]),
    register("NR23", 0x0000ff18, 1, "Channel 2 frequency, low, write only", &[]),
    register("NR24", 0x0000ff19, 1, "Channel 2 frequency, high", &[]),
    register("NR30", 0x0000ff1a, 1, "Channel 3 on or off", &[]),
    register("NR31", 0x0000ff1b, 1, "Channel 3 length, write only", &[]),
    register("NR32", 0x0000ff1c, 1, "Channel 3 volume", &[]),
    register("NR33", 0x0000ff1d, 1, "Channel 3 frequency, low, write only", &[]),
    register("NR34", 0x0000ff1e, 1, "Channel 3 frequency, high", &[]),
    register("NR41", 0x0000ff20, 1, "Channel 4 length, write only", &[]),
    register("NR42", 0x0000ff21, 1, "Channel 4 envelope", &[]),
    register("NR43", 0x0000ff22, 1, "Channel 4 frequency", &[]),
    register("NR44", 0x0000ff23, 1, "Channel 4 control", &[]),
    register("NR50", 0x0000ff24, 1, "Volume", &[("right", 0, 3), ("left", 4, 3)]),
    register("NR51", 0x0000ff25, 1, "Channels to the left and right", &[("right", 0, 4), ("left", 4, 4)]),
    register(
        "NR52",
        0x0000ff26,
        1,
        "Sound on or off",
        &[("channel1", 0, 1), ("channel2", 1, 1), ("channel3", 2, 1), ("channel4", 3, 1), ("on", 7, 1)],
    ),
    register(
        "LCDC",
        0x0000ff40,
        1,
        "Display control",
        &[
            ("bg", 0, 1),
            ("obj", 1, 1),
            ("obj_tall", 2, 1),
            ("bg_map", 3, 1),
            ("tile_data", 4, 1),
            ("window", 5, 1),
            ("window_map", 6, 1),
            ("on", 7, 1),
        ],
    ),
    register(
        "STAT",
        0x0000ff41,
        1,
        "Display status",
        &[
            ("mode", 0, 2),
            ("lyc_match", 2, 1),
            ("hblank_irq", 3, 1),
            ("vblank_irq", 4, 1),
            ("oam_irq", 5, 1),
            ("lyc_irq", 6, 1),
        ],
    ),
    register("SCY", 0x0000ff42, 1, "Vertical scroll", &[]),
    register("SCX", 0x0000ff43, 1, "Horizontal scroll", &[]),
    register("LY", 0x0000ff44, 1, "Present line", &[]),
    register("LYC", 0x0000ff45, 1, "Line to compare", &[]),
    register("DMA", 0x0000ff46, 1, "Source of the transfer to object memory", &[]),
    register("BGP", 0x0000ff47, 1, "Background palette", PALETTE),
    register("OBP0", 0x0000ff48, 1, "Object palette 0", PALETTE),
    register("OBP1", 0x0000ff49, 1, "Object palette 1", PALETTE),
    register("WY", 0x0000ff4a, 1, "Window position, vertical", &[]),
    register("WX", 0x0000ff4b, 1, "Window position, horizontal, plus 7", &[]),
    register(
        "KEY1",
        0x0000ff4d,
        1,
        "Speed of the processor, Game Boy Color",
        &[("prepare", 0, 1), ("double", 7, 1)],
    ),
    register("VBK", 0x0000ff4f, 1, "Bank of video memory, Game Boy Color", &[("bank", 0, 1)]),
    register("BCPS", 0x0000ff68, 1, "Index of background colours, Game Boy Color", PALETTE_INDEX),
    register("OCPS", 0x0000ff6a, 1, "Index of object colours, Game Boy Color", PALETTE_INDEX),
    register("SVBK", 0x0000ff70, 1, "Bank of work RAM, Game Boy Color", &[("bank", 0, 3)]),
    register("IE", 0x0000ffff, 1, "Interrupts that are enabled", INTERRUPTS),
];
