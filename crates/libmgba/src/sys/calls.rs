use super::ffi;
use crate::core::Core;

/// Defines methods of [`Core`]. Each method calls one function of the shim.
macro_rules! calls {
    ($( $(#[$doc:meta])+ $vis:vis fn $name:ident($self:ident: $this:ty $(, $arg:ident: $ty:ty)*) $(-> $result:ty)? = $call:ident; )*) => {
        // The same conversions are used for results and arguments of every width.
        #[allow(clippy::unnecessary_cast, clippy::useless_conversion)]
        impl Core {$(
            $(#[$doc])+
            $vis fn $name($self: $this $(, $arg: $ty)*) $(-> $result)? {
                // SAFETY: see `Handle`; these functions work at every address and with every value.
                unsafe { ffi::$call($self.handle.ptr() $(, $arg.into())*) $(as $result)? }
            }
        )*}
    };
}

calls! {
    /// Sets whether the following frames are drawn. The state of the console is the same in both cases, but a frame
    /// that is not drawn takes much less time. Until a frame is drawn, the picture of an earlier frame stays. A Super
    /// Game Boy draws all frames, because games send it colours and borders by drawing them as pictures.
    pub fn set_drawing(self: &mut Core, draws: bool) = fw_set_drawing;
    /// Sets whether sound is mixed even if nobody reads the sound and the buffer is full. Without the shim, libmgba
    /// always mixes it. The shim prevents this by default, because it takes a quarter of a frame's time. The state of
    /// the console, and the sound that is read, are the same in both cases.
    pub fn mix_all_sound(self: &mut Core, all: bool) = fw_mix_all_sound;
    /// For a Game Boy, sets whether libmgba runs every instruction one cycle at a time. By default, an instruction that
    /// ends before the next event is run in one step. The state of the console is the same in both cases.
    pub fn step_all_cycles(self: &mut Core, all: bool) = fw_step_all_cycles;
    /// Runs one instruction of the processor. If the processor waits for an interrupt, it waits at most until the end
    /// of the frame. No `frame` callback is called, even if the instruction completes a frame.
    pub fn step(self: &mut Core) = fw_step;
    /// The keys that are held, one bit for each: A, B, Select, Start, Right, Left, Up, Down, R, L from bit 0 on. The
    /// Game Boy does not have R and L.
    pub fn keys(self: &Core) -> u16 = fw_keys;
    /// Holds exactly these keys.
    pub fn set_keys(self: &mut Core, keys: u16) = fw_set_keys;
    /// Holds these keys in addition to those that are already held.
    pub fn add_keys(self: &mut Core, keys: u16) = fw_add_keys;
    /// Releases these keys.
    pub fn clear_keys(self: &mut Core, keys: u16) = fw_clear_keys;
    /// The number of frames since the game was started or reset. It is part of a savestate, so loading a state changes
    /// it.
    pub fn frame_counter(self: &Core) -> u32 = fw_frame_counter;
    /// Clock cycles in a frame.
    pub fn frame_cycles(self: &Core) -> u32 = fw_frame_cycles;
    /// Clock cycles in a second.
    pub fn frequency(self: &Core) -> u32 = fw_frequency;
    /// Clock cycles since the last reset. A loaded state sets the number to the one in the state.
    pub fn cycles(self: &Core) -> u64 = fw_cycles;
    /// The CRC-32 of the ROM as it was loaded, with its patch. Writes to the ROM do not change it.
    pub fn crc32(self: &Core) -> u32 = fw_crc32;
    /// The size of the ROM in bytes.
    pub fn rom_size(self: &Core) -> usize = fw_rom_size;
    /// The rate of the sound from [`read_samples`](Core::read_samples): pairs of a left and a right sample per second.
    pub fn sample_rate(self: &Core) -> u32 = fw_audio_rate;
    /// Whether the cartridge's rumble motor runs, or has run since the last call.
    pub fn take_rumble(self: &mut Core) -> bool = fw_take_rumble;
    /// Removes the save from the cartridge. On a Game Boy, libmgba then appends the state of the cartridge's clock to
    /// the save. The save stays in [`saves`](Core::saves) until [`forget_save`](Core::forget_save).
    pub fn unload_save(self: &mut Core) = fw_save_unload;
    /// Sets whether the cartridge's save is protected while the save of a loaded state hides it. If so, a state that a
    /// script loads together with its save replaces only the save that hides it.
    pub fn protect_save(self: &mut Core, protects: bool) = fw_save_protect;
    /// The number of cheats. If a script loads a game, even the same one, or a state that contains cheats, all cheats
    /// are removed.
    pub fn cheats(self: &mut Core) -> usize = fw_cheats_count;
    /// Switches the cheat with this index on or off. Does nothing if there is no such cheat.
    pub fn enable_cheat(self: &mut Core, index: usize, enabled: bool) = fw_cheat_enable;
    /// Removes the cheat with this index. Does nothing if there is no such cheat.
    pub fn remove_cheat(self: &mut Core, index: usize) = fw_cheat_remove;
    /// Removes all cheats.
    pub fn clear_cheats(self: &mut Core) = fw_cheats_clear;
    /// Reads a byte.
    pub fn read8(self: &mut Core, address: u32) -> u8 = fw_read8;
    /// Reads 16 bits, least significant byte first.
    pub fn read16(self: &mut Core, address: u32) -> u16 = fw_read16;
    /// Reads 32 bits, least significant byte first.
    pub fn read32(self: &mut Core, address: u32) -> u32 = fw_read32;
    /// Writes a byte.
    pub fn write8(self: &mut Core, address: u32, value: u8) = fw_write8;
    /// Writes 16 bits.
    pub fn write16(self: &mut Core, address: u32, value: u16) = fw_write16;
    /// Writes 32 bits.
    pub fn write32(self: &mut Core, address: u32, value: u32) = fw_write32;
    /// The part of [`reset`](Core::reset) that concerns the console and the scripts.
    pub(crate) fn reset_console(self: &mut Core) = fw_reset;
    /// Runs a frame without calling the scripts' `frame` callbacks.
    pub(crate) fn emulate_frame(self: &mut Core) = fw_run_frame;
    /// Calls the scripts' `frame` callbacks.
    pub(crate) fn call_frame_callbacks(self: &mut Core) = fw_frame_over;
    /// Whether a script has replaced the ROM.
    pub(crate) fn is_loaded_by_script(self: &Core) -> bool = fw_loaded_by_script;
    /// mGBA's own number for the console.
    pub(crate) fn platform_number(self: &Core) -> i32 = fw_platform;
    /// Lets games see the host's clock.
    pub(crate) fn follow_host_clock(self: &mut Core) = fw_clock_set_host;
    /// Lets games see a clock that advances with the frames.
    pub(crate) fn follow_frames(self: &mut Core, now: i64, zone: i32) = fw_clock_set_frames;
    /// Switches a layer of the picture or a channel of the sound on or off. Does nothing if there is no layer or
    /// channel with this index.
    pub(crate) fn switch_layer(self: &mut Core, sound: bool, index: usize, enabled: bool) = fw_layer_enable;
    /// Sets a sensor. `sensor` is a number of `enum fw_sensor`.
    pub(crate) fn put_sensor(self: &mut Core, sensor: u32, value: i32) = fw_sensor_set;
}
