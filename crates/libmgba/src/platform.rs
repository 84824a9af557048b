use std::fmt;

/// The kind of console that a game is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Platform {
    /// Game Boy Advance.
    Gba,
    /// Game Boy, Game Boy Color and Super Game Boy.
    Gb,
}

impl Platform {
    /// mGBA's own number for it, which `emu:platform()` returns in Lua.
    pub fn number(self) -> u32 {
        match self {
            Platform::Gba => 0,
            Platform::Gb => 1,
        }
    }

    pub(crate) fn other(self) -> Platform {
        match self {
            Platform::Gba => Platform::Gb,
            Platform::Gb => Platform::Gba,
        }
    }
}

impl fmt::Display for Platform {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Platform::Gba => "Game Boy Advance",
            Platform::Gb => "Game Boy",
        })
    }
}
