//! The settings of `serve`, which `doctor` and `mcp` use too.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context;
use clap::ArgAction;
use directories::ProjectDirs;
use serde::{Deserialize, Deserializer};

use framewire_emulator::history::DEFAULT_HISTORY;
use framewire_emulator::{Clock, SetSpeed};

use crate::logging::Format;
use crate::requested::EmulatorOption;

/// The default address for HTTP. It is mGBA-http's address, so programs written for mGBA-http work unchanged.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:5000";

/// The help of `--gb-palette`. `framewire replay` has this option, too.
pub const GB_PALETTE_HELP: &str = "The four colours for a Game Boy that has only shades of grey, from white to black, \
                                   such as e0f8d0,88c070,346856,081820";
/// The help of `--no-sgb-borders`. `framewire replay` has this option, too.
pub const NO_SGB_BORDERS_HELP: &str = "Leave out the border in pictures of a Super Game Boy";

/// Settings from the command line, the environment or a file. `None` means not set.
#[derive(Debug, Default, Clone, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Settings {
    /// Run this Game Boy Advance or Game Boy ROM in an embedded core; can be repeated and mixed with --attach; NAME is
    /// for ?emulator=NAME (in the variable: separated by commas)
    #[arg(long, value_name = "[NAME=]FILE", env = "FRAMEWIRE_ROM")]
    #[serde(deserialize_with = "one_or_many")]
    pub rom: Vec<PathBuf>,
    /// Attach to the mGBA window whose script listens at this address; can be repeated and mixed with --rom (in the
    /// variable: separated by commas) [default: 127.0.0.1:8888 if a script answers there]
    #[arg(long, value_name = "[NAME=]HOST:PORT", env = "FRAMEWIRE_ATTACH")]
    #[serde(deserialize_with = "one_or_many")]
    pub attach: Vec<String>,
    /// The order in which the command line names emulators; the first is the default one.
    #[arg(skip)]
    #[serde(skip)]
    pub order: Vec<EmulatorOption>,
    /// Whether embedded cores begin paused. No option sets this; `framewire mcp` does.
    #[arg(skip)]
    #[serde(skip)]
    pub paused: bool,
    /// Read names of addresses from this .sym, .map or .toml file, or a character table from this .tbl file, for
    /// the emulator NAME or for all; can be repeated (in the variable: separated by commas)
    #[arg(long, value_name = "[NAME=]FILE", env = "FRAMEWIRE_SYMBOLS")]
    #[serde(deserialize_with = "one_or_many")]
    pub symbols: Vec<PathBuf>,
    /// Serve HTTP at this address; port 0 takes a free port [default: 127.0.0.1:5000]
    #[arg(long, value_name = "ADDR:PORT", env = "FRAMEWIRE_LISTEN")]
    pub listen: Option<String>,
    /// Apply this IPS, UPS or BPS patch to the ROM of the emulator NAME or of all; `none` applies no patch; can be
    /// repeated (in the variable: separated by commas) [default: a patch next to the ROM with its name and the ending
    /// .ups, .ips or .bps]
    #[arg(long, value_name = "[NAME=]FILE|none", env = "FRAMEWIRE_PATCH")]
    #[serde(deserialize_with = "one_or_many")]
    pub patch: Vec<PathBuf>,
    /// Load the cheats of this file, as mGBA writes them, for the emulator NAME or for all; can be repeated (in the
    /// variable: separated by commas)
    #[arg(long, value_name = "[NAME=]FILE", env = "FRAMEWIRE_CHEATS")]
    #[serde(deserialize_with = "one_or_many")]
    pub cheats: Vec<PathBuf>,
    /// Keep the battery save of the emulator NAME, or of the only one, in this file; can be repeated (in the variable:
    /// separated by commas) [default: next to the ROM, with the ending .sav]
    #[arg(long, value_name = "[NAME=]FILE", env = "FRAMEWIRE_SAVE")]
    #[serde(deserialize_with = "one_or_many")]
    pub save: Vec<PathBuf>,
    /// The save memory of the Game Boy Advance game of the emulator NAME or of all: auto, none, sram, sram512,
    /// flash512, flash1m, eeprom or eeprom512; can be repeated (in the variable: separated by commas) [default: auto]
    #[arg(long, value_name = "[NAME=]TYPE", env = "FRAMEWIRE_SAVE_TYPE")]
    #[serde(deserialize_with = "one_or_many")]
    pub save_type: Vec<String>,
    /// Start the embedded core with the BIOS in this file; the console then shows its intro first [default: a
    /// replacement that starts the game at once]
    #[arg(long, value_name = "FILE", env = "FRAMEWIRE_BIOS")]
    pub bios: Option<PathBuf>,
    /// The model of a Game Boy: dmg, mgb, sgb, sgb2, cgb or agb [default: depends on the ROM]
    #[arg(long, value_name = "MODEL", env = "FRAMEWIRE_GB_MODEL")]
    pub gb_model: Option<String>,
    #[arg(long, value_name = "COLORS", env = "FRAMEWIRE_GB_PALETTE", help = GB_PALETTE_HELP)]
    pub gb_palette: Option<String>,
    #[arg(long, env = "FRAMEWIRE_NO_SGB_BORDERS", action = ArgAction::SetTrue, help = NO_SGB_BORDERS_HELP)]
    pub no_sgb_borders: Option<bool>,
    /// Speed of the embedded core: a multiple of the console's 59.7275 frames/s, or `unlimited` [default: 1]
    #[arg(long, value_name = "N|unlimited", env = "FRAMEWIRE_SPEED")]
    #[serde(deserialize_with = "text_or_number")]
    pub speed: Option<SetSpeed>,
    /// What drives the clock of a cartridge in the embedded core: `wall` (this machine's clock), `frames` (it starts
    /// at the present time and advances with the frames), or a time at which it starts, such as
    /// 2026-01-31T12:00:00+01:00, also advancing with the frames [default: wall]
    #[arg(long, value_name = "wall|frames|TIME", env = "FRAMEWIRE_CLOCK")]
    #[serde(deserialize_with = "text_or_number")]
    pub clock: Option<Clock>,
    /// Memory for the history of each emulator, to which `POST /v1/rewind` goes back: a number of bytes, with k, M or
    /// G for KiB, MiB or GiB; 0 keeps none [default: 32M]
    #[arg(long, value_name = "SIZE", env = "FRAMEWIRE_HISTORY")]
    #[serde(deserialize_with = "text_or_number")]
    pub history: Option<Size>,
    /// Load this Lua script into the embedded core; can be repeated (in the variable: separated by commas)
    #[arg(long, value_name = "FILE", env = "FRAMEWIRE_LUA")]
    #[serde(deserialize_with = "one_or_many")]
    pub lua: Vec<PathBuf>,
    /// Also offer the embedded core to a program on this machine through the shared-memory channel NAME (Linux)
    #[arg(long, value_name = "NAME", env = "FRAMEWIRE_CHANNEL")]
    pub channel: Option<String>,
    /// Seconds that a request waits for the emulator before it fails [default: 3]
    #[arg(long, value_name = "SECONDS", env = "FRAMEWIRE_DEADLINE")]
    #[serde(deserialize_with = "text_or_number")]
    pub deadline: Option<Seconds>,
    /// Let web pages of this origin, such as http://localhost:3000, null or *, use the emulator [default: none]
    #[arg(long, value_name = "ORIGIN", env = "FRAMEWIRE_ALLOW_ORIGIN", value_delimiter = ',')]
    #[serde(deserialize_with = "one_or_many")]
    pub allow_origin: Vec<String>,
    /// Accept this host name in requests, or any with *, in addition to IP addresses and localhost [default: none]
    #[arg(long, value_name = "NAME", env = "FRAMEWIRE_ALLOW_HOST", value_delimiter = ',')]
    #[serde(deserialize_with = "one_or_many")]
    pub allow_host: Vec<String>,
    /// Require the token in this file from every client; `framewire token FILE` creates one. Clients on other machines
    /// always need a token
    #[arg(long, value_name = "FILE", env = "FRAMEWIRE_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// Let clients with the token in this file read, but change nothing
    #[arg(long, value_name = "FILE", env = "FRAMEWIRE_READ_TOKEN_FILE")]
    pub read_token_file: Option<PathBuf>,
    /// Serve HTTPS with the certificate chain in this PEM file; the server's own certificate comes first
    #[arg(long, value_name = "FILE", env = "FRAMEWIRE_TLS_CERT")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's private key, a PEM file
    #[arg(long, value_name = "FILE", env = "FRAMEWIRE_TLS_KEY")]
    pub tls_key: Option<PathBuf>,
    /// Let clients name only files in this folder [default: any file for clients on this machine, none for others]
    #[arg(long, value_name = "DIR", env = "FRAMEWIRE_FILES")]
    pub files: Option<PathBuf>,
    /// Let clients run Lua code in the emulator (`POST /v1/script`), with all rights of the emulator's process,
    /// including access to files outside of --files. A read-only token is not enough. An mGBA window needs
    /// `allow_script` in its script too
    #[arg(long, env = "FRAMEWIRE_ALLOW_SCRIPT", action = ArgAction::SetTrue)]
    pub allow_script: Option<bool>,
    /// Keep snapshots and recordings in this folder [default: the user's data folder]
    #[arg(long, value_name = "DIR", env = "FRAMEWIRE_DATA")]
    pub data: Option<PathBuf>,
    /// Send each request as a span to the OpenTelemetry collector at this URL, such as http://127.0.0.1:4318; needs a
    /// build with the feature `otlp`
    #[arg(long, value_name = "URL", env = "FRAMEWIRE_OTLP")]
    pub otlp: Option<String>,
    /// Log warnings and errors only
    #[arg(short, long, env = "FRAMEWIRE_QUIET", action = ArgAction::SetTrue)]
    pub quiet: Option<bool>,
    /// Format of the log
    #[arg(long, value_enum, env = "FRAMEWIRE_LOG_FORMAT")]
    pub log_format: Option<Format>,
}

