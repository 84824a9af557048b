//! A channel's block of shared memory. This module creates a block, attaches to one, and finds out whether the other
//! side is alive.
//!
//! Each side holds a lock on one byte of the block's file for as long as it lives: the creator on byte 0, the side
//! that attaches on byte 1. The kernel releases the lock when the process ends, however it ends. The lock on byte 2
//! guards the name. A *leftover* is the block of a creator that has ended. A process that replaces a leftover locks
//! only byte 2 of it, so the leftover never looks as if its creator still ran.

use std::ffi::CString;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::slice;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use super::sys::{self, Mapping};
use super::{Half, Memory, Side, Sleeper, Slot};
use crate::Error;
use crate::layout::{BULK_ALIGN, MAGIC, MAX_MESSAGE, VERSION, at};

const NAME_LOCK: i64 = 2;
/// The longest time to sleep without checking whether the other side is alive.
const CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// The same limit for kernels that have no memory barriers across processes. There, a side can miss a wake-up, and then
/// notices the message only after this time.
const CHECK_INTERVAL_WITHOUT_BARRIERS: Duration = Duration::from_millis(1);

/// A block, as one side sees it.
pub struct Block {
    file: File,
    mapping: Mapping,
    path: CString,
    side: Side,
    /// How many slots each side writes.
    slots: usize,
    /// The size of each side's memory for long messages, in bytes.
    bulk: usize,
    /// The size of the extra memory, in bytes.
    extra: usize,
    /// Whether there are memory barriers across processes.
    barriers: bool,
}

fn system(what: impl Into<String>) -> impl FnOnce(std::io::Error) -> Error {
    let what = what.into();
    move |source| Error::System { what, source }
}

fn path_of(name: &str) -> Result<CString, Error> {
    let fits = |c: char| c.is_ascii_alphanumeric() || "_-.".contains(c);
    if name.is_empty() || name.len() > 200 || name.starts_with('.') || !name.chars().all(fits) {
        return Err(Error::Name(name.to_owned()));
    }
    CString::new(format!("/framewire.{name}")).map_err(|_| Error::Name(name.to_owned()))
}

/// Checks that no other user can open the file: it belongs to this user, and its mode gives others no access. Also
/// checks that it is a regular file, and not, for example, a FIFO.
fn check_owner(file: &File, name: &str) -> Result<(), Error> {
    let data = file.metadata().map_err(system("cannot read the attributes of the shared memory"))?;
    if data.uid() != sys::user() || data.mode() & 0o077 != 0 {
        return Err(Error::Foreign(name.to_owned()));
    }
    if !data.is_file() {
        let what =
            format!("/dev/shm/framewire.{name} is not a regular file; remove it or choose another name");
        return Err(system(what)(std::io::Error::from_raw_os_error(libc::EINVAL)));
    }
    Ok(())
}

/// The error if the shared memory with this name cannot be opened.
fn refused(name: &str, source: std::io::Error) -> Error {
    match source.raw_os_error() {
        Some(libc::EACCES) => Error::Foreign(name.to_owned()),
        Some(libc::ELOOP | libc::EINVAL) => {
            let what =
                format!("/dev/shm/framewire.{name} is a link or a folder; remove it or choose another name");
            system(what)(source)
        }
        _ => system("cannot open shared memory")(source),
    }
}

/// Opens the shared memory with this name, which must belong to this user.
fn open(name: &str) -> Result<(CString, File), Error> {
    let path = path_of(name)?;
    let file = sys::open(&path, false).map_err(|source| match source.kind() {
        ErrorKind::NotFound => Error::Missing(name.to_owned()),
        _ => refused(name, source),
    })?;
    check_owner(&file, name)?;
    Ok((path, file))
}

/// Checks whether a channel can have these sizes.
fn check_sizes(slots: usize, bulk: usize, extra: usize) -> Result<(), Error> {
    if !slots.is_power_of_two() || !(8..=65_536).contains(&slots) {
        return Err(Error::Size("slots: a power of two from 8 to 65536 is accepted"));
    }
    // Twice the longest message, so that a message always fits even if the end of the memory for long messages stays
    // unused.
    if !(2 * MAX_MESSAGE..=1 << 30).contains(&bulk) || !bulk.is_multiple_of(4096) {
        return Err(Error::Size("bulk: a multiple of 4096 from 2 MiB to 1 GiB is accepted"));
    }
    if extra > 1 << 30 || !extra.is_multiple_of(4096) {
        return Err(Error::Size("extra: a multiple of 4096 up to 1 GiB is accepted"));
    }
    const { assert!(MAX_MESSAGE.is_multiple_of(BULK_ALIGN)) };
    Ok(())
}

fn total(slots: usize, bulk: usize, extra: usize) -> usize {
    at::RINGS + 2 * slots * size_of::<Slot>() + 2 * bulk + extra
}

#[inline]
fn word_at(mapping: &Mapping, offset: usize) -> &AtomicU32 {
    // SAFETY: inside the mapping's first page, aligned, and only ever used as an atomic.
    unsafe { AtomicU32::from_ptr(mapping.at(offset).cast()) }
}

