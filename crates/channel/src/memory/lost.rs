//! A signal handler that keeps the process alive if a part of a mapping is missing.
//!
//! A process of the same user can truncate a channel's file while it is mapped, and `/dev/shm` can be full. A process
//! that then accesses the missing part gets SIGBUS, which would end the process. The handler in this file replaces the
//! missing part with zero pages and marks the mapping as lost. The side that uses the mapping ends the channel at its
//! next check. A SIGBUS for any other reason is passed on to the handler that was installed before this one.

use std::io::{Error, Result};
use std::mem::MaybeUninit;
use std::ptr;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, AtomicPtr, AtomicUsize, Ordering, fence};

/// The handler's entry for a mapping. Entries are never freed, because the handler may read them at any time. After a
/// mapping is removed, its entry can be used for another mapping.
pub struct Entry {
    /// Whether the entry belongs to a mapping.
    taken: AtomicBool,
    /// The first byte; 0 while the entry is being changed or belongs to no mapping.
    start: AtomicUsize,
    size: AtomicUsize,
    /// Whether a part of the mapping was replaced with zero pages.
    lost: AtomicBool,
    next: Option<&'static Entry>,
}

static ENTRIES: AtomicPtr<Entry> = AtomicPtr::new(ptr::null_mut());

/// The previous action for SIGBUS, and the page size. They are stored in advance, because the handler must not look
/// them up.
struct Before {
    action: libc::sigaction,
    page: usize,
}

static BEFORE: OnceLock<Before> = OnceLock::new();

fn entries() -> impl Iterator<Item = &'static Entry> {
    // SAFETY: null or made by `Box::leak`, and never freed.
    let first = unsafe { ENTRIES.load(Ordering::Acquire).as_ref() };
    std::iter::successors(first, |entry| entry.next)
}

impl Entry {
    /// Registers a mapping with the handler.
    ///
    /// # Errors
    /// The system's error, if it refuses the handler.
    pub fn add(start: usize, size: usize) -> Result<&'static Entry> {
        install()?;
        let entry =
            entries().find(|entry| !entry.taken.swap(true, Ordering::Acquire)).unwrap_or_else(Entry::push);
        entry.lost.store(false, Ordering::Relaxed);
        entry.size.store(size, Ordering::Relaxed);
        // SYNC POINT (entry): pairs with the load in `find`; a thread that sees the start also sees the size.
        entry.start.store(start, Ordering::Release);
        Ok(entry)
    }

    /// Adds an entry that is already taken.
    fn push() -> &'static Entry {
        let entry = Box::leak(Box::new(Entry {
            taken: AtomicBool::new(true),
            start: AtomicUsize::new(0),
            size: AtomicUsize::new(0),
            lost: AtomicBool::new(false),
            next: None,
        }));
        loop {
            let first = ENTRIES.load(Ordering::Acquire);
            // SAFETY: as in `entries`.
            entry.next = unsafe { first.as_ref() };
            if ENTRIES.compare_exchange(first, entry, Ordering::AcqRel, Ordering::Acquire).is_ok() {
                return entry;
            }
        }
    }

    /// Removes the mapping from the handler. Call this before the memory is unmapped.
    pub fn remove(&self) {
        self.start.store(0, Ordering::Relaxed);
        // The writes of the entry's next owner come after this.
        self.taken.store(false, Ordering::Release);
    }

    /// Whether a part of the mapping was replaced with zero pages.
    #[inline]
    pub fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Relaxed)
    }

    /// The entry whose mapping holds an address, and the mapping's end.
    fn find(address: usize) -> Option<(&'static Entry, usize)> {
        entries().find_map(|entry| {
            // SYNC POINT (entry).
            let start = entry.start.load(Ordering::Acquire);
            let size = entry.size.load(Ordering::Relaxed);
            fence(Ordering::Acquire);
            // By now, an entry may belong to a different mapping than it did at the first load. That cannot happen to
            // the entry of the mapping that holds `address`: the thread that uses that mapping is stopped in the
            // handler.
            let is_same = entry.start.load(Ordering::Relaxed) == start;
            (start != 0 && is_same && (start..start + size).contains(&address))
                .then_some((entry, start + size))
        })
    }
}

