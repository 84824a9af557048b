use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::Once;
use std::sync::atomic::AtomicU32;

use parking_lot::Mutex;

use super::console::{self, Console};
use super::ffi::{
    self, Block, CheatProblem, NAME_SIZE, PALETTE, RawCheatCodes, RawConsole, RawCore, RawLayer, RawNames,
    RawRom, RawSave,
};
use super::status::{Status, check};
use crate::domain::Domain;
use crate::layer::Layer;
use crate::log::Level;
use crate::state::{Save, SaveId, path_of};

/// Owns a core of the shim, and has safe methods for the shim's functions.
///
/// Every `unsafe` call below depends on the same invariant: `raw` came from `fw_open`, is closed only in `drop`, and is
/// used by one thread at a time. The last part holds because calls that change anything take `&mut self`, and the type
/// is not `Sync`, as it contains a `NonNull`. If a call needs more, its comment says so.
pub struct Handle {
    raw: NonNull<RawCore>,
    /// Gets the scripts' messages. It is `Some` while scripts are attached, and is dropped only after them.
    console: Option<Console>,
    /// The memory that the core draws into, if it is not the core's own. It is dropped
    /// only when the core no longer draws into it.
    canvas: Option<Canvas>,
}

/// The number of pixels that is enough for any picture: 224 rows of 256 pixels.
pub const PICTURE: usize = 256 * 224;

/// Memory that a core can draw into. `as_ref` must always return the same words, at least [`PICTURE`] of them.
pub type Canvas = Box<dyn AsRef<[AtomicU32]> + Send>;

// SAFETY: `Console` and `Canvas` are `Send`. A core is not bound to the thread that made it: libmgba keeps per-thread
// data only for threads that it starts itself, and the shim does not let it start threads.
unsafe impl Send for Handle {}

/// Locked during each call that attaches scripts. During such a call, libmgba fills tables that all contexts share, and
/// it does not lock them itself.
static ATTACH: Mutex<()> = Mutex::new(());

/// libmgba's log is switched off before the first core is opened.
static LOG_OFF: Once = Once::new();

/// A ROM for the shim. `fw.h` explains its fields.
pub struct RomFile<'a> {
    pub path: CString,
    pub file: CString,
    pub inside: Option<CString>,
    pub bytes: &'a [u8],
}

impl RomFile<'_> {
    /// The C structure, which points into this value.
    fn raw(&self) -> RawRom {
        RawRom {
            path: self.path.as_ptr(),
            file: self.file.as_ptr(),
            inside: self.inside.as_ref().map_or(ptr::null(), |inside| inside.as_ptr()),
            bytes: self.bytes.as_ptr(),
            size: self.bytes.len(),
        }
    }
}

/// The settings of a console for the shim. `fw.h` explains its fields.
pub struct ConsoleSetup {
    pub bios: Option<Vec<u8>>,
    pub model: Option<&'static CStr>,
    pub borders: bool,
    pub palette: Option<[u32; PALETTE]>,
    pub save_type: Option<&'static CStr>,
}

impl ConsoleSetup {
    /// The C structure, which points into this value.
    fn raw(&self) -> RawConsole {
        RawConsole {
            bios: self.bios.as_ref().map_or(ptr::null(), |bytes| bytes.as_ptr()),
            bios_size: self.bios.as_ref().map_or(0, Vec::len),
            model: self.model.map_or(ptr::null(), CStr::as_ptr),
            no_borders: !self.borders,
            palette: self.palette.as_ref().map_or(ptr::null(), |colours| colours.as_ptr()),
            save_type: self.save_type.map_or(ptr::null(), CStr::as_ptr),
        }
    }
}

/// A cheat for the shim. `fw.h` explains its fields.
pub struct CheatCodes {
    pub name: CString,
    pub directive: Option<&'static CStr>,
    pub keeps_encryption: bool,
    pub lines: Vec<CString>,
    pub enabled: bool,
}

