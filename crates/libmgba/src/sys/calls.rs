use super::ffi;
use crate::core::Core;

/// Defines methods of [`Core`] that are one call of the shim each.
macro_rules! calls {
    ($( $(#[$doc:meta])+ fn $name:ident($self:ident: $this:ty $(, $arg:ident: $ty:ty)*) $(-> $result:ty)? = $call:ident; )*) => {
        // One expansion serves results and arguments of every width.
        #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
        impl Core {$(
            $(#[$doc])+
            pub fn $name($self: $this $(, $arg: $ty)*) $(-> $result)? {
                // SAFETY: see `Handle`; these functions work at every address and with every value.
                unsafe { ffi::$call($self.handle.ptr() $(, $arg.into())*) $(as $result)? }
            }
        )*}
    };
}

calls! {
    /// Whether the following frames are drawn. The state of the machine is the same either way, and a frame that is not drawn
    /// takes much less time. The picture stays that of an earlier frame until one is drawn. A Super Game Boy draws all
    /// frames, because it gets its colours in pictures.
    fn set_drawing(self: &mut Core, draws: bool) = fw_set_drawing;
    /// Whether the console also mixes sound that does not fit into the buffer, since nobody reads it. libmgba does so by
    /// itself; here it is off at first, because it takes a quarter of a frame's time. The state of the machine and the sound
    /// that is read are the same either way.
    fn mix_all_sound(self: &mut Core, all: bool) = fw_mix_all_sound;
    /// Whether libmgba runs all instructions of a Game Boy, a cycle at a time. Here it is off at first: an instruction that
    /// ends before anything else happens is run at once. The state of the machine is the same either way.
    fn step_all_cycles(self: &mut Core, all: bool) = fw_step_all_cycles;
    /// Emulates one instruction of the processor. A processor that waits for an interrupt continues to wait, until the end
    /// of the frame at most. No `frame` callback is called, even if the instruction completes a frame.
    fn step(self: &mut Core) = fw_step;
    /// The keys held, one bit each: A, B, Select, Start, Right, Left, Up, Down, R, L from bit 0 on. The Game Boy has no R
    /// and L.
    fn keys(self: &Core) -> u16 = fw_keys;
    /// Holds exactly these keys.
    fn set_keys(self: &mut Core, keys: u16) = fw_set_keys;
    /// Holds these keys too.
    fn add_keys(self: &mut Core, keys: u16) = fw_add_keys;
    /// Releases these keys.
    fn clear_keys(self: &mut Core, keys: u16) = fw_clear_keys;
    /// Frames since the game was started or reset. This is part of a savestate, so loading one changes it.
    fn frame_counter(self: &Core) -> u32 = fw_frame_counter;
    /// The CRC-32 of the ROM.
    fn crc32(self: &Core) -> u32 = fw_crc32;
    /// The size of the ROM in bytes.
    fn rom_size(self: &Core) -> usize = fw_rom_size;
    /// Samples per second of [`read_samples`](Core::read_samples).
    fn sample_rate(self: &Core) -> u32 = fw_audio_rate;
    /// Whether the cartridge's motor has run at some time since the last call.
    fn take_rumble(self: &mut Core) -> bool = fw_take_rumble;
    /// Reads a byte.
    fn read8(self: &mut Core, address: u32) -> u8 = fw_read8;
    /// Reads 16 bits, least significant byte first.
    fn read16(self: &mut Core, address: u32) -> u16 = fw_read16;
    /// Reads 32 bits, least significant byte first.
    fn read32(self: &mut Core, address: u32) -> u32 = fw_read32;
    /// Writes a byte.
    fn write8(self: &mut Core, address: u32, value: u8) = fw_write8;
    /// Writes 16 bits.
    fn write16(self: &mut Core, address: u32, value: u16) = fw_write16;
    /// Writes 32 bits.
    fn write32(self: &mut Core, address: u32, value: u32) = fw_write32;
}
