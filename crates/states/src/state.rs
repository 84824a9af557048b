use std::borrow::Cow;
use std::fmt;
use std::io::Read;
use std::ops::Range;

use flate2::read::ZlibDecoder;
use serde::Serialize;

use crate::error::StateError;
use crate::png;

/// The largest savestate that is accepted, in bytes. Real states are smaller than 1 MiB.
pub const MAX_STATE: usize = 16 << 20;

/// The largest battery save that is accepted in a state, in bytes. Real saves have at most 128 KiB and a few bytes for
/// a clock.
const MAX_SAVE: usize = 1 << 20;
/// The sizes of the two kinds of EEPROM in bytes. The other kinds of save memory of a Game Boy Advance are larger.
const EEPROM: [usize; 2] = [0x200, 0x2000];

/// The kind of the PNG chunk in which mGBA stores the console's state. This file calls its content the core state.
const STATE_CHUNK: &[u8; 4] = b"gbAs";
/// The kind of the PNG chunks in which mGBA stores optional parts, such as the battery save. Each chunk begins with a
/// tag that says which part it contains.
const EXTRA_CHUNK: &[u8; 4] = b"gbAx";

/// The tag of the battery save (`EXTDATA_SAVEDATA` in mGBA's `core/serialize.h`).
const SAVE_TAG: u32 = 2;

/// The tag of the clock. The clock is stored as mGBA's `struct mRTCGenericState`: a type, padding and a value.
const CLOCK_TAG: u32 = 4;
const CLOCK_SIZE: usize = 16;
/// The type of a clock that advances with the frames.
const OF_FRAMES: u32 = 2;

/// Framewire stores the sum of the time zone and this number in the padding of the clock's structure. mGBA sets the
/// padding to 0, which means that there is no time zone.
const ZONE_MARK: i32 = 1 << 20;

/// The clock of a state, if it advances with the frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Clock {
    /// Unix time in milliseconds.
    pub unix_ms: i64,
    /// The time zone of the calendar that the game sees, in seconds east of UTC, if the state contains it.
    pub zone: Option<i32>,
}

/// The console of a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Console {
    /// Game Boy Advance.
    #[serde(rename = "gba")]
    Gba,
    /// Game Boy, also Game Boy Color.
    #[serde(rename = "gb")]
    Gb,
}

impl fmt::Display for Console {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Console::Gba => "Game Boy Advance",
            Console::Gb => "Game Boy",
        })
    }
}

/// The size of a core state, and the offsets of its fields: mGBA 0.10's `internal/gba/serialize.h` and
/// `internal/gb/serialize.h`.
struct Layout {
    size: usize,
    checksum: usize,
    frame: usize,
    /// The memory domains and their ranges.
    memory: &'static [(&'static str, Range<usize>)],
}

/// The range that contains the game's title, and on the GBA also the game's code. mGBA copies them from the ROM, and
/// refuses a state in which they differ from those of the loaded ROM.
const GAME: Range<usize> = 0x10..0x20;

static GBA: Layout = Layout {
    size: 0x61000,
    checksum: 0x08,
    frame: 0x1FC,
    memory: &[
        ("wram", 0x21000..0x61000),
        ("iwram", 0x19000..0x21000),
        ("io", 0x400..0x800),
        ("palette", 0x800..0xC00),
        ("vram", 0x1000..0x19000),
        ("oam", 0xC00..0x1000),
    ],
};

static GB: Layout = Layout {
    size: 0x11800,
    checksum: 0x04,
    frame: 0xC8,
    memory: &[
        ("vram", 0x400..0x4400),
        ("wram", 0x4400..0xC400),
        ("oam", 0x260..0x300),
        ("io", 0x300..0x380),
        ("hram", 0x380..0x3FF),
    ],
};

/// A part of memory in a state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Region<'a> {
    /// The memory domain, as mGBA names it.
    pub domain: &'static str,
    /// The content of the domain.
    pub bytes: &'a [u8],
}

/// The parts of a savestate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct State<'a> {
    console: Console,
    /// The core state: the console without the optional parts.
    core: Cow<'a, [u8]>,
    /// The battery save, if the state contains it.
    save: Option<Vec<u8>>,
    /// The clock as mGBA's structure, if the state contains it.
    clock: Option<Vec<u8>>,
}