fn magic(mapping: &Mapping) -> &AtomicU64 {
    // SAFETY: as above.
    unsafe { AtomicU64::from_ptr(mapping.at(at::MAGIC).cast()) }
}

impl Block {
    /// Creates the block with this name. Replaces an old block of this name if its creator has ended.
    pub fn create(name: &str, slots: usize, bulk: usize, extra: usize) -> Result<Block, Error> {
        check_sizes(slots, bulk, extra)?;
        let path = path_of(name)?;
        loop {
            let file = sys::open(&path, true).map_err(|source| refused(name, source))?;
            check_owner(&file, name)?;
            if !sys::lock(&file, NAME_LOCK) {
                return Err(Error::Served(name.to_owned()));
            }
            let data = file.metadata().map_err(system("cannot read the attributes of the shared memory"))?;
            match sys::open(&path, false).and_then(|file| file.metadata()) {
                Ok(named) if named.ino() == data.ino() => {}
                // Meanwhile, another process has removed the name or given it to a new object.
                Ok(_) => continue,
                Err(error) if [ErrorKind::NotFound, ErrorKind::PermissionDenied].contains(&error.kind()) => {
                    continue;
                }
                Err(error) => return Err(system("cannot open shared memory")(error)),
            }
            if data.size() > 0 {
                // The block of an earlier process.
                sys::unlink(&path);
                continue;
            }
            // No other process holds this lock: only the holder of the lock on the name takes it.
            sys::lock(&file, Side::Creator as i64);
            let size = total(slots, bulk, extra);
            let mapping = sys::allocate(&file, size).and_then(|()| Mapping::new(&file, size));
            let mapping = mapping.map_err(|source| {
                sys::unlink(&path);
                system(format!(
                    "cannot allocate {size} bytes of shared memory; free some memory or make the channel smaller"
                ))(source)
            })?;
            for (offset, value) in
                [(at::VERSION, VERSION as usize), (at::SLOTS, slots), (at::BULK, bulk), (at::EXTRA, extra)]
            {
                word_at(&mapping, offset).store(value as u32, Ordering::Relaxed);
            }
            word_at(&mapping, at::CREATOR).store(std::process::id(), Ordering::Relaxed);
            // SYNC POINT (ready): a process that sees the magic also sees the sizes.
            magic(&mapping).store(MAGIC, Ordering::Release);
            let barriers = sys::accept_barriers();
            return Ok(Block { file, mapping, path, side: Side::Creator, slots, bulk, extra, barriers });
        }
    }

    /// Checks whether a block with this name can be created. Creates nothing.
    pub fn check_name(name: &str) -> Result<(), Error> {
        let file = match open(name) {
            Err(Error::Missing(_)) => return Ok(()),
            file => file?.1,
        };
        if sys::is_locked(&file, NAME_LOCK) { Err(Error::Served(name.to_owned())) } else { Ok(()) }
    }

    /// Attaches to the block with this name.
    pub fn attach(name: &str) -> Result<Block, Error> {
        let (path, file) = open(name)?;
        let missing = || Error::Missing(name.to_owned());
        if !sys::is_locked(&file, Side::Creator as i64) {
            return Err(missing());
        }
        if !sys::lock(&file, Side::Attached as i64) {
            return Err(Error::Attached(name.to_owned()));
        }
        let data = file.metadata().map_err(system("cannot read the attributes of the shared memory"))?;
        let size = data.size() as usize;
        if size < at::RINGS {
            return Err(missing());
        }
        let mapping = Mapping::new(&file, size).map_err(system("cannot map shared memory"))?;
        // SYNC POINT (ready).
        if magic(&mapping).load(Ordering::Acquire) != MAGIC {
            return Err(missing());
        }
        let word = |offset| word_at(&mapping, offset).load(Ordering::Relaxed);
        if word(at::VERSION) != VERSION {
            return Err(Error::Version { name: name.to_owned(), version: word(at::VERSION) });
        }
        let [slots, bulk, extra] = [at::SLOTS, at::BULK, at::EXTRA].map(|offset| word(offset) as usize);
        if check_sizes(slots, bulk, extra).is_err() || total(slots, bulk, extra) != size {
            return Err(Error::Damaged("the sizes in its header do not match its file, or are not possible"));
        }
        let attached = word_at(&mapping, at::ATTACHED);
        if attached.load(Ordering::Relaxed) != 0 {
            // Another client has attached before. The creator makes a new block for the next client.
            return Err(Error::Attached(name.to_owned()));
        }
        let barriers = sys::accept_barriers();
        attached.store(std::process::id(), Ordering::Release);
        sys::futex_wake(attached);
        let block = Block { file, mapping, path, side: Side::Attached, slots, bulk, extra, barriers };
        // The creator may have ended since the check above.
        if block.peer_lives(Side::Attached) { Ok(block) } else { Err(missing()) }
    }

    pub fn side(&self) -> Side {
        self.side
    }

    /// Whether a client has attached. The creator uses this to wait for its client.
    pub fn is_attached(&self) -> bool {
        word_at(&self.mapping, at::ATTACHED).load(Ordering::Acquire) != 0
    }