impl Handle {
    pub fn open(rom: &RomFile<'_>, console: &ConsoleSetup) -> Result<Handle, Status> {
        LOG_OFF.call_once(|| ffi::fw_log_off());
        let mut raw = ptr::null_mut();
        // SAFETY: the memory that `rom` and `console` point to outlives the call, and `raw` is valid for the result.
        check(unsafe { ffi::fw_open(&rom.raw(), &console.raw(), &mut raw) })?;
        let raw = NonNull::new(raw).ok_or(Status::NoMemory)?;
        Ok(Handle { raw, console: None, canvas: None })
    }

    pub(super) fn ptr(&self) -> *mut RawCore {
        self.raw.as_ptr()
    }

    pub fn load_file(&mut self, rom: &RomFile<'_>) -> Result<(), Status> {
        // SAFETY: see the type; the memory that `rom` points to outlives the call.
        check(unsafe { ffi::fw_load_file(self.ptr(), &rom.raw()) })
    }

    pub fn adopt_save_type(&mut self, other: &Handle) {
        // SAFETY: see the type; the name of the save type is static.
        unsafe { ffi::fw_adopt_save_type(self.ptr(), other.ptr()) }
    }

    pub fn title(&self) -> String {
        self.name(ffi::fw_title)
    }

    pub fn code(&self) -> String {
        self.name(ffi::fw_code)
    }

    fn name(&self, fill: unsafe extern "C" fn(*const RawCore, *mut c_char)) -> String {
        let mut bytes = [0u8; NAME_SIZE];
        // SAFETY: see the type; `bytes` has the size that `fw_title` and `fw_code` need.
        unsafe { fill(self.ptr(), bytes.as_mut_ptr().cast()) };
        // The bytes are mostly ASCII. As Latin-1, all other bytes have a character too.
        bytes.iter().take_while(|b| **b != 0).map(|b| char::from(*b)).collect()
    }

    pub fn read_range(&mut self, address: u32, out: &mut [u8]) {
        // SAFETY: see the type; `out` is as long as the given length.
        unsafe { ffi::fw_read_range(self.ptr(), address, out.as_mut_ptr(), out.len()) }
    }

    pub fn write_range(&mut self, address: u32, data: &[u8]) {
        // SAFETY: see the type; `data` is as long as the given length.
        unsafe { ffi::fw_write_range(self.ptr(), address, data.as_ptr(), data.len()) }
    }

    pub fn domain(&self, index: usize) -> Option<Domain> {
        let mut block = Block { id: 0, start: 0, end: 0, size: 0, segment_start: 0, writable: false };
        let mut names = RawNames { internal_name: ptr::null(), short_name: ptr::null() };
        // SAFETY: see the type; `block` and `names` are valid for the result.
        if !unsafe { ffi::fw_domain(self.ptr(), index, &mut block, &mut names) } {
            return None;
        }
        // SAFETY: libmgba's names are string constants or NULL.
        let (name, short_name) = unsafe { (owned(names.internal_name), owned(names.short_name)) };
        let Block { start: base, end: bound, size, writable, .. } = block;
        Some(Domain { name, short_name, base, bound, size, writable, block })
    }

    pub fn domain_read(&mut self, block: &Block, offset: u32, width: c_uint) -> u32 {
        // SAFETY: see the type; the shim keeps every offset inside memory.
        unsafe { ffi::fw_domain_read(self.ptr(), block, offset, width) }
    }

    pub fn domain_write(&mut self, block: &Block, offset: u32, width: c_uint, value: u32) {
        // SAFETY: as for domain_read.
        unsafe { ffi::fw_domain_write(self.ptr(), block, offset, width, value) }
    }

    pub fn domain_read_range(&mut self, block: &Block, offset: u32, out: &mut [u8]) {
        // SAFETY: as for domain_read; `out` is as long as the given length.
        unsafe {
            ffi::fw_domain_read_range(self.ptr(), block, offset, out.as_mut_ptr(), out.len());
        }
    }

