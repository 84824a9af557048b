//! The registers of the Game Boy Advance, as GBATEK names them.

use super::{BitFields, IoRegister, byte, half, word};

/// The parts of the control registers of backgrounds 0 and 1.
#[rustfmt::skip]
const TEXT_BACKGROUND: BitFields = &[
    ("priority", 0, 2), ("char_base", 2, 2), ("mosaic", 6, 1), ("colors_256", 7, 1), ("screen_base", 8, 5),
    ("size", 14, 2),
];
/// The parts of the control registers of backgrounds 2 and 3, which can be rotated.
#[rustfmt::skip]
const AFFINE_BACKGROUND: BitFields = &[
    ("priority", 0, 2), ("char_base", 2, 2), ("mosaic", 6, 1), ("colors_256", 7, 1), ("screen_base", 8, 5),
    ("wrap", 13, 1), ("size", 14, 2),
];
/// The parts of scroll registers.
const SCROLL: BitFields = &[("offset", 0, 9)];
/// The parts of the registers with a window's left and right sides.
const WINDOW_SIDES: BitFields = &[("right", 0, 8), ("left", 8, 8)];
/// The parts of the registers with a window's top and bottom.
const WINDOW_ENDS: BitFields = &[("bottom", 0, 8), ("top", 8, 8)];
/// The parts of the registers for the duty, length and envelope of sound channels 1 and 2.
const SQUARE_WAVE: BitFields =
    &[("length", 0, 6), ("duty", 6, 2), ("envelope_step", 8, 3), ("envelope_up", 11, 1), ("volume", 12, 4)];
/// The parts of a sound channel's frequency register.
const FREQUENCY: BitFields = &[("frequency", 0, 11), ("timed", 14, 1), ("restart", 15, 1)];
/// The parts of a register of wave RAM: four samples. The upper half of the lower byte is played first.
const WAVE: BitFields = &[("sample1", 0, 4), ("sample0", 4, 4), ("sample3", 8, 4), ("sample2", 12, 4)];
/// The parts of the control registers of DMA channels 0 to 2.
#[rustfmt::skip]
const DMA: BitFields = &[
    ("destination", 5, 2), ("source", 7, 2), ("repeat", 9, 1), ("words", 10, 1), ("timing", 12, 2),
    ("irq", 14, 1), ("enable", 15, 1),
];
/// The parts of the control registers of timers 1 to 3.
const TIMER: BitFields = &[("prescaler", 0, 2), ("cascade", 2, 1), ("irq", 6, 1), ("enable", 7, 1)];
/// The parts of the interrupt registers, with a bit for each cause.
#[rustfmt::skip]
const INTERRUPTS: BitFields = &[
    ("vblank", 0, 1), ("hblank", 1, 1), ("vcount", 2, 1), ("timer0", 3, 1), ("timer1", 4, 1),
    ("timer2", 5, 1), ("timer3", 6, 1), ("serial", 7, 1), ("dma0", 8, 1), ("dma1", 9, 1), ("dma2", 10, 1),
    ("dma3", 11, 1), ("keypad", 12, 1), ("gamepak", 13, 1),
];