impl<'a> State<'a> {
    /// Reads a state in either form that mGBA writes: bare bytes, or a PNG that contains the state.
    ///
    /// # Errors
    /// [`StateError::Format`].
    pub fn read(bytes: &'a [u8]) -> Result<State<'a>, StateError> {
        if bytes.len() > MAX_STATE {
            return Err(format(format!("it has {} bytes; at most {MAX_STATE} are accepted", bytes.len())));
        }
        if bytes.starts_with(png::SIGNATURE) { State::in_png(bytes) } else { State::bare(bytes) }
    }

    fn in_png(bytes: &[u8]) -> Result<State<'a>, StateError> {
        let (mut core, mut save, mut clock) = (None, None, None);
        for chunk in png::chunks(bytes)? {
            let chunk = chunk?;
            if &chunk.kind == STATE_CHUNK {
                core = Some(inflated(chunk.data, GBA.size + 1)?);
            } else if &chunk.kind == EXTRA_CHUNK
                && let Some((head, data)) = chunk.data.split_first_chunk::<8>()
            {
                match word(head, 0) {
                    SAVE_TAG => save = Some(inflated(data, MAX_SAVE)?),
                    CLOCK_TAG => clock = inflated(data, CLOCK_SIZE).ok(),
                    _ => {}
                }
            }
        }
        let core = core.ok_or_else(|| format("a PNG file without a state inside"))?;
        let console = console_of(&core)?;
        if core.len() != console.layout().size {
            return Err(format("its length is wrong for its console"));
        }
        Ok(State { console, core: core.into(), save, clock })
    }

    fn bare(bytes: &'a [u8]) -> Result<State<'a>, StateError> {
        let console = console_of(bytes)?;
        let Some((core, extra)) = bytes.split_at_checked(console.layout().size) else {
            return Err(format("it is cut short"));
        };
        let extra = |tag| bare_extra(core.len(), extra, tag);
        Ok(State { console, core: core.into(), save: extra(SAVE_TAG), clock: extra(CLOCK_TAG) })
    }

    /// The console of the state.
    pub fn console(&self) -> Console {
        self.console
    }

    /// The CRC-32 of the ROM that the state was made with.
    pub fn checksum(&self) -> u32 {
        word(&self.core, self.console.layout().checksum)
    }

    /// The frame counter.
    pub fn frame(&self) -> u32 {
        word(&self.core, self.console.layout().frame)
    }

    /// The console's clock, if the state contains a clock that advances with the frames.
    pub fn clock(&self) -> Option<Clock> {
        /// The length of a frame in milliseconds, as a fraction: 280,896 cycles at 16,777,216 Hz on the GBA, and
        /// the same time on the Game Boy.
        const FRAME: (i64, i64) = (280_896_000, 16_777_216);
        let clock =
            self.clock.as_deref().filter(|clock| clock.len() >= CLOCK_SIZE && word(clock, 0) == OF_FRAMES)?;
        let (zone, at_zero) =
            (word(clock, 4) as i32, clock[8..].first_chunk().map(|ms| i64::from_le_bytes(*ms))?);
        let elapsed = i64::from(self.frame()) * FRAME.0 / FRAME.1;
        Some(Clock {
            unix_ms: at_zero.checked_add(elapsed)?,
            zone: if zone == 0 { None } else { Some(zone.wrapping_sub(ZONE_MARK)) },
        })
    }

    /// The game's title, up to the first character that cannot be printed.
    pub fn title(&self) -> String {
        let title = &self.core[GAME];
        let title = if self.console == Console::Gba { &title[..12] } else { title };
        title
            .iter()
            .take_while(|byte| byte.is_ascii_graphic() || **byte == b' ')
            .map(|byte| char::from(*byte))
            .collect()
    }

    /// The core state, without the picture, the battery save and other optional parts.
    pub fn core(&self) -> &[u8] {
        &self.core
    }

    /// The battery save, if the state contains it.
    pub fn save(&self) -> Option<&[u8]> {
        self.save.as_deref()
    }

    /// A bare state that consists of the core state and this battery save.
    pub fn with_save(&self, save: &[u8]) -> Vec<u8> {
        // The list of optional parts has two entries of 16 bytes: the save, and the end of the list (zeros).
        let at = (self.core.len() + 32) as u64;
        let mut bytes = self.core.to_vec();
        bytes.extend(SAVE_TAG.to_le_bytes());
        bytes.extend((save.len() as u32).to_le_bytes());
        bytes.extend(at.to_le_bytes());
        bytes.extend([0; 16]);
        bytes.extend(save);
        bytes
    }

    /// The memory domains in the state. The last one is the battery save, if the state contains it: `eeprom` if it has
    /// the size of a Game Boy Advance's EEPROM, otherwise `sram`.
    pub fn memory(&self) -> impl Iterator<Item = Region<'_>> {
        let layout = self.console.layout();
        let save = self.save.as_deref().map(|bytes| {
            // A save file can have 16 more bytes for a clock. The mask leaves them out. As long as a game has not used
            // its save, a state has only one byte of it, so an EEPROM is called `sram`, too.
            let is_eeprom = self.console == Console::Gba && EEPROM.contains(&(bytes.len() & !0xFF));
            Region { domain: if is_eeprom { "eeprom" } else { "sram" }, bytes }
        });
        let memory = layout.memory.iter();
        memory.map(|(domain, range)| Region { domain, bytes: &self.core[range.clone()] }).chain(save)
    }