    pub fn domain_memory(&self, block: &Block) -> Option<&[u8]> {
        let mut size = 0;
        // SAFETY: see the type; the call only reads, and `size` is valid for the result.
        let memory = unsafe { ffi::fw_domain_memory(self.ptr(), block, &mut size) };
        if memory.is_null() {
            return None;
        }
        // SAFETY: this is the core's own memory of that size, and only calls that take `&mut self` write to it.
        Some(unsafe { slice::from_raw_parts(memory, size) })
    }

    pub fn register_name(&self, index: usize) -> Option<String> {
        // SAFETY: see the type.
        let name = unsafe { ffi::fw_register_name(self.ptr(), index) };
        // SAFETY: libmgba's names are string constants; NULL means the end.
        (!name.is_null()).then(|| unsafe { owned(name) })
    }

    pub fn read_register(&self, name: &CStr) -> Option<i32> {
        let mut value = 0;
        // SAFETY: see the type; no register is wider than `value`.
        unsafe { ffi::fw_read_register(self.ptr(), name.as_ptr(), &mut value) }.then_some(value)
    }

    pub fn write_register(&mut self, name: &CStr, value: i32) -> bool {
        // SAFETY: see the type.
        unsafe { ffi::fw_write_register(self.ptr(), name.as_ptr(), value) }
    }

    pub fn save_state(&mut self, flags: c_int) -> Result<Vec<u8>, Status> {
        // SAFETY: see the type and `take`.
        take(|out, len| unsafe { ffi::fw_state_save(self.ptr(), flags, out, len) })
    }

    pub fn load_state(&mut self, data: &[u8], flags: c_int) -> Result<(), Status> {
        // SAFETY: see the type; `data` is as long as the given length.
        check(unsafe { ffi::fw_state_load(self.ptr(), data.as_ptr(), data.len(), flags) })
    }

    /// Returns the id of the save, which the game uses from now on.
    pub fn load_save(&mut self, bytes: &[u8], temporary: bool) -> Result<u64, Status> {
        let mut id = 0;
        // SAFETY: see the type; `bytes` is as long as the given length, and `id` is valid for the result.
        check(unsafe { ffi::fw_save_load(self.ptr(), bytes.as_ptr(), bytes.len(), temporary, &mut id) })?;
        Ok(id)
    }

