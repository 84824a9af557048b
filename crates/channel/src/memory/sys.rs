//! Safe functions for the system calls that a channel needs.

use std::ffi::CString;
use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::os::fd::{AsRawFd, FromRawFd};
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU32;
use std::time::Duration;

use super::lost::Entry;

/// Commands of the system call `membarrier`, from the kernel's `linux/membarrier.h`.
const MEMBARRIER_GLOBAL_EXPEDITED: libc::c_int = 1 << 1;
const MEMBARRIER_REGISTER_GLOBAL_EXPEDITED: libc::c_int = 1 << 2;

fn check(result: libc::c_int) -> Result<libc::c_int> {
    if result < 0 { Err(Error::last_os_error()) } else { Ok(result) }
}

/// Opens a shared memory object. With `create`, creates an empty object if there is none; only this user can open the
/// new object.
pub fn open(path: &CString, create: bool) -> Result<File> {
    let flags = libc::O_RDWR | libc::O_CLOEXEC | if create { libc::O_CREAT } else { 0 };
    // SAFETY: the path ends with a NUL.
    let fd = check(unsafe { libc::shm_open(path.as_ptr(), flags, 0o600) })?;
    // SAFETY: the descriptor was just opened, and nothing else owns it.
    Ok(unsafe { File::from_raw_fd(fd) })
}

/// Removes the name of a shared memory object.
pub fn unlink(path: &CString) {
    // SAFETY: the path ends with a NUL.
    unsafe { libc::shm_unlink(path.as_ptr()) };
}

/// Extends an empty file to this size and reserves the memory for it. If `/dev/shm` is full, this returns an error, and
/// there is no bus error later. If the system cannot reserve memory, this only extends the file.
pub fn allocate(file: &File, size: usize) -> Result<()> {
    let too_long = |_| Error::from(ErrorKind::InvalidInput);
    let length = libc::off_t::try_from(size).map_err(too_long)?;
    loop {
        // SAFETY: the descriptor is open.
        match check(unsafe { libc::fallocate(file.as_raw_fd(), 0, 0, length) }) {
            Ok(_) => return Ok(()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::Unsupported => return file.set_len(size as u64),
            Err(error) => return Err(error),
        }
    }
}

/// The effective user id of this process.
pub fn user() -> u32 {
    // SAFETY: no arguments, cannot fail.
    unsafe { libc::geteuid() }
}

fn byte_lock(byte: i64) -> libc::flock {
    libc::flock {
        l_type: libc::F_WRLCK as libc::c_short,
        l_whence: libc::SEEK_SET as libc::c_short,
        l_start: byte,
        l_len: 1,
        l_pid: 0,
    }
}

/// Locks a byte of an open file until the file's last descriptor is closed. Returns false if the byte is already locked
/// through another open file.
pub fn lock(file: &File, byte: i64) -> bool {
    let lock = byte_lock(byte);
    // SAFETY: the descriptor is open, and F_OFD_SETLK takes a structure of this type.
    unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_SETLK, &lock) == 0 }
}

/// Whether a byte is locked through another open file.
pub fn is_locked(file: &File, byte: i64) -> bool {
    let mut lock = byte_lock(byte);
    // SAFETY: as in `lock`.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), libc::F_OFD_GETLK, &mut lock) };
    result == 0 && lock.l_type != libc::F_UNLCK as libc::c_short
}

/// A mapping of the first bytes of a file into memory. All processes that map these bytes share the memory. It stays
/// usable if another process truncates the file.
pub struct Mapping {
    start: NonNull<u8>,
    size: usize,
    entry: &'static Entry,
}

// SAFETY: memory is not bound to a thread. Code that reads or writes the memory must say why that is sound.
unsafe impl Send for Mapping {}
// SAFETY: as above.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `size` bytes, which the file must have.
    pub fn new(file: &File, size: usize) -> Result<Mapping> {
        let access = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: the system chooses the address, so no existing mapping is changed.
        let start =
            unsafe { libc::mmap(ptr::null_mut(), size, access, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if start == libc::MAP_FAILED {
            return Err(Error::last_os_error());
        }
        let entry = Entry::add(start as usize, size).inspect_err(|_| {
            // SAFETY: just mapped, and not used yet.
            unsafe { libc::munmap(start, size) };
        })?;
        NonNull::new(start.cast())
            .map(|start| Mapping { start, size, entry })
            .ok_or_else(|| Error::from(ErrorKind::OutOfMemory))
    }

    /// The address of an offset. Panics if the offset is beyond the end of the mapping.
    #[inline]
    pub fn at(&self, offset: usize) -> *mut u8 {
        assert!(offset <= self.size, "offset {offset} outside of a mapping of {} bytes", self.size);
        // SAFETY: the assertion above has checked the offset.
        unsafe { self.start.as_ptr().add(offset) }
    }

    pub fn size(&self) -> usize {
        self.size
    }

    /// Whether the system could not provide a part of the memory when it was used. That part was replaced with zeros.
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.entry.is_lost()
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.entry.remove();
        // SAFETY: `new` has mapped the memory, and no reference to it outlives the mapping.
        unsafe { libc::munmap(self.start.as_ptr().cast(), self.size) };
    }
}

/// If a word has this value, sleeps until [`futex_wake`] wakes this thread, for at most `limit`. It may also
/// wake up earlier.
pub fn futex_wait(word: &AtomicU32, value: u32, limit: Duration) {
    let limit = libc::timespec {
        tv_sec: limit.as_secs() as libc::time_t,
        tv_nsec: limit.subsec_nanos() as libc::c_long,
    };
    // SAFETY: the word and the time limit exist until the call returns.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAIT, value, &limit) };
}

/// Wakes all threads that sleep on a word.
pub fn futex_wake(word: &AtomicU32) {
    // SAFETY: the word exists until the call returns.
    unsafe { libc::syscall(libc::SYS_futex, word.as_ptr(), libc::FUTEX_WAKE, i32::MAX) };
}

/// Makes this process accept `barrier` calls of other processes. Returns false if the kernel does not support them.
pub fn accept_barriers() -> bool {
    // SAFETY: does not access memory of this process.
    unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0 }
}

/// A full memory barrier in every process that accepts it, including this one.
pub fn barrier() {
    // SAFETY: does not access memory of this process.
    unsafe { libc::syscall(libc::SYS_membarrier, MEMBARRIER_GLOBAL_EXPEDITED, 0, 0) };
}
