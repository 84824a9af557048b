//! A small language over an emulator's memory: `score > 10 and u16[0x02000038] != 0`.
//!
//! An expression is compiled once, to a tree and a list of the [`Place`]s in memory that it reads. Its value is
//! computed from the bytes of those places whenever they change. This crate does not depend on an emulator.
//!
//! | what | how it is written |
//! | --- | --- |
//! | numbers | `10`, `0x0a`, `0b1010`, `1_000`, `true` (1), `false` (0) |
//! | memory | `u8[0x02000000]`, likewise `u16`, `u32`, `i8`, `i16`, `i32`; in a memory domain `u8[wram:0x10]` |
//! | named memory | `score`, `presses[2]`; in brackets, a name stands for its address: `u16[score+2]` |
//! | fields of structures | `hero.hp`, `party[2].moves[0]`, as memory maps describe them |
//! | a text, compared | `text[0x02000100] == "RED"`, also `!=` |
//! | the frame counter | `frame` |
//! | bytes, compared | `bytes[score, 2] == "0aff"`, also `!=` |
//! | bytes, alone in a [`Subject`] | `bytes[score, 8]` |
//! | a text, alone in a [`Subject`] | `text[0x02000100, 12]` |
//! | operators, by rising precedence | `or` = <code>&#124;&#124;</code>, `and` = `&&`, `not`, `== != < <= > >=`, <code>&#124;</code>, `^`, `&`, `<< >>`, `+ -`, `* / %`, `- ~ !` |
//!
//! Values are signed 64-bit integers. Comparisons give 1 or 0, and every value other than 0 is true. A division by zero, a
//! shift by less than 0 or more than 63, and a number beyond 64 bits have no value. `and` and `or` do not compute their
//! right side if the left side decides the result, so `n != 0 and total / n > 3` always has a value.
//!
//! A [`Formula`] is an expression that is evaluated once per frame, for example for rewards. It may also have numbers
//! with a decimal point, and functions that compare frames: `delta(score) * 0.01`.
//!
//! A [`Code`] is an expression that is sent to an emulator, which evaluates it between two frames. It may also read
//! addresses from memory: `u32[u32[0x03005D8C] + 4]`.
//!
//! - [`Subject`]: what a watch observes: an [`Expression`], or a [`Range`] with bytes or with a text;
//! - [`Names`]: looks up names; [`Symbol`]: the meaning of a name;
//! - [`ParseError`]: what is wrong, in which column.

mod code;
mod expression;
mod formula;
mod node;
mod parse;
mod place;
mod token;

pub use code::{Code, CodeError, ReadMemory};
pub use expression::{Expression, Subject};
pub use formula::{Formula, History, Memory, Number};
pub use parse::ParseError;
pub use place::{Format, Names, NoNames, Place, Range, Symbol, Type, Variable};

/// The longest text of an expression, in bytes.
pub const MAX_TEXT: usize = 1024;
/// The largest number of places that one [`Expression`] or [`Formula`] may read. A comparison with `bytes[…]` or
/// `text[…]` has at most this many bytes, even in a [`Code`].
pub const MAX_PLACES: usize = 64;
/// The largest number of bytes of one `bytes[…]` or `text[…, LENGTH]`.
pub const MAX_RANGE: u16 = 4096;
