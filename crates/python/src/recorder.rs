//! Recordings of a core in this process. Their files have the same format as the server's recordings.

use std::time::SystemTime;

use framewire_emulator::ClockTime;
use framewire_emulator::embedded::hash_of_memory;
use framewire_libmgba::{Clock, Core, flags};
use framewire_protocol::Keys;
use framewire_recording::{Ending, Entry, Head, Recording, Start, Writer};
use framewire_states::time;
use pyo3::{IntoPyObject, PyResult};

use crate::errors::{self, Conflict};
use crate::machine::Machine;

/// A recording ends when its file is this many bytes below the largest size, so that the last entries still fit.
const MARGIN: u64 = 65_536;

/// A recording that is being made, or that has ended but whose file has not been taken yet.
pub(crate) struct Recorder {
    /// `None` after the recording's end.
    writer: Option<Writer<Vec<u8>>>,
    /// Frames from one hash of the picture and the memory to the next.
    every: u32,
    /// Frames that were recorded.
    frames: u64,
    /// The value of `frames` when memory was last hashed.
    hashed: Option<u64>,
    /// After the recording's end: its file, and why it ended.
    done: Option<(Vec<u8>, String)>,
}

impl Recorder {
    /// Begins a recording from the core's present state, or from a reset.
    pub(crate) fn begin(
        machine: &mut Machine,
        start: Start,
        every: u32,
        note: &str,
    ) -> Result<Recorder, String> {
        machine.settle_clock();
        let core = &mut machine.core;
        if start == Start::PowerOn {
            core.reset();
        }
        let state = core.save_state(flags::ALL).map_err(|error| error.to_string())?;
        let clock = match core.clock() {
            Clock::Frames(now) => ClockTime { unix_ms: now.unix_ms, zone: now.zone.unwrap_or(0) }.to_string(),
            Clock::Host => "wall".to_owned(),
        };
        let head = Head {
            title: core.title(),
            code: core.code(),
            checksum: core.crc32(),
            console: core.platform().number() as u8,
            start,
            frame: core.frame_counter(),
            picture_interval: every,
            time: time::millis(SystemTime::now()),
            note: note.to_owned(),
            clock,
            recovered: false,
        };
        let writer = Writer::begin(Vec::new(), &head, state).map_err(|error| error.to_string())?;
        Ok(Recorder { writer: Some(writer), every, frames: 0, hashed: None, done: None })
    }

    pub(crate) fn frames(&self) -> u64 {
        self.frames
    }

    /// The size of the file so far, in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        match (&self.writer, &self.done) {
            (Some(writer), _) => writer.bytes(),
            (None, Some((file, _))) => file.len() as u64,
            (None, None) => 0,
        }
    }

    /// Why the recording ended; `None` while it is being made.
    pub(crate) fn ended(&self) -> Option<&str> {
        self.done.as_ref().map(|(_, reason)| reason.as_str())
    }

    /// Whether the next frame must be drawn, because its picture will be hashed.
    pub(crate) fn needs_picture(&self) -> bool {
        self.writer.is_some() && (self.frames + 1).is_multiple_of(self.every.into())
    }

    /// Adds the last frame, which was run with these keys.
    pub(crate) fn take(&mut self, keys: u16, core: &mut Core) {
        let Some(writer) = &mut self.writer else { return };
        self.frames += 1;
        let mut written = writer.keys(keys, 1);
        if self.frames.is_multiple_of(self.every.into()) {
            written = written.and_then(|()| writer.picture(picture_hash(core)));
            if let Some(hash) = hash_of_memory(core) {
                written = written.and_then(|()| writer.memory(hash));
                self.hashed = Some(self.frames);
            }
        }
        // The writer writes to memory, so this is not expected to fail.
        if let Err(error) = written {
            self.end(&format!("it could not be written: {error}"), None);
        }
        if self.bytes() > framewire_recording::MAX_FILE - MARGIN {
            self.end("its file has the largest size that is allowed", None);
        }
    }

    /// Ends the recording and notes the reason. With a core, a hash of its memory is added first.
    pub(crate) fn end(&mut self, reason: &str, core: Option<&mut Core>) {
        let Some(mut writer) = self.writer.take() else { return };
        if let Some(core) = core
            && self.hashed != Some(self.frames)
            && let Some(hash) = hash_of_memory(core)
        {
            let _ = writer.memory(hash);
        }
        let file = writer.end(reason).unwrap_or_default();
        self.done = Some((file, reason.to_owned()));
    }

    /// The file of a recording that has ended.
    pub(crate) fn into_file(self) -> Option<Vec<u8>> {
        self.done.map(|(file, _)| file)
    }
}