/// The registers, in the order of their addresses.
#[rustfmt::skip] // a row or two for each register
pub(in super::super) const GBA: &[IoRegister] = &[
    half("DISPCNT", 0x04000000, "Display control",
        &[("mode", 0, 3), ("cgb_mode", 3, 1), ("page", 4, 1), ("hblank_free", 5, 1), ("obj_1d", 6, 1),
          ("forced_blank", 7, 1), ("bg0", 8, 1), ("bg1", 9, 1), ("bg2", 10, 1), ("bg3", 11, 1),
          ("obj", 12, 1), ("win0", 13, 1), ("win1", 14, 1), ("obj_win", 15, 1)]),
    half("GREENSWP", 0x04000002, "Green swap", &[("green_swap", 0, 1)]),
    half("DISPSTAT", 0x04000004, "Display status",
        &[("vblank", 0, 1), ("hblank", 1, 1), ("vcount_match", 2, 1), ("vblank_irq", 3, 1),
          ("hblank_irq", 4, 1), ("vcount_irq", 5, 1), ("vcount_setting", 8, 8)]),
    half("VCOUNT", 0x04000006, "Current line", &[("line", 0, 8)]),
    half("BG0CNT", 0x04000008, "Background 0 control", TEXT_BACKGROUND),
    half("BG1CNT", 0x0400000a, "Background 1 control", TEXT_BACKGROUND),
    half("BG2CNT", 0x0400000c, "Background 2 control", AFFINE_BACKGROUND),
    half("BG3CNT", 0x0400000e, "Background 3 control", AFFINE_BACKGROUND),
    half("BG0HOFS", 0x04000010, "Background 0 horizontal offset, write only", SCROLL),
    half("BG0VOFS", 0x04000012, "Background 0 vertical offset, write only", SCROLL),
    half("BG1HOFS", 0x04000014, "Background 1 horizontal offset, write only", SCROLL),
    half("BG1VOFS", 0x04000016, "Background 1 vertical offset, write only", SCROLL),
    half("BG2HOFS", 0x04000018, "Background 2 horizontal offset, write only", SCROLL),
    half("BG2VOFS", 0x0400001a, "Background 2 vertical offset, write only", SCROLL),
    half("BG3HOFS", 0x0400001c, "Background 3 horizontal offset, write only", SCROLL),
    half("BG3VOFS", 0x0400001e, "Background 3 vertical offset, write only", SCROLL),
    half("BG2PA", 0x04000020, "Background 2 matrix element A, write only", &[]),
    half("BG2PB", 0x04000022, "Background 2 matrix element B, write only", &[]),
    half("BG2PC", 0x04000024, "Background 2 matrix element C, write only", &[]),
    half("BG2PD", 0x04000026, "Background 2 matrix element D, write only", &[]),
    word("BG2X", 0x04000028, "Background 2 reference point, horizontal, write only", &[]),
    word("BG2Y", 0x0400002c, "Background 2 reference point, vertical, write only", &[]),
    half("BG3PA", 0x04000030, "Background 3 matrix element A, write only", &[]),
    half("BG3PB", 0x04000032, "Background 3 matrix element B, write only", &[]),
    half("BG3PC", 0x04000034, "Background 3 matrix element C, write only", &[]),
    half("BG3PD", 0x04000036, "Background 3 matrix element D, write only", &[]),
    word("BG3X", 0x04000038, "Background 3 reference point, horizontal, write only", &[]),
    word("BG3Y", 0x0400003c, "Background 3 reference point, vertical, write only", &[]),
    half("WIN0H", 0x04000040, "Window 0 horizontal, write only", WINDOW_SIDES),
    half("WIN1H", 0x04000042, "Window 1 horizontal, write only", WINDOW_SIDES),
    half("WIN0V", 0x04000044, "Window 0 vertical, write only", WINDOW_ENDS),
    half("WIN1V", 0x04000046, "Window 1 vertical, write only", WINDOW_ENDS),
    half("WININ", 0x04000048, "Inside of windows",
        &[("win0_bg", 0, 4), ("win0_obj", 4, 1), ("win0_effects", 5, 1), ("win1_bg", 8, 4),
          ("win1_obj", 12, 1), ("win1_effects", 13, 1)]),
    half("WINOUT", 0x0400004a, "Outside of windows",
        &[("outside_bg", 0, 4), ("outside_obj", 4, 1), ("outside_effects", 5, 1), ("obj_win_bg", 8, 4),
          ("obj_win_obj", 12, 1), ("obj_win_effects", 13, 1)]),
    half("MOSAIC", 0x0400004c, "Mosaic size, write only",
        &[("bg_h", 0, 4), ("bg_v", 4, 4), ("obj_h", 8, 4), ("obj_v", 12, 4)]),
    half("BLDCNT", 0x04000050, "Colour effects", &[("first", 0, 6), ("effect", 6, 2), ("second", 8, 6)]),
    half("BLDALPHA", 0x04000052, "Blending", &[("first", 0, 5), ("second", 8, 5)]),
    half("BLDY", 0x04000054, "Brightness, write only", &[("amount", 0, 5)]),
    half("SOUND1CNT_L", 0x04000060, "Channel 1 sweep",
        &[("shift", 0, 3), ("decrease", 3, 1), ("time", 4, 3)]),
    half("SOUND1CNT_H", 0x04000062, "Channel 1 duty, length and envelope", SQUARE_WAVE),
    half("SOUND1CNT_X", 0x04000064, "Channel 1 frequency", FREQUENCY),
    half("SOUND2CNT_L", 0x04000068, "Channel 2 duty, length and envelope", SQUARE_WAVE),
    half("SOUND2CNT_H", 0x0400006c, "Channel 2 frequency", FREQUENCY),
    half("SOUND3CNT_L", 0x04000070, "Channel 3 control",
        &[("two_banks", 5, 1), ("bank", 6, 1), ("on", 7, 1)]),
    half("SOUND3CNT_H", 0x04000072, "Channel 3 length and volume",
        &[("length", 0, 8), ("volume", 13, 2), ("force_75", 15, 1)]),
    half("SOUND3CNT_X", 0x04000074, "Channel 3 frequency", FREQUENCY),
    half("SOUND4CNT_L", 0x04000078, "Channel 4 length and envelope",
        &[("length", 0, 6), ("envelope_step", 8, 3), ("envelope_up", 11, 1), ("volume", 12, 4)]),
    half("SOUND4CNT_H", 0x0400007c, "Channel 4 frequency",
        &[("divider", 0, 3), ("narrow", 3, 1), ("shift", 4, 4), ("timed", 14, 1), ("restart", 15, 1)]),
    half("SOUNDCNT_L", 0x04000080, "Channels on the left and right",
        &[("right_volume", 0, 3), ("left_volume", 4, 3), ("right", 8, 4), ("left", 12, 4)]),
    half("SOUNDCNT_H", 0x04000082, "Mixing of channels and direct sound",
        &[("psg_volume", 0, 2), ("a_full", 2, 1), ("b_full", 3, 1), ("a_right", 8, 1), ("a_left", 9, 1),
          ("a_timer", 10, 1), ("b_right", 12, 1), ("b_left", 13, 1), ("b_timer", 14, 1)]),
    half("SOUNDCNT_X", 0x04000084, "Sound on or off",
        &[("channel1", 0, 1), ("channel2", 1, 1), ("channel3", 2, 1), ("channel4", 3, 1), ("on", 7, 1)]),
    half("SOUNDBIAS", 0x04000088, "Bias and resolution", &[("bias", 1, 9), ("resolution", 14, 2)]),
    half("WAVE_RAM0_L", 0x04000090, "Wave RAM, samples 0 to 3 of the bank that is not played", WAVE),
    half("WAVE_RAM0_H", 0x04000092, "Wave RAM, samples 4 to 7 of the bank that is not played", WAVE),
    half("WAVE_RAM1_L", 0x04000094, "Wave RAM, samples 8 to 11 of the bank that is not played", WAVE),
    half("WAVE_RAM1_H", 0x04000096, "Wave RAM, samples 12 to 15 of the bank that is not played", WAVE),
    half("WAVE_RAM2_L", 0x04000098, "Wave RAM, samples 16 to 19 of the bank that is not played", WAVE),
    half("WAVE_RAM2_H", 0x0400009a, "Wave RAM, samples 20 to 23 of the bank that is not played", WAVE),
    half("WAVE_RAM3_L", 0x0400009c, "Wave RAM, samples 24 to 27 of the bank that is not played", WAVE),
    half("WAVE_RAM3_H", 0x0400009e, "Wave RAM, samples 28 to 31 of the bank that is not played", WAVE),
    word("FIFO_A", 0x040000a0, "Queue of direct sound A, 4 samples, write only", &[]),
    word("FIFO_B", 0x040000a4, "Queue of direct sound B, 4 samples, write only", &[]),
    word("DMA0SAD", 0x040000b0, "DMA 0 source, write only", &[]),
    word("DMA0DAD", 0x040000b4, "DMA 0 destination, write only", &[]),
    half("DMA0CNT_L", 0x040000b8, "DMA 0 number of units, write only", &[]),
    half("DMA0CNT_H", 0x040000ba, "DMA 0 control", DMA),
    word("DMA1SAD", 0x040000bc, "DMA 1 source, write only", &[]),
    word("DMA1DAD", 0x040000c0, "DMA 1 destination, write only", &[]),
    half("DMA1CNT_L", 0x040000c4, "DMA 1 number of units, write only", &[]),
    half("DMA1CNT_H", 0x040000c6, "DMA 1 control", DMA),
    word("DMA2SAD", 0x040000c8, "DMA 2 source, write only", &[]),
    word("DMA2DAD", 0x040000cc, "DMA 2 destination, write only", &[]),
    half("DMA2CNT_L", 0x040000d0, "DMA 2 number of units, write only", &[]),
    half("DMA2CNT_H", 0x040000d2, "DMA 2 control", DMA),
    word("DMA3SAD", 0x040000d4, "DMA 3 source, write only", &[]),
    word("DMA3DAD", 0x040000d8, "DMA 3 destination, write only", &[]),
    half("DMA3CNT_L", 0x040000dc, "DMA 3 number of units, write only", &[]),
    half("DMA3CNT_H", 0x040000de, "DMA 3 control",
        &[("destination", 5, 2), ("source", 7, 2), ("repeat", 9, 1), ("words", 10, 1), ("gamepak", 11, 1),
          ("timing", 12, 2), ("irq", 14, 1), ("enable", 15, 1)]),
    half("TM0CNT_L", 0x04000100, "Timer 0 counter", &[]),
    half("TM0CNT_H", 0x04000102, "Timer 0 control", &[("prescaler", 0, 2), ("irq", 6, 1), ("enable", 7, 1)]),
    half("TM1CNT_L", 0x04000104, "Timer 1 counter", &[]),
    half("TM1CNT_H", 0x04000106, "Timer 1 control", TIMER),
    half("TM2CNT_L", 0x04000108, "Timer 2 counter", &[]),
    half("TM2CNT_H", 0x0400010a, "Timer 2 control", TIMER),
    half("TM3CNT_L", 0x0400010c, "Timer 3 counter", &[]),
    half("TM3CNT_H", 0x0400010e, "Timer 3 control", TIMER),
    word("SIODATA32", 0x04000120, "Serial data of 32 bits; the same memory as SIOMULTI0 and SIOMULTI1", &[]),
    half("SIOMULTI0", 0x04000120, "Serial data of console 0, the parent", &[]),
    half("SIOMULTI1", 0x04000122, "Serial data of console 1", &[]),
    half("SIOMULTI2", 0x04000124, "Serial data of console 2", &[]),
    half("SIOMULTI3", 0x04000126, "Serial data of console 3", &[]),
    half("SIOCNT", 0x04000128, "Serial control", &[("start", 7, 1), ("mode", 12, 2), ("irq", 14, 1)]),
    half("SIOMLT_SEND", 0x0400012a, "Serial data to send to other consoles; also SIODATA8", &[]),
    half("KEYINPUT", 0x04000130, "Keys; 0 is pressed",
        &[("a", 0, 1), ("b", 1, 1), ("select", 2, 1), ("start", 3, 1), ("right", 4, 1), ("left", 5, 1),
          ("up", 6, 1), ("down", 7, 1), ("r", 8, 1), ("l", 9, 1)]),
    half("KEYCNT", 0x04000132, "Interrupt by keys", &[("keys", 0, 10), ("irq", 14, 1), ("all", 15, 1)]),
    half("RCNT", 0x04000134, "Serial mode",
        &[("data", 0, 4), ("direction", 4, 4), ("irq", 8, 1), ("mode", 14, 2)]),
    half("JOYCNT", 0x04000140, "JOY bus control",
        &[("reset", 0, 1), ("received", 1, 1), ("sent", 2, 1), ("irq", 6, 1)]),
    word("JOY_RECV", 0x04000150, "JOY bus data that was received", &[]),
    word("JOY_TRANS", 0x04000154, "JOY bus data to send", &[]),
    half("JOYSTAT", 0x04000158, "JOY bus status",
        &[("received", 1, 1), ("to_send", 3, 1), ("general", 4, 2)]),
    half("IE", 0x04000200, "Interrupts that are enabled", INTERRUPTS),
    half("IF", 0x04000202, "Interrupts that are requested", INTERRUPTS),
    half("WAITCNT", 0x04000204, "Wait states of the cartridge",
        &[("sram", 0, 2), ("ws0_first", 2, 2), ("ws0_second", 4, 1), ("ws1_first", 5, 2),
          ("ws1_second", 7, 1), ("ws2_first", 8, 2), ("ws2_second", 10, 1), ("phi", 11, 2),
          ("prefetch", 14, 1), ("cgb", 15, 1)]),
    half("IME", 0x04000208, "Interrupts on or off", &[("on", 0, 1)]),
    byte("POSTFLG", 0x04000300, "Whether the BIOS has started the game", &[("left", 0, 1)]),
    byte("HALTCNT", 0x04000301,
        "Halts the processor until an interrupt, or stops the console if `stop` is 1; write only",
        &[("stop", 7, 1)]),
];
