//! The registers of the Game Boy and the Game Boy Color, as the Pan Docs name them.

use super::{BitFields, IoRegister, byte};

/// The parts of the interrupt registers, with a bit for each cause.
const INTERRUPTS: BitFields =
    &[("vblank", 0, 1), ("stat", 1, 1), ("timer", 2, 1), ("serial", 3, 1), ("keypad", 4, 1)];
/// The parts of a palette register.
const PALETTE: BitFields = &[("color0", 0, 2), ("color1", 2, 2), ("color2", 4, 2), ("color3", 6, 2)];
/// The parts of the length registers of sound channels 1 and 2.
const DUTY: BitFields = &[("length", 0, 6), ("duty", 6, 2)];
/// The parts of the volume registers of sound channels 1, 2 and 4.
const ENVELOPE: BitFields = &[("envelope_step", 0, 3), ("envelope_up", 3, 1), ("volume", 4, 4)];
/// The parts of the register with the upper three bits of a sound channel's frequency.
const FREQUENCY: BitFields = &[("frequency_high", 0, 3), ("timed", 6, 1), ("restart", 7, 1)];
/// The parts of wave RAM. The upper half of a byte is played first.
const WAVE: BitFields = &[("second", 0, 4), ("first", 4, 4)];
/// The parts of the registers that contain an index into the colours.
const PALETTE_INDEX: BitFields = &[("index", 0, 6), ("increment", 7, 1)];