fn picture_hash(core: &Core) -> u32 {
    crc32fast::hash(&core.frame().to_rgb())
}

/// The result of a replay, in Python a `dict`.
#[derive(Default, IntoPyObject)]
pub(crate) struct Replayed {
    /// Whether the whole recording was read, and nothing differed.
    equal: bool,
    /// Frames of the recording.
    frames: u64,
    /// Frames that were played.
    played: u64,
    /// Hashes of pictures that were compared.
    pictures: u64,
    /// The recording's hashes of memory that the replay reached.
    memories: u64,
    /// Why the recording could not be read to its end.
    damage: Option<String>,
    diverged: Option<Divergence>,
}

/// The first difference of a replay.
#[derive(IntoPyObject)]
struct Divergence {
    frame: u64,
    /// The last compared frame before it. All of its hashes were equal.
    agreed: u64,
    /// What differs: `picture` or `memory`.
    what: &'static str,
    /// The recorded hash, in hex digits.
    recorded: String,
    /// The played hash, in hex digits.
    played: String,
}

/// Replays a recording and compares its hashes. Without `through`, the replay ends at the first difference.
///
/// # Errors
/// If the recording belongs to another game, or its state cannot be loaded.
pub(crate) fn replay(machine: &mut Machine, recording: &Recording, through: bool) -> PyResult<Replayed> {
    let head = recording.head();
    if head.checksum != machine.core.crc32() {
        return Err(Conflict::new_err(format!(
            "the recording is of {} (checksum {:08x}), and {} (checksum {:08x}) is running",
            head.title,
            head.checksum,
            machine.core.title(),
            machine.core.crc32()
        )));
    }
    machine.discontinue("a state was loaded");
    machine.settle_clock();
    machine.core.load_state_with_keys(0, recording.state(), flags::ALL).map_err(errors::of_core)?;
    let mut report = Replayed { frames: recording.frames(), ..Replayed::default() };
    // The last two frames in which a hash was as recorded, the earlier one first. A frame can have several hashes.
    let (mut before, mut agreed) = (0, 0);
    let mut entries = recording.entries().iter().peekable();
    while let Some(entry) = entries.next() {
        let (what, recorded, played) = match entry {
            Entry::Keys { keys, frames } => {
                machine.set_keys(*keys, Keys::MASK);
                let draws = !matches!(entries.peek(), Some(Entry::Keys { .. }));
                machine.run(*frames, draws);
                report.played += u64::from(*frames);
                continue;
            }
            Entry::Picture(hash) => {
                report.pictures += 1;
                ("picture", *hash, picture_hash(&machine.core))
            }
            Entry::Memory(hash) => {
                report.memories += 1;
                match hash_of_memory(&mut machine.core) {
                    Some(played) => ("memory", *hash, played),
                    None => continue,
                }
            }
            Entry::State(_) | Entry::End { .. } => continue,
        };
        if recorded == played {
            if agreed != report.played {
                (before, agreed) = (agreed, report.played);
            }
        } else if report.diverged.is_none() {
            let agreed = if agreed == report.played { before } else { agreed };
            let [recorded, played] = [recorded, played].map(|hash| format!("{hash:08x}"));
            report.diverged = Some(Divergence { frame: report.played, agreed, what, recorded, played });
            if !through {
                break;
            }
        }
    }
    machine.set_keys(0, Keys::MASK);
    if let Ending::Damaged(damage) = recording.ending() {
        report.damage = Some(damage.to_string());
    }
    report.equal = report.diverged.is_none() && report.damage.is_none();
    Ok(report)
}