/// Installs the handler, once.
fn install() -> Result<()> {
    static RESULT: OnceLock<Option<i32>> = OnceLock::new();
    let refused = RESULT.get_or_init(|| {
        let mut before = MaybeUninit::<libc::sigaction>::zeroed();
        // SAFETY: the signal exists, and `before` has room for its action.
        if unsafe { libc::sigaction(libc::SIGBUS, ptr::null(), before.as_mut_ptr()) } != 0 {
            return Error::last_os_error().raw_os_error();
        }
        // SAFETY: `sigaction` has filled `before`; `sysconf` cannot fail for the page size.
        let (action, page) = unsafe { (before.assume_init(), libc::sysconf(libc::_SC_PAGESIZE)) };
        BEFORE.get_or_init(|| Before { action, page: page as usize });
        // SAFETY: all zero is an action without flags and with an empty mask.
        let mut ours: libc::sigaction = unsafe { MaybeUninit::zeroed().assume_init() };
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_bus_error;
        ours.sa_sigaction = handler as libc::sighandler_t;
        ours.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
        // SAFETY: the handler does only what is safe in a signal handler: it uses atomics, and calls mmap, sigaction
        // and raise.
        let result = unsafe { libc::sigaction(libc::SIGBUS, &ours, ptr::null_mut()) };
        (result != 0).then(|| Error::last_os_error().raw_os_error().unwrap_or(libc::EINVAL))
    });
    refused.map_or(Ok(()), |code| Err(Error::from_raw_os_error(code)))
}

extern "C" fn on_bus_error(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the kernel passes a valid `info`; `errno` belongs to this thread.
    let (code, address, errno) =
        unsafe { ((*info).si_code, (*info).si_addr() as usize, *libc::__errno_location()) };
    if code != libc::BUS_ADRERR || !replace(address) {
        pass_on(signal, info, context, code);
    }
    // SAFETY: as above.
    unsafe { *libc::__errno_location() = errno };
}

/// Replaces the pages of a registered mapping with zero pages, from the page of this address to the end of the mapping.
/// The pages before it stay shared with the other side. Returns false if no mapping holds the address.
fn replace(address: usize) -> bool {
    let (Some((entry, end)), Some(before)) = (Entry::find(address), BEFORE.get()) else { return false };
    entry.lost.store(true, Ordering::Relaxed);
    let start = address & !(before.page - 1);
    let access = libc::PROT_READ | libc::PROT_WRITE;
    let kind = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_FIXED;
    // SAFETY: these pages belong to one mapping. It stays mapped, because this thread is using it. The old contents
    // of these pages are gone.
    let placed = unsafe { libc::mmap(start as *mut libc::c_void, end - start, access, kind, -1, 0) };
    placed != libc::MAP_FAILED
}

/// Handles the signal as if this handler were not installed.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void, code: libc::c_int) {
    let handler = BEFORE.get().map_or(libc::SIG_DFL, |before| before.action.sa_sigaction);
    let flags = BEFORE.get().map_or(0, |before| before.action.sa_flags);
    // If the code is above 0, the kernel reports a memory access, which faults again after this handler. Otherwise a
    // process has sent the signal.
    let is_sent = code <= 0;
    if handler == libc::SIG_IGN && is_sent {
        return;
    }
    if handler == libc::SIG_DFL || handler == libc::SIG_IGN {
        // SAFETY: all zero is the default action. The signal from `raise` stays pending until this handler has
        // returned.
        unsafe {
            let default: libc::sigaction = MaybeUninit::zeroed().assume_init();
            libc::sigaction(signal, &default, ptr::null_mut());
            if is_sent {
                libc::raise(signal);
            }
        }
    } else if flags & libc::SA_SIGINFO == 0 {
        // SAFETY: without SA_SIGINFO, the action holds the address of a function of this type.
        let handler: extern "C" fn(libc::c_int) = unsafe { std::mem::transmute(handler) };
        handler(signal);
    } else {
        // SAFETY: with SA_SIGINFO, the action holds the address of a function of this type.
        let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
            unsafe { std::mem::transmute(handler) };
        handler(signal, info, context);
    }
}