impl Settings {
    /// The name of a setting that needs an embedded core, if one is set.
    pub fn embedded_setting(&self) -> Option<&'static str> {
        if self.rom.is_empty() { self.embedded_core_setting() } else { Some("rom") }
    }

    /// The name of a setting other than `rom` that is for embedded cores, if one is set.
    pub fn embedded_core_setting(&self) -> Option<&'static str> {
        let set = [
            ("patch", !self.patch.is_empty()),
            ("cheats", !self.cheats.is_empty()),
            ("save", !self.save.is_empty()),
            ("save-type", !self.save_type.is_empty()),
            ("bios", self.bios.is_some()),
            ("gb-model", self.gb_model.is_some()),
            ("gb-palette", self.gb_palette.is_some()),
            ("no-sgb-borders", self.no_sgb_borders == Some(true)),
            ("speed", self.speed.is_some()),
            ("clock", self.clock.is_some()),
            ("lua", !self.lua.is_empty()),
            ("channel", self.channel.is_some()),
        ];
        set.into_iter().find(|(_, set)| *set).map(|(name, _)| name)
    }

    /// The address to listen on.
    ///
    /// # Errors
    /// If it is not of the form `ADDR:PORT`.
    pub fn listen(&self) -> anyhow::Result<SocketAddr> {
        let text = self.listen.as_deref().unwrap_or(DEFAULT_LISTEN);
        let text = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
        text.replace("localhost", "127.0.0.1").parse().with_context(|| {
            format!("--listen {text}: not an address and port; write it like {DEFAULT_LISTEN} or [::1]:5000")
        })
    }

    /// The folder for snapshots and recordings: the one that is set, or else the user's data folder, such as
    /// `~/.local/share/framewire`. `None` if no folder is set and the user's data folder is not known.
    pub fn data(&self) -> Option<PathBuf> {
        let default = || Some(ProjectDirs::from("", "", "framewire")?.data_dir().to_owned());
        self.data.clone().or_else(default)
    }

    /// Bytes of memory for the history of each emulator.
    pub fn history(&self) -> usize {
        self.history.map_or(DEFAULT_HISTORY, |size| size.0)
    }

    /// How long a request waits for the emulator before it fails.
    pub fn deadline(&self) -> Duration {
        self.deadline.map_or(Duration::from_secs(3), |seconds| seconds.0)
    }
}

