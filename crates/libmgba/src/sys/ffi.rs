//! The shim's functions, as declared in `shim/fw.h`.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// `struct fw_core`: only used through a pointer.
#[repr(C)]
pub struct RawCore {
    _opaque: [u8; 0],
}

/// `struct fw_rom`.
#[repr(C)]
pub struct RawRom {
    pub path: *const c_char,
    pub file: *const c_char,
    pub inside: *const c_char,
    pub bytes: *const u8,
    pub size: usize,
}

/// `struct fw_console`.
#[repr(C)]
pub struct RawConsole {
    pub bios: *const u8,
    pub bios_size: usize,
    pub model: *const c_char,
    pub no_borders: bool,
    pub palette: *const u32,
    pub save_type: *const c_char,
}

/// The number of colours in the palette of `fw_console`.
pub const PALETTE: usize = 12;

/// `struct fw_block`.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Block {
    pub id: usize,
    pub start: u32,
    pub end: u32,
    pub size: u32,
    pub segment_start: u32,
    pub writable: bool,
}

/// `struct fw_block_names`.
#[repr(C)]
pub struct RawNames {
    pub internal_name: *const c_char,
    pub short_name: *const c_char,
}

/// `struct fw_save_view`.
#[repr(C)]
pub struct RawSave {
    pub id: u64,
    pub memory: *const u8,
    pub size: usize,
    pub path: *const c_char,
    pub open: bool,
}

/// `struct fw_cheat_codes`.
#[repr(C)]
pub struct RawCheatCodes {
    pub name: *const c_char,
    pub directive: *const c_char,
    pub keeps_encryption: bool,
    pub lines: *const *const c_char,
    pub count: usize,
    pub enabled: bool,
}

/// `struct fw_cheat_problem`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheatProblem {
    pub line: usize,
    pub value: u32,
}

/// `struct fw_layer`.
#[repr(C)]
pub struct RawLayer {
    pub name: *const c_char,
    pub title: *const c_char,
    pub enabled: bool,
}

/// How many bytes `fw_title` and `fw_code` may fill.
pub const NAME_SIZE: usize = 32;

pub type ConsoleFn = extern "C" fn(user: *mut c_void, level: c_int, message: *const c_char);