    /// Sleeps until a client attaches, for at most `limit`.
    pub fn sleep_until_attached(&self, limit: Duration) {
        sys::futex_wait(word_at(&self.mapping, at::ATTACHED), 0, limit);
    }

    /// The extra memory, as words.
    pub fn extra(&self) -> &[AtomicU32] {
        let start = self.mapping.at(at::RINGS + 2 * self.slots * size_of::<Slot>() + 2 * self.bulk);
        // SAFETY: inside the mapping, 64-byte aligned because `attach` and `create` check the sizes, and only used
        // as atomics.
        unsafe { slice::from_raw_parts(start.cast(), self.extra / 4) }
    }
}

impl Memory for Block {
    #[inline]
    fn half(&self, side: Side) -> &Half {
        // SAFETY: inside the mapping, aligned, and any bytes are a valid `Half`.
        unsafe { &*self.mapping.at(at::MAILBOX + side as usize * size_of::<Half>()).cast() }
    }

    #[inline]
    fn slots(&self, side: Side) -> &[Slot] {
        let start = self.mapping.at(at::RINGS + side as usize * self.slots * size_of::<Slot>());
        // SAFETY: inside the mapping, aligned, and any bytes are a valid `Slot`.
        unsafe { slice::from_raw_parts(start.cast(), self.slots) }
    }

    #[inline]
    fn bulk_size(&self) -> usize {
        self.bulk
    }

    #[inline]
    fn bulk(&self, side: Side, offset: usize, length: usize) -> *mut u8 {
        assert!(length <= self.bulk && offset <= self.bulk - length, "outside of the bulk room");
        let start = at::RINGS + 2 * self.slots * size_of::<Slot>() + side as usize * self.bulk;
        self.mapping.at(start + offset)
    }

    #[inline]
    fn watch_bulk(&self, _: Side, _: usize, _: usize, _: bool) {}

    #[inline]
    fn sleeps(&self, sleeper: Sleeper) -> &AtomicU32 {
        word_at(
            &self.mapping,
            match sleeper {
                Sleeper::Reader(side) => at::READER_SLEEPS + 4 * side as usize,
                Sleeper::Writer(side) => at::WRITER_SLEEPS + 4 * side as usize,
            },
        )
    }

    fn sleep(&self, sleeper: Sleeper, limit: Duration) {
        sys::futex_wait(self.sleeps(sleeper), 1, limit);
    }

    fn wake(&self, sleeper: Sleeper) {
        sys::futex_wake(self.sleeps(sleeper));
    }

    fn barrier(&self) {
        if self.barriers {
            sys::barrier();
        }
    }

    fn check_interval(&self) -> Duration {
        if self.barriers { CHECK_INTERVAL } else { CHECK_INTERVAL_WITHOUT_BARRIERS }
    }

    #[inline]
    fn is_lost(&self) -> bool {
        self.mapping.is_lost()
    }

    fn damage(&self) -> Option<&'static str> {
        if let Ok(data) = self.file.metadata() {
            if data.size() != self.mapping.size() as u64 {
                return Some("another program has changed the size of its file in /dev/shm");
            }
            if data.nlink() == 0 && self.side == Side::Creator && !self.is_attached() {
                return Some("another program has removed its file from /dev/shm, so no client can attach");
            }
        }
        if self.mapping.is_lost() {
            return Some("a part of its memory is missing; is /dev/shm full?");
        }
        let sizes = [at::VERSION, at::SLOTS, at::BULK, at::EXTRA]
            .map(|offset| word_at(&self.mapping, offset).load(Ordering::Relaxed) as usize);
        let is_whole = magic(&self.mapping).load(Ordering::Relaxed) == MAGIC
            && sizes == [VERSION as usize, self.slots, self.bulk, self.extra];
        if is_whole { None } else { Some("another program has overwritten its header") }
    }

    fn peer_closed(&self, side: Side) -> bool {
        word_at(&self.mapping, at::CLOSED + 4 * side.other() as usize).load(Ordering::Acquire) != 0
    }

    fn peer_lives(&self, side: Side) -> bool {
        match side {
            // Before a client attaches, there is no process that could have died.
            Side::Creator if !self.is_attached() => true,
            _ => sys::is_locked(&self.file, side.other() as i64),
        }
    }
}

impl Drop for Block {
    fn drop(&mut self) {
        // The name is removed first. So a client that sees that the channel is closed can create a channel of the same
        // name. If another program has removed the name, it may belong to a newer channel by now.
        if self.side == Side::Creator && self.file.metadata().is_ok_and(|data| data.nlink() > 0) {
            sys::unlink(&self.path);
        }
        word_at(&self.mapping, at::CLOSED + 4 * self.side as usize).store(1, Ordering::Release);
        self.barrier();
        for sleeper in [Sleeper::Reader(self.side.other()), Sleeper::Writer(self.side.other())] {
            self.sleeps(sleeper).store(0, Ordering::Release);
            self.wake(sleeper);
        }
    }
}