/// Reads an entry of a settings file that is a list, or one value without brackets.
fn one_or_many<'de, D: Deserializer<'de>, T: Deserialize<'de>>(deserializer: D) -> Result<Vec<T>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "the type is wrong; use a string, or a list of strings")]
    enum OneOrMany<T> {
        One(T),
        Many(Vec<T>),
    }
    Ok(match OneOrMany::deserialize(deserializer)? {
        OneOrMany::One(one) => vec![one],
        OneOrMany::Many(many) => many,
    })
}

/// Reads an entry of a settings file that is a text or a number, and parses it as on the command line.
fn text_or_number<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: FromStr<Err: Display>,
{
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "the type is wrong; use a string or a number")]
    enum TextOrNumber {
        Text(String),
        Whole(i64),
        Real(f64),
    }
    let text = match TextOrNumber::deserialize(deserializer)? {
        TextOrNumber::Text(text) => text,
        TextOrNumber::Whole(number) => number.to_string(),
        TextOrNumber::Real(number) => number.to_string(),
    };
    text.parse().map(Some).map_err(serde::de::Error::custom)
}

/// A time span, as users write it: seconds, possibly with a fraction.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seconds(pub Duration);

impl FromStr for Seconds {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.trim_end_matches('s').parse() {
            Ok(seconds) if (0.01..=3600.0).contains(&seconds) => {
                Ok(Seconds(Duration::from_secs_f64(seconds)))
            }
            _ => Err("a time is a number of seconds from 0.01 to 3600".to_owned()),
        }
    }
}