unsafe extern "C" {
    pub fn fw_open(rom: *const RawRom, console: *const RawConsole, out: *mut *mut RawCore) -> c_int;
    pub fn fw_load_file(core: *mut RawCore, rom: *const RawRom) -> c_int;
    pub fn fw_adopt_save_type(core: *mut RawCore, other: *const RawCore);
    pub fn fw_close(core: *mut RawCore);
    pub fn fw_reset(core: *mut RawCore);
    pub fn fw_run_frame(core: *mut RawCore);
    pub fn fw_set_drawing(core: *mut RawCore, draws: bool);
    pub fn fw_mix_all_sound(core: *mut RawCore, all: bool);
    pub fn fw_step_all_cycles(core: *mut RawCore, all: bool);
    pub fn fw_frame_over(core: *mut RawCore);
    pub fn fw_step(core: *mut RawCore);

    pub fn fw_keys(core: *mut RawCore) -> u32;
    pub fn fw_set_keys(core: *mut RawCore, keys: u32);
    pub fn fw_add_keys(core: *mut RawCore, keys: u32);
    pub fn fw_clear_keys(core: *mut RawCore, keys: u32);

    pub fn fw_platform(core: *const RawCore) -> c_int;
    pub fn fw_frame_counter(core: *const RawCore) -> u32;
    pub fn fw_frame_cycles(core: *const RawCore) -> i32;
    pub fn fw_frequency(core: *const RawCore) -> i32;
    pub fn fw_cycles(core: *const RawCore) -> u64;
    pub fn fw_crc32(core: *const RawCore) -> u32;
    pub fn fw_rom_size(core: *const RawCore) -> usize;
    pub fn fw_loaded_by_script(core: *const RawCore) -> bool;
    pub fn fw_title(core: *const RawCore, out: *mut c_char);
    pub fn fw_code(core: *const RawCore, out: *mut c_char);
    pub safe fn fw_version() -> *const c_char;
    pub safe fn fw_release_memory();
    pub fn fw_free(memory: *mut c_void);

    pub fn fw_read8(core: *mut RawCore, address: u32) -> u32;
    pub fn fw_read16(core: *mut RawCore, address: u32) -> u32;
    pub fn fw_read32(core: *mut RawCore, address: u32) -> u32;
    pub fn fw_write8(core: *mut RawCore, address: u32, value: u8);
    pub fn fw_write16(core: *mut RawCore, address: u32, value: u16);
    pub fn fw_write32(core: *mut RawCore, address: u32, value: u32);
    pub fn fw_read_range(core: *mut RawCore, address: u32, out: *mut u8, len: usize);
    pub fn fw_write_range(core: *mut RawCore, address: u32, data: *const u8, len: usize);

    pub fn fw_domain(core: *const RawCore, index: usize, out: *mut Block, names: *mut RawNames) -> bool;
    pub fn fw_domain_read(core: *mut RawCore, block: *const Block, offset: u32, width: c_uint) -> u32;
    pub fn fw_domain_write(core: *mut RawCore, block: *const Block, offset: u32, width: c_uint, value: u32);
    pub fn fw_domain_read_range(
        core: *mut RawCore,
        block: *const Block,
        offset: u32,
        out: *mut u8,
        len: usize,
    );

    pub fn fw_domain_memory(core: *const RawCore, block: *const Block, size: *mut usize) -> *const u8;

    pub fn fw_register_name(core: *const RawCore, index: usize) -> *const c_char;
    pub fn fw_read_register(core: *const RawCore, name: *const c_char, out: *mut i32) -> bool;
    pub fn fw_write_register(core: *mut RawCore, name: *const c_char, value: i32) -> bool;

    pub fn fw_state_save(core: *mut RawCore, flags: c_int, out: *mut *mut u8, len: *mut usize) -> c_int;
    pub fn fw_state_load(core: *mut RawCore, data: *const u8, len: usize, flags: c_int) -> c_int;
    pub fn fw_save_get(core: *mut RawCore, out: *mut *mut u8, len: *mut usize) -> c_int;

    pub fn fw_clock_set_host(core: *mut RawCore);
    pub fn fw_clock_set_frames(core: *mut RawCore, now: i64, zone: i32);
    pub fn fw_clock_get(core: *mut RawCore, now: *mut i64, zone: *mut i32) -> bool;
    pub fn fw_host_time(now: *mut i64, zone: *mut i32);

    pub fn fw_save_load(
        core: *mut RawCore,
        data: *const u8,
        len: usize,
        temporary: bool,
        id: *mut u64,
    ) -> c_int;
    pub fn fw_save_unload(core: *mut RawCore);
    pub fn fw_save_view(core: *const RawCore, index: usize, out: *mut RawSave) -> bool;
    pub fn fw_save_in_use(core: *const RawCore) -> u64;
    pub fn fw_save_protect(core: *mut RawCore, protects: bool);
    pub fn fw_save_forget(core: *mut RawCore, id: u64);
    pub fn fw_base_name(core: *const RawCore) -> *const c_char;

    pub fn fw_cheat_add(core: *mut RawCore, codes: *const RawCheatCodes, problem: *mut CheatProblem)
    -> c_int;
    pub fn fw_cheats_count(core: *mut RawCore) -> usize;
    pub fn fw_cheat_enable(core: *mut RawCore, index: usize, enabled: bool);
    pub fn fw_cheat_remove(core: *mut RawCore, index: usize);
    pub fn fw_cheats_clear(core: *mut RawCore);

    pub fn fw_frame(
        core: *const RawCore,
        width: *mut c_uint,
        height: *mut c_uint,
        stride: *mut usize,
    ) -> *const u32;
    pub fn fw_draw_into(core: *mut RawCore, pixels: *mut u32);
    pub fn fw_screenshot(core: *mut RawCore, out: *mut *mut u8, len: *mut usize) -> c_int;
    pub fn fw_audio_rate(core: *const RawCore) -> c_uint;
    pub fn fw_audio_available(core: *mut RawCore) -> usize;
    pub fn fw_audio_read(core: *mut RawCore, out: *mut i16, count: usize) -> usize;

    pub fn fw_layer(core: *const RawCore, sound: bool, index: usize, out: *mut RawLayer) -> bool;
    pub fn fw_layer_enable(core: *mut RawCore, sound: bool, index: usize, enabled: bool);

    pub fn fw_sensor_set(core: *mut RawCore, sensor: c_uint, value: i32);
    pub fn fw_take_rumble(core: *mut RawCore) -> bool;

    pub safe fn fw_log_off();

    pub fn fw_scripts_attach(core: *mut RawCore, console: ConsoleFn, user: *mut c_void) -> c_int;
    pub fn fw_scripts_move(to: *mut RawCore, from: *mut RawCore);
    pub fn fw_scripts_detach(core: *mut RawCore);
    pub fn fw_script_run(
        core: *mut RawCore,
        name: *const c_char,
        source: *const u8,
        len: usize,
        error: *mut *mut c_char,
    ) -> c_int;
}
