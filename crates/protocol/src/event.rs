//! What an emulator reports without a request: at most one [`EventFrame`] for each frame of the game.

use crate::wire::{DecodeError, Reader, Wire};

/// The value of [`NewValue::range`] for the keys held in the frame. The bytes are the mask of the keys, a `u16`.
pub const KEYS: u16 = u16::MAX;

/// The value of [`NewValue::range`] that reports that the frame does not follow from the one before it. The only byte
/// is a [`discontinuity`], which says why.
pub const DISCONTINUITY: u16 = u16::MAX - 1;

/// Why a frame does not follow from the one before it.
pub mod discontinuity {
    /// The console was reset.
    pub const RESET: u8 = 1;
    /// A state was loaded.
    pub const STATE: u8 = 2;
    /// Another game was loaded.
    pub const GAME: u8 = 3;
}

/// What happened in one frame of the game.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventFrame {
    /// The emulator's frame counter after that frame.
    pub frame: u32,
    /// What happened, in order.
    pub items: Vec<EventItem>,
}

/// Something that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EventItem {
    /// Watched memory or the held keys have changed, or a regular event is due: see `every` of
    /// [`Op::Watch`](crate::Op::Watch).
    Changed {
        /// Number of the watch.
        watch: u32,
        /// Frames since the watch began.
        ticks: u32,
        /// What changed.
        values: Vec<NewValue>,
    },
    /// The console was reset.
    Reset,
    /// A timeline is over.
    TimelineOver {
        /// Its number.
        id: u32,
        /// Whether it was cancelled before its last step.
        cancelled: bool,
    },
    /// Lockstep ended by itself, for example because no client had sent a request for the length of its time-out.
    LockstepOver,
    /// Another game was loaded.
    Game,
    /// A state was loaded.
    State,
}

/// The new value of watched memory or of the held keys, or a [`discontinuity`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewValue {
    /// Number of the range in its watch, from 0, or [`KEYS`], or [`DISCONTINUITY`].
    pub range: u16,
    /// All bytes of the range, the mask of keys, or the [`discontinuity`].
    pub bytes: Vec<u8>,
}

mod kind {
    pub const CHANGED: u8 = 1;
    pub const RESET: u8 = 2;
    pub const TIMELINE_OVER: u8 = 3;
    pub const LOCKSTEP_OVER: u8 = 4;
    pub const GAME: u8 = 5;
    pub const STATE: u8 = 6;
}

impl Wire for EventFrame {
    fn encode(&self, out: &mut Vec<u8>) {
        self.frame.encode(out);
        (self.items.len() as u16).encode(out);
        self.items.iter().for_each(|item| item.encode(out));
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let frame = reader.get()?;
        let count = reader.get::<u16>()?;
        let items = (0..count).map(|_| reader.get()).collect::<Result<_, _>>()?;
        Ok(EventFrame { frame, items })
    }
}

impl Wire for EventItem {
    fn encode(&self, out: &mut Vec<u8>) {
        match self {
            EventItem::Changed { watch, ticks, values } => {
                out.push(kind::CHANGED);
                watch.encode(out);
                ticks.encode(out);
                (values.len() as u16).encode(out);
                for NewValue { range, bytes } in values {
                    range.encode(out);
                    bytes.encode(out);
                }
            }
            EventItem::Reset => out.push(kind::RESET),
            EventItem::TimelineOver { id, cancelled } => {
                out.push(kind::TIMELINE_OVER);
                id.encode(out);
                cancelled.encode(out);
            }
            EventItem::LockstepOver => out.push(kind::LOCKSTEP_OVER),
            EventItem::Game => out.push(kind::GAME),
            EventItem::State => out.push(kind::STATE),
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        Ok(match reader.get::<u8>()? {
            kind::CHANGED => {
                let (watch, ticks) = (reader.get()?, reader.get()?);
                let count = reader.get::<u16>()?;
                let values = (0..count)
                    .map(|_| Ok(NewValue { range: reader.get()?, bytes: reader.get()? }))
                    .collect::<Result<_, DecodeError>>()?;
                EventItem::Changed { watch, ticks, values }
            }
            kind::RESET => EventItem::Reset,
            kind::TIMELINE_OVER => EventItem::TimelineOver { id: reader.get()?, cancelled: reader.get()? },
            kind::LOCKSTEP_OVER => EventItem::LockstepOver,
            kind::GAME => EventItem::Game,
            kind::STATE => EventItem::State,
            value => return Err(DecodeError::Unknown { what: "event", value }),
        })
    }
}