    pub fn save(&self, index: usize) -> Option<Save<'_>> {
        let mut raw = RawSave { id: 0, memory: ptr::null(), size: 0, path: ptr::null(), open: false };
        // SAFETY: see the type; `raw` is valid for the result.
        if !unsafe { ffi::fw_save_view(self.ptr(), index, &mut raw) } {
            return None;
        }
        // SAFETY: it is a string of the shim, which ends with a NUL and is not NULL.
        let path = (!raw.path.is_null()).then(|| unsafe { CStr::from_ptr(raw.path) }.to_bytes());
        // SAFETY: the save has that many bytes. Only calls that take `&mut self` free the save or write to it.
        let bytes = unsafe { slice::from_raw_parts(raw.memory, raw.size) };
        Some(Save { id: SaveId(raw.id), bytes, in_use: raw.open, loaded_from: path.map(path_of) })
    }

    pub fn save_in_use(&self) -> u64 {
        // SAFETY: see the type.
        unsafe { ffi::fw_save_in_use(self.ptr()) }
    }

    pub fn forget_save(&mut self, id: u64) {
        // SAFETY: see the type.
        unsafe { ffi::fw_save_forget(self.ptr(), id) }
    }

    pub fn base_name(&self) -> Vec<u8> {
        // SAFETY: see the type; libmgba's string ends with a NUL, and is copied before any call can change it.
        unsafe { CStr::from_ptr(ffi::fw_base_name(self.ptr())) }.to_bytes().to_owned()
    }

    /// Adds a cheat after the others.
    pub fn add_cheat(&mut self, codes: &CheatCodes) -> Result<(), (Status, CheatProblem)> {
        let lines: Vec<_> = codes.lines.iter().map(|line| line.as_ptr()).collect();
        let raw = RawCheatCodes {
            name: codes.name.as_ptr(),
            directive: codes.directive.map_or(ptr::null(), CStr::as_ptr),
            keeps_encryption: codes.keeps_encryption,
            lines: lines.as_ptr(),
            count: lines.len(),
            enabled: codes.enabled,
        };
        let mut problem = CheatProblem::default();
        // SAFETY: see the type; the memory that `raw` points to outlives the call, and `problem` is valid for the
        // result.
        check(unsafe { ffi::fw_cheat_add(self.ptr(), &raw, &mut problem) })
            .map_err(|status| (status, problem))
    }

    pub fn save_data(&mut self) -> Result<Vec<u8>, Status> {
        // SAFETY: see the type and `take`.
        take(|out, len| unsafe { ffi::fw_save_get(self.ptr(), out, len) })
    }

    pub fn frame_clock(&mut self) -> Option<(i64, i32)> {
        let (mut now, mut zone) = (0, 0);
        // SAFETY: see the type; `now` and `zone` are valid for the result.
        unsafe { ffi::fw_clock_get(self.ptr(), &mut now, &mut zone) }.then_some((now, zone))
    }

    /// Width and height in pixels, stride in bytes, and the pixels.
    pub fn frame(&self) -> (u32, u32, usize, &[u8]) {
        let (mut width, mut height, mut stride) = (0, 0, 0);
        // SAFETY: see the type; the three variables are valid for the result.
        let pixels = unsafe { ffi::fw_frame(self.ptr(), &mut width, &mut height, &mut stride) };
        let stride = stride * size_of::<u32>();
        // SAFETY: the buffer has `height` rows of that stride and lives as long as
        // the handle. Only calls that take `&mut self` write to it.
        let bytes = unsafe { slice::from_raw_parts(pixels.cast(), stride * height as usize) };
        (width, height, stride, bytes)
    }

    /// Draws into `canvas` from now on, or into the core's own memory if it is `None`. Returns the previous canvas.
    pub fn draw_into(&mut self, canvas: Option<Canvas>) -> Option<Canvas> {
        let pixels = match &canvas {
            None => ptr::null_mut(),
            Some(canvas) => {
                let words: &[AtomicU32] = (**canvas).as_ref();
                assert!(
                    words.len() >= PICTURE,
                    "the canvas has {} pixels; {PICTURE} are needed",
                    words.len()
                );
                words.as_ptr().cast::<u32>().cast_mut()
            }
        };
        // SAFETY: see the type; `pixels` is NULL, or points to as many words as a
        // picture has. They may be written through a shared reference, because they are
        // atomics. The canvas is kept until the core no longer draws into it.
        unsafe { ffi::fw_draw_into(self.ptr(), pixels) }
        std::mem::replace(&mut self.canvas, canvas)
    }

    pub fn layer(&self, sound: bool, index: usize) -> Option<Layer> {
        let mut raw = RawLayer { name: ptr::null(), title: ptr::null(), enabled: false };
        // SAFETY: see the type; `raw` is valid for the result.
        if !unsafe { ffi::fw_layer(self.ptr(), sound, index, &mut raw) } {
            return None;
        }
        // SAFETY: libmgba's names are string constants or NULL.
        let (name, title) = unsafe { (owned(raw.name), owned(raw.title)) };
        Some(Layer { name, title, sound, enabled: raw.enabled })
    }

    pub fn screenshot(&mut self) -> Result<Vec<u8>, Status> {
        // SAFETY: see the type and `take`.
        take(|out, len| unsafe { ffi::fw_screenshot(self.ptr(), out, len) })
    }

    pub fn read_audio(&mut self) -> Vec<i16> {
        // SAFETY: see the type.
        let available = unsafe { ffi::fw_audio_available(self.ptr()) };
        let mut samples = vec![0; available * 2];
        // SAFETY: see the type; `samples` has room for that many stereo pairs.
        let taken = unsafe { ffi::fw_audio_read(self.ptr(), samples.as_mut_ptr(), available) };
        samples.truncate(taken * 2);
        samples
    }

    pub fn attach_scripts(&mut self, sink: impl FnMut(Level, &str) + Send + 'static) -> Result<(), Status> {
        let console = Console::new(sink);
        let _lock = ATTACH.lock();
        // SAFETY: see the type; `console` is kept until the scripts have ended. The
        // call itself ends earlier scripts, whose console still exists.
        let code = unsafe { ffi::fw_scripts_attach(self.ptr(), console::deliver, console.as_user()) };
        self.console = None;
        check(code)?;
        self.console = Some(console);
        Ok(())
    }

    /// Moves the scripts of `from` to this core. They replace the scripts of this core.
    pub fn adopt_scripts(&mut self, from: &mut Handle) {
        // SAFETY: see the type; two handles never share a core. Both consoles
        // outlive the call, and the console of the scripts moves with them.
        unsafe { ffi::fw_scripts_move(self.ptr(), from.ptr()) }
        self.console = from.console.take();
    }

    pub fn has_scripts(&self) -> bool {
        self.console.is_some()
    }

    pub fn detach_scripts(&mut self) {
        // SAFETY: see the type; the console is dropped after the scripts.
        unsafe { ffi::fw_scripts_detach(self.ptr()) }
        self.console = None;
    }

    /// On failure, returns Lua's message, if there is one.
    pub fn run_script(&mut self, name: &CStr, source: &[u8]) -> Result<(), (Status, String)> {
        let mut error = ptr::null_mut();
        // SAFETY: see the type; `source` is as long as the given length.
        let code = unsafe {
            ffi::fw_script_run(self.ptr(), name.as_ptr(), source.as_ptr(), source.len(), &mut error)
        };
        // SAFETY: `error` is NULL or a string that this function must free.
        let message = unsafe { owned(error) };
        // SAFETY: as above, and `error` is not used after this.
        unsafe { ffi::fw_free(error.cast::<c_void>()) };
        check(code).map_err(|status| (status, message))
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        // SAFETY: see the type; nothing uses the core after this.
        unsafe { ffi::fw_close(self.ptr()) }
    }
}

