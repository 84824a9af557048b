//! The settings of `serve`.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use anyhow::Context;
use directories::ProjectDirs;
use serde::Deserialize;

use framewire_emulator::Clock;

use crate::logging::Format;
use crate::wanted::EmulatorKind;
use crate::{one_or_many, text_or_number};

/// Where HTTP is served unless told otherwise; mGBA-http's, so that its users change nothing.
pub const USUAL_LISTEN: &str = "127.0.0.1:5000";

/// Settings that may come from the command line, the environment or a file. `None` is not set.
#[derive(Debug, Default, Clone, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Settings {
    /// Run this Game Boy Advance or Game Boy ROM in an embedded core; may be given several times, beside --attach too, with
    /// names for ?emulator=NAME (in the variable: separated by commas)
    #[arg(long, value_name = "[NAME=]FILE", env = "FRAMEWIRE_ROM")]
    #[serde(deserialize_with = "one_or_many::deserialize")]
    pub rom: Vec<PathBuf>,
    /// Attach to the mGBA whose script listens there; may be given several times, likewise [usual: 127.0.0.1:8888 if a
    /// script answers there]
    #[arg(long, value_name = "[NAME=]HOST:PORT", env = "FRAMEWIRE_ATTACH")]
    #[serde(deserialize_with = "one_or_many::deserialize")]
    pub attach: Vec<String>,
    /// In which order emulators are named, where that is known: the first is the usual one.
    #[arg(skip)]
    #[serde(skip)]
    pub order: Vec<EmulatorKind>,
    /// Take names for addresses from this .sym, .map or .toml file, for the emulator NAME or for all; may be given several
    /// times (in the variable: separated by commas)
    #[arg(long, value_name = "[NAME=]FILE", env = "FRAMEWIRE_SYMBOLS", value_delimiter = ',')]
    #[serde(deserialize_with = "one_or_many::deserialize")]
    pub symbols: Vec<PathBuf>,
    /// Serve HTTP at this address; port 0 takes a free one [usual: 127.0.0.1:5000]
    #[arg(long, value_name = "ADDR:PORT", env = "FRAMEWIRE_LISTEN")]
    pub listen: Option<String>,
    /// Speed of the embedded core: so many times the console's 59.7275 frames/s, or `unlimited` [usual: 1]
    #[arg(long, value_name = "N|unlimited", env = "FRAMEWIRE_SPEED")]
    #[serde(deserialize_with = "text_or_number::deserialize")]
    pub speed: Option<SpeedSetting>,
    /// What the clock of a cartridge goes by in the embedded core: `wall` (this machine's clock), `frames` (it starts with
    /// the time now and advances with the frames), or a time to start with and advance with the frames, such as
    /// 2026-01-31T12:00:00+01:00 [usual: wall]
    #[arg(long, value_name = "wall|frames|TIME", env = "FRAMEWIRE_CLOCK")]
    #[serde(deserialize_with = "text_or_number::deserialize")]
    pub clock: Option<Clock>,
    /// Load this Lua script into the embedded core; may be given several times (in the variable: separated by commas)
    #[arg(long, value_name = "FILE", env = "FRAMEWIRE_LUA")]
    pub lua: Vec<PathBuf>,
    /// Offer the embedded core to programs on this machine through the shared-memory channel NAME too (Linux)
    #[arg(long, value_name = "NAME", env = "FRAMEWIRE_CHANNEL")]
    pub channel: Option<String>,
    /// Seconds after which a request that the emulator did not answer fails [usual: 3]
    #[arg(long, value_name = "SECONDS", env = "FRAMEWIRE_DEADLINE")]
    #[serde(deserialize_with = "text_or_number::deserialize")]
    pub deadline: Option<Seconds>,
    /// Let web pages of this origin drive the emulator, such as http://localhost:3000, null or * [usual: none]
    #[arg(long, value_name = "ORIGIN", env = "FRAMEWIRE_ALLOW_ORIGIN", value_delimiter = ',')]
    pub allow_origin: Vec<String>,
    /// Answer to this host name too, or to any for *, beside IP addresses and localhost [usual: none]
    #[arg(long, value_name = "NAME", env = "FRAMEWIRE_ALLOW_HOST", value_delimiter = ',')]
    pub allow_host: Vec<String>,
    /// Ask every caller for the token in this file, which `framewire token FILE` makes; other machines are let in only
    /// with one
    #[arg(long, value_name = "FILE", env = "FRAMEWIRE_TOKEN_FILE")]
    pub token_file: Option<PathBuf>,
    /// Let callers with the token in this file look, and change nothing
    #[arg(long, value_name = "FILE", env = "FRAMEWIRE_READ_TOKEN_FILE")]
    pub read_token_file: Option<PathBuf>,
    /// Serve HTTPS with the certificate in this PEM file, the chain behind it
    #[arg(long, value_name = "FILE", env = "FRAMEWIRE_TLS_CERT")]
    pub tls_cert: Option<PathBuf>,
    /// The certificate's private key, a PEM file
    #[arg(long, value_name = "FILE", env = "FRAMEWIRE_TLS_KEY")]
    pub tls_key: Option<PathBuf>,
    /// Let callers name files in this folder only [usual: callers on this machine any file, others none]
    #[arg(long, value_name = "DIR", env = "FRAMEWIRE_FILES")]
    pub files: Option<PathBuf>,
    /// Keep snapshots and recordings in this folder [usual: the user's folder for data of programs]
    #[arg(long, value_name = "DIR", env = "FRAMEWIRE_DATA")]
    pub data: Option<PathBuf>,
    /// Send each request as a span to the OpenTelemetry collector there, such as http://127.0.0.1:4318; needs a build with
    /// the feature `otlp`
    #[arg(long, value_name = "URL", env = "FRAMEWIRE_OTLP")]
    pub otlp: Option<String>,
    /// Log warnings and errors only
    #[arg(short, long, env = "FRAMEWIRE_QUIET")]
    pub quiet: bool,
    /// Form of the log
    #[arg(long, value_enum, env = "FRAMEWIRE_LOG_FORMAT")]
    pub log_format: Option<Format>,
}

