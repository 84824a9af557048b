//! The parameters of a route: what they are called, what they accept, and what to say when they are given something
//! else.

use std::borrow::Cow;

use framewire_protocol::number::{decimal_integer, lua_integer};
use framewire_protocol::{Key, Keys};

use super::args::Arg;
use crate::failure::Failure;

/// A parameter in a route's query.
#[derive(Debug, Clone, Copy)]
pub struct Param {
    /// Its name as mGBA-http's documents spell it; any letter case is accepted.
    pub name: &'static str,
    /// What it accepts.
    pub kind: Kind,
    /// The value it has when it is left out or empty; without one it must be given.
    pub default: Option<i64>,
    /// What it means.
    pub doc: &'static str,
}

/// What a parameter accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// A whole number in decimal.
    Integer {
        /// The smallest that is accepted.
        min: i64,
        /// The largest that is accepted.
        max: i64,
    },
    /// A whole number as Lua's `tonumber` reads it: decimal, or hex after `0x`.
    LuaNumber {
        /// The largest that is accepted; the smallest is 0.
        max: u32,
    },
    /// `true` or `false`, in any letter case.
    Boolean,
    /// Any text, the empty one included.
    Text,
    /// Text that is not empty: a name that the emulator looks up.
    Name,
    /// A path on the emulator's machine: not empty and without NUL.
    Path,
    /// The name of a button, spelled exactly as [`Key::name`] does.
    Button,
    /// Names of buttons, the parameter repeated for each; at least one.
    Buttons,
}

impl Param {
    /// Reads the values given for it, in order.
    pub(crate) fn read(&self, values: &[Cow<'_, str>]) -> Result<Arg, Failure> {
        let value = match (values, self.default) {
            (_, None) if self.kind == Kind::Buttons && !values.is_empty() => {
                return self.read_buttons(values);
            }
            ([], Some(default)) => return Ok(Arg::Number(default)),
            ([empty], Some(default)) if empty.is_empty() => return Ok(Arg::Number(default)),
            ([], None) => return Err(self.refusal("is missing")),
            ([value], _) => value,
            _ => return Err(self.refusal("is given more than once")),
        };
        match self.kind {
            Kind::Integer { min, max } => self.read_number(value, decimal_integer, min, max),
            Kind::LuaNumber { max } => self.read_number(value, lua_integer, 0, max.into()),
            Kind::Boolean => match value.trim() {
                yes if yes.eq_ignore_ascii_case("true") => Ok(Arg::Bool(true)),
                no if no.eq_ignore_ascii_case("false") => Ok(Arg::Bool(false)),
                _ => Err(self.refusal(&format!("is {}", quoted(value)))),
            },
            Kind::Name | Kind::Path if value.is_empty() => Err(self.refusal("is empty")),
            Kind::Path if value.contains('\0') => Err(self.refusal("holds a NUL")),
            Kind::Text | Kind::Name | Kind::Path => Ok(Arg::Text(value.clone().into_owned())),
            Kind::Button | Kind::Buttons => self.read_buttons(values),
        }
    }

    fn read_number(
        &self,
        value: &str,
        read: fn(&str) -> Option<i64>,
        min: i64,
        max: i64,
    ) -> Result<Arg, Failure> {
        let number =
            read(value).ok_or_else(|| self.refusal(&format!("is {}, not a whole number", quoted(value))))?;
        match (min..=max).contains(&number) {
            true => Ok(Arg::Number(number)),
            false => Err(self.refusal(&format!("is {}, out of range", quoted(value)))),
        }
    }

    fn read_buttons(&self, names: &[Cow<'_, str>]) -> Result<Arg, Failure> {
        let key = |name: &Cow<'_, str>| {
            name.parse::<Key>().map_err(|_| self.refusal(&format!("is {}, not a button", quoted(name))))
        };
        names.iter().map(key).collect::<Result<Keys, Failure>>().map(Arg::Keys)
    }

    fn refusal(&self, problem: &str) -> Failure {
        let Param { name, kind, .. } = self;
        Failure::bad_request(format!("parameter {name} {problem}: it takes {}", kind.accepts()))
    }
}

impl Kind {
    /// What it accepts, in words that follow "it takes".
    pub fn accepts(&self) -> String {
        match self {
            Kind::Integer { min, max } => format!("a whole number from {min} to {max}, in decimal"),
            Kind::LuaNumber { max } => {
                format!("a whole number from 0 to {max} (0x{max:X}), in decimal or in hex after 0x")
            }
            Kind::Boolean => "true or false".to_owned(),
            Kind::Text => "a text".to_owned(),
            Kind::Name => "a name".to_owned(),
            Kind::Path => "the path of a file on the emulator's machine".to_owned(),
            Kind::Button => format!("one of {}, spelled so", all_buttons()),
            Kind::Buttons => {
                format!(
                    "one of {}, spelled so, and is repeated for further ones (buttons=A&buttons=B)",
                    all_buttons()
                )
            }
        }
    }
}

fn all_buttons() -> String {
    Key::ALL.into_iter().collect::<Keys>().names(", ")
}

/// A caller's text, shortened and with control characters made visible.
fn quoted(text: &str) -> String {
    const LONGEST: usize = 60;
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{:?}…", &text[..end]),
        None => format!("{text:?}"),
    }
}