/// The host's Unix time in milliseconds, and its time zone in seconds east of UTC.
pub fn host_time() -> (i64, i32) {
    let (mut now, mut zone) = (0, 0);
    // SAFETY: `now` and `zone` are valid for the result.
    unsafe { ffi::fw_host_time(&mut now, &mut zone) };
    (now, zone)
}

/// Copies a C string; NULL becomes an empty one.
///
/// # Safety
///
/// `text` is NULL or points to a NUL-terminated string.
unsafe fn owned(text: *const c_char) -> String {
    if text.is_null() {
        return String::new();
    }
    // SAFETY: the caller guarantees this.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

/// Makes a call that returns a buffer, and copies and frees the buffer.
fn take(call: impl FnOnce(*mut *mut u8, *mut usize) -> c_int) -> Result<Vec<u8>, Status> {
    let (mut data, mut len) = (ptr::null_mut(), 0);
    check(call(&mut data, &mut len))?;
    if data.is_null() {
        return Ok(Vec::new());
    }
    // SAFETY: after success, the shim has returned `len` bytes at `data`.
    let bytes = unsafe { slice::from_raw_parts(data, len) }.to_vec();
    // SAFETY: `data` came from the shim's malloc and is not used after this.
    unsafe { ffi::fw_free(data.cast::<c_void>()) };
    Ok(bytes)
}

/// Returns the free memory of this process to the system, if the C library supports it (glibc).
pub fn release_memory() {
    ffi::fw_release_memory();
}

/// The version of the libmgba that this process is linked with, such as "0.10.1" or "0.11-7906-1a2b3c4".
pub fn version_string() -> String {
    // SAFETY: it is a string constant of libmgba.
    unsafe { owned(ffi::fw_version()) }
}