    /// The core state with the title, code and checksum of `other`'s game, so that mGBA accepts it as a state of that
    /// game.
    ///
    /// # Errors
    /// [`StateError::OtherConsole`].
    pub fn as_of(&self, other: &State<'_>) -> Result<Vec<u8>, StateError> {
        if self.console != other.console {
            return Err(StateError::OtherConsole { theirs: self.console, ours: other.console });
        }
        let mut core = self.core.to_vec();
        let checksum = self.console.layout().checksum;
        for range in [GAME, checksum..checksum + 4] {
            core[range.clone()].copy_from_slice(&other.core[range]);
        }
        Ok(core)
    }
}

impl Console {
    fn layout(self) -> &'static Layout {
        match self {
            Console::Gba => &GBA,
            Console::Gb => &GB,
        }
    }
}

/// Finds the console by the magic number at the beginning of a state. mGBA adds a small version to this number, so the
/// low 16 bits are ignored.
fn console_of(core: &[u8]) -> Result<Console, StateError> {
    if core.len() < 4 {
        return Err(format("it is cut short"));
    }
    match word(core, 0) & !0xFFFF {
        0x0100_0000 => Ok(Console::Gba),
        0x0040_0000 => Ok(Console::Gb),
        _ => Err(format("it does not begin with the number that marks a state")),
    }
}

/// The optional part with this tag, from the bytes after a bare core state of `core` bytes. They begin with a list of
/// the parts: each entry has a tag (32 bits), a size (32 bits), and an offset in the file (64 bits). An entry with tag
/// 0 ends the list, and the bytes of the parts follow.
fn bare_extra(core: usize, extra: &[u8], tag: u32) -> Option<Vec<u8>> {
    let mut entries = extra.chunks_exact(16).take_while(|entry| word(entry, 0) != 0);
    let entry = entries.find(|entry| word(entry, 0) == tag)?;
    if word(entry, 12) != 0 {
        return None;
    }
    let offset = (word(entry, 8) as usize).checked_sub(core)?;
    extra.get(offset..)?.get(..word(entry, 4) as usize).map(<[u8]>::to_vec)
}

/// Decompresses data. More than `limit` bytes are an error.
fn inflated(data: &[u8], limit: usize) -> Result<Vec<u8>, StateError> {
    let mut bytes = Vec::new();
    match ZlibDecoder::new(data).take(limit as u64 + 1).read_to_end(&mut bytes) {
        Ok(_) if bytes.len() <= limit => Ok(bytes),
        Ok(_) => {
            Err(format(format!("a part of it has more than {limit} bytes, more than in any real state")))
        }
        Err(error) => Err(format(format!("its data cannot be decompressed ({error})"))),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes[at..].first_chunk().map_or(0, |word| u32::from_le_bytes(*word))
}

fn format(why: impl Into<String>) -> StateError {
    StateError::Format(why.into())
}