/// The registers, in the order of their addresses.
#[rustfmt::skip] // a row or two for each register
pub(in super::super) const GB: &[IoRegister] = &[
    byte("P1", 0xff00, "Keys; 0 is pressed",
        &[("right_a", 0, 1), ("left_b", 1, 1), ("up_select", 2, 1), ("down_start", 3, 1),
          ("directions", 4, 1), ("buttons", 5, 1)]),
    byte("SB", 0xff01, "Serial data", &[]),
    byte("SC", 0xff02, "Serial control", &[("internal_clock", 0, 1), ("fast", 1, 1), ("start", 7, 1)]),
    byte("DIV", 0xff04, "Divider", &[]),
    byte("TIMA", 0xff05, "Timer counter", &[]),
    byte("TMA", 0xff06, "Timer modulo", &[]),
    byte("TAC", 0xff07, "Timer control", &[("clock", 0, 2), ("enable", 2, 1)]),
    byte("IF", 0xff0f, "Interrupts that are requested", INTERRUPTS),
    byte("NR10", 0xff10, "Channel 1 sweep", &[("shift", 0, 3), ("decrease", 3, 1), ("time", 4, 3)]),
    byte("NR11", 0xff11, "Channel 1 duty and length", DUTY),
    byte("NR12", 0xff12, "Channel 1 envelope", ENVELOPE),
    byte("NR13", 0xff13, "Channel 1 frequency, low, write only", &[]),
    byte("NR14", 0xff14, "Channel 1 frequency, high", FREQUENCY),
    byte("NR21", 0xff16, "Channel 2 duty and length", DUTY),
    byte("NR22", 0xff17, "Channel 2 envelope", ENVELOPE),
    byte("NR23", 0xff18, "Channel 2 frequency, low, write only", &[]),
    byte("NR24", 0xff19, "Channel 2 frequency, high", FREQUENCY),
    byte("NR30", 0xff1a, "Channel 3 on or off", &[("on", 7, 1)]),
    byte("NR31", 0xff1b, "Channel 3 length, write only", &[]),
    byte("NR32", 0xff1c, "Channel 3 volume", &[("volume", 5, 2)]),
    byte("NR33", 0xff1d, "Channel 3 frequency, low, write only", &[]),
    byte("NR34", 0xff1e, "Channel 3 frequency, high", FREQUENCY),
    byte("NR41", 0xff20, "Channel 4 length, write only", &[("length", 0, 6)]),
    byte("NR42", 0xff21, "Channel 4 envelope", ENVELOPE),
    byte("NR43", 0xff22, "Channel 4 frequency", &[("divider", 0, 3), ("narrow", 3, 1), ("shift", 4, 4)]),
    byte("NR44", 0xff23, "Channel 4 control", &[("timed", 6, 1), ("restart", 7, 1)]),
    byte("NR50", 0xff24, "Volume",
        &[("right", 0, 3), ("vin_right", 3, 1), ("left", 4, 3), ("vin_left", 7, 1)]),
    byte("NR51", 0xff25, "Channels on the left and right", &[("right", 0, 4), ("left", 4, 4)]),
    byte("NR52", 0xff26, "Sound on or off",
        &[("channel1", 0, 1), ("channel2", 1, 1), ("channel3", 2, 1), ("channel4", 3, 1), ("on", 7, 1)]),
    byte("WAVE_0", 0xff30, "Wave RAM, samples 0 and 1", WAVE),
    byte("WAVE_1", 0xff31, "Wave RAM, samples 2 and 3", WAVE),
    byte("WAVE_2", 0xff32, "Wave RAM, samples 4 and 5", WAVE),
    byte("WAVE_3", 0xff33, "Wave RAM, samples 6 and 7", WAVE),
    byte("WAVE_4", 0xff34, "Wave RAM, samples 8 and 9", WAVE),
    byte("WAVE_5", 0xff35, "Wave RAM, samples 10 and 11", WAVE),
    byte("WAVE_6", 0xff36, "Wave RAM, samples 12 and 13", WAVE),
    byte("WAVE_7", 0xff37, "Wave RAM, samples 14 and 15", WAVE),
    byte("WAVE_8", 0xff38, "Wave RAM, samples 16 and 17", WAVE),
    byte("WAVE_9", 0xff39, "Wave RAM, samples 18 and 19", WAVE),
    byte("WAVE_A", 0xff3a, "Wave RAM, samples 20 and 21", WAVE),
    byte("WAVE_B", 0xff3b, "Wave RAM, samples 22 and 23", WAVE),
    byte("WAVE_C", 0xff3c, "Wave RAM, samples 24 and 25", WAVE),
    byte("WAVE_D", 0xff3d, "Wave RAM, samples 26 and 27", WAVE),
    byte("WAVE_E", 0xff3e, "Wave RAM, samples 28 and 29", WAVE),
    byte("WAVE_F", 0xff3f, "Wave RAM, samples 30 and 31", WAVE),
    byte("LCDC", 0xff40, "Display control",
        &[("bg", 0, 1), ("obj", 1, 1), ("obj_tall", 2, 1), ("bg_map", 3, 1), ("tile_data", 4, 1),
          ("window", 5, 1), ("window_map", 6, 1), ("on", 7, 1)]),
    byte("STAT", 0xff41, "Display status",
        &[("mode", 0, 2), ("lyc_match", 2, 1), ("hblank_irq", 3, 1), ("vblank_irq", 4, 1), ("oam_irq", 5, 1),
          ("lyc_irq", 6, 1)]),
    byte("SCY", 0xff42, "Vertical scroll", &[]),
    byte("SCX", 0xff43, "Horizontal scroll", &[]),
    byte("LY", 0xff44, "Current line", &[]),
    byte("LYC", 0xff45, "Line to compare", &[]),
    byte("DMA", 0xff46, "Source of the transfer to object memory", &[]),
    byte("BGP", 0xff47, "Background palette", PALETTE),
    byte("OBP0", 0xff48, "Object palette 0", PALETTE),
    byte("OBP1", 0xff49, "Object palette 1", PALETTE),
    byte("WY", 0xff4a, "Window position, vertical", &[]),
    byte("WX", 0xff4b, "Window position, horizontal, plus 7", &[]),
    byte("KEY0", 0xff4c, "Mode of the processor, Game Boy Color", &[("dmg", 2, 1)]),
    byte("KEY1", 0xff4d, "Speed of the processor, Game Boy Color", &[("prepare", 0, 1), ("double", 7, 1)]),
    byte("VBK", 0xff4f, "Bank of video memory, Game Boy Color", &[("bank", 0, 1)]),
    byte("BANK", 0xff50, "Boot ROM, write only: 1 hides it", &[("hidden", 0, 1)]),
    byte("HDMA1", 0xff51, "Source of a transfer to video memory, high, write only, Game Boy Color", &[]),
    byte("HDMA2", 0xff52, "Source of a transfer to video memory, low, write only, Game Boy Color", &[]),
    byte("HDMA3", 0xff53, "Destination in video memory, high, write only, Game Boy Color", &[]),
    byte("HDMA4", 0xff54, "Destination in video memory, low, write only, Game Boy Color", &[]),
    byte("HDMA5", 0xff55,
        "Transfer to video memory, Game Boy Color; `mode` is 1 if none runs, and writing 1 transfers in each horizontal blank",
        &[("length", 0, 7), ("mode", 7, 1)]),
    byte("RP", 0xff56, "Infrared port, Game Boy Color; `receiving` is 0 while it receives light",
        &[("light", 0, 1), ("receiving", 1, 1), ("enable", 6, 2)]),
    byte("BCPS", 0xff68, "Index of background colours, Game Boy Color", PALETTE_INDEX),
    byte("BCPD", 0xff69, "Byte of the background colours at the index of BCPS, Game Boy Color", &[]),
    byte("OCPS", 0xff6a, "Index of object colours, Game Boy Color", PALETTE_INDEX),
    byte("OCPD", 0xff6b, "Byte of the object colours at the index of OCPS, Game Boy Color", &[]),
    byte("OPRI", 0xff6c, "Order of objects, Game Boy Color", &[("by_position", 0, 1)]),
    byte("SVBK", 0xff70, "Bank of work RAM, Game Boy Color", &[("bank", 0, 3)]),
    byte("PCM12", 0xff76, "Current output of channels 1 and 2, Game Boy Color",
        &[("channel1", 0, 4), ("channel2", 4, 4)]),
    byte("PCM34", 0xff77, "Current output of channels 3 and 4, Game Boy Color",
        &[("channel3", 0, 4), ("channel4", 4, 4)]),
    byte("IE", 0xffff, "Interrupts that are enabled", INTERRUPTS),
];