impl Settings {
    /// The name of a setting among these that asks for an embedded core.
    pub fn embedded(&self) -> Option<&'static str> {
        if self.rom.is_empty() { self.about_embedded() } else { Some("rom") }
    }

    /// The name of a setting among these that is about embedded cores and names none.
    pub fn about_embedded(&self) -> Option<&'static str> {
        let set = [
            ("speed", self.speed.is_some()),
            ("clock", self.clock.is_some()),
            ("lua", !self.lua.is_empty()),
            ("channel", self.channel.is_some()),
        ];
        set.into_iter().find_map(|(name, set)| set.then_some(name))
    }

    /// The address to listen at.
    ///
    /// # Errors
    /// If it is not of the form `ADDR:PORT`.
    pub fn listen(&self) -> anyhow::Result<SocketAddr> {
        let text = self.listen.as_deref().unwrap_or(USUAL_LISTEN);
        let text = text.strip_prefix("http://").unwrap_or(text).trim_end_matches('/');
        text.replace("localhost", "127.0.0.1").parse().with_context(|| {
            format!("--listen {text}: not an address and port; write it like {USUAL_LISTEN} or [::1]:5000")
        })
    }

    /// The folder for snapshots and recordings: the one that is set, or else where the system keeps a user's data of
    /// programs, such as `~/.local/share/framewire`. `None` if there is no such place.
    pub fn data(&self) -> Option<PathBuf> {
        let usual = || Some(ProjectDirs::from("", "", "framewire")?.data_dir().to_owned());
        self.data.clone().or_else(usual)
    }

    /// How long the emulator has for a request.
    pub fn deadline(&self) -> Duration {
        self.deadline.map_or(Duration::from_secs(3), |seconds| seconds.0)
    }
}

/// A speed as users write it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SpeedSetting {
    /// So many times the console's rate.
    Times(f64),
    /// As fast as the processor allows.
    Unlimited,
}

impl FromStr for SpeedSetting {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text.eq_ignore_ascii_case("unlimited") {
            return Ok(SpeedSetting::Unlimited);
        }
        match text.trim_end_matches(['x', 'X']).parse() {
            Ok(times) if (0.01..=1000.0).contains(&times) => Ok(SpeedSetting::Times(times)),
            _ => Err("a speed is a number from 0.01 to 1000, or unlimited".to_owned()),
        }
    }
}

/// A time span as users write it: seconds, with a fraction if need be.
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

#[cfg(test)]
mod tests {
    use super::*;

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