/// The largest [`Size`], in bytes.
const MAX_SIZE: usize = 64 << 30;

/// An amount of memory in bytes, as users write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Size(pub usize);

impl FromStr for Size {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let lower = text.to_ascii_lowercase();
        let lower = lower.trim_end_matches('b').trim_end_matches('i');
        let (digits, shift) = match lower.strip_suffix(['k', 'm', 'g']) {
            Some(digits) if lower.ends_with('k') => (digits, 10),
            Some(digits) if lower.ends_with('m') => (digits, 20),
            Some(digits) => (digits, 30),
            None => (lower, 0),
        };
        let bytes = digits.trim().parse::<u64>().ok().and_then(|number| number.checked_mul(1 << shift));
        match bytes.and_then(|bytes| usize::try_from(bytes).ok()) {
            Some(bytes) if bytes <= MAX_SIZE => Ok(Size(bytes)),
            _ => Err("a size is a number of bytes up to 64G, such as 0, 500k or 32M".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_read_as_people_write_them() {
        for (text, bytes) in [
            ("0", 0),
            ("4096", 4096),
            ("500k", 500 << 10),
            ("32M", 32 << 20),
            ("64 MiB", 64 << 20),
            ("2GB", 2 << 30),
        ] {
            assert_eq!(text.parse(), Ok(Size(bytes)), "{text}");
        }
        for text in ["", "M", "-1", "1.5M", "65G", "99999999999999999999", "32X"] {
            assert!(text.parse::<Size>().is_err(), "{text}");
        }
    }

    #[test]
    fn addresses_are_read_as_people_write_them() {
        for (text, port) in [("127.0.0.1:80", 80), ("http://localhost:5001/", 5001), ("[::1]:0", 0)] {
            let settings = Settings { listen: Some(text.into()), ..Default::default() };
            assert_eq!(settings.listen().expect(text).port(), port);
        }
        let settings = Settings { listen: Some("5000".into()), ..Default::default() };
        assert!(settings.listen().is_err());
    }
}
