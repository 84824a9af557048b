use std::fmt;

use crate::memory_map::Rom;

/// A game, as an emulator reports it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Game {
    /// Its title; empty if it has none.
    pub title: String,
    /// Its code, which may begin with the console, as in `AGB-XFWE`; empty if it has none.
    pub code: String,
    /// The CRC-32 of its ROM.
    pub checksum: u32,
}

impl Game {
    /// Whether only the checksum distinguishes this game from others.
    pub(crate) fn is_nameless(&self) -> bool {
        self.title.is_empty() && self.code.is_empty()
    }
}

impl fmt::Display for Game {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let title = if self.title.is_empty() { "a game without a title" } else { &self.title };
        write!(f, "{title} (checksum {:08x})", self.checksum)
    }
}

/// Which game a symbol file belongs to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Owner {
    /// The first game that the emulator will report. No game has been reported yet.
    First,
    /// The game that the emulator was running when the file was first used.
    Reported(Game),
    /// The game that the file itself names.
    Named(Rom),
}

impl Owner {
    /// Whether `game` is the owner.
    pub(crate) fn is(&self, game: &Game) -> bool {
        match self {
            Owner::First => false,
            Owner::Reported(own) => {
                let same_names = own.title == game.title && own.code == game.code;
                own.checksum == game.checksum || same_names && !own.is_nameless()
            }
            Owner::Named(rom) => {
                // mGBA 0.10 puts the console before the code.
                let code = game.code.split_once('-').map_or(&*game.code, |(_, code)| code);
                let is =
                    |named: &Option<String>, text: &str| named.as_deref().is_none_or(|named| named == text);
                is(&rom.title, &game.title)
                    && (is(&rom.code, code) || is(&rom.code, &game.code))
                    && rom.checksum.is_none_or(|checksum| checksum == game.checksum)
            }
        }
    }
}

impl fmt::Display for Owner {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Owner::First => f.write_str("none yet"),
            Owner::Reported(game) => game.fmt(f),
            Owner::Named(Rom { title, code, checksum }) => {
                let title = title.as_deref().or(code.as_deref());
                f.write_str(title.unwrap_or("a game without a name"))?;
                checksum.map_or(Ok(()), |checksum| write!(f, " (checksum {checksum:08x})"))
            }
        }
    }
}
