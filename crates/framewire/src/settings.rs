//! Settings of `serve`: the command line before the environment before a TOML file before what is usual.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, bail};
use framewire_http::Access;
use serde::Deserialize;

use crate::logging::Format;
use crate::text_or_number;

/// Where HTTP is served unless told otherwise; mGBA-http's, so that its users change nothing.
pub const USUAL_LISTEN: &str = "127.0.0.1:5000";
/// Name of the settings file that is read from the working folder.
const USUAL_FILE: &str = "framewire.toml";

/// Settings that may come from the command line, the environment or a file. `None` is not set.
#[derive(Debug, Default, Clone, clap::Args, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Settings {
    /// Run this Game Boy Advance or Game Boy ROM in an embedded core
    #[arg(long, value_name = "FILE", env = "FRAMEWIRE_ROM", conflicts_with = "attach")]
    pub rom: Option<PathBuf>,
    /// Attach to the mGBA whose script listens there [usual: 127.0.0.1:8888 if a script answers there]
    #[arg(long, value_name = "HOST:PORT", env = "FRAMEWIRE_ATTACH")]
    pub attach: Option<String>,
    /// Serve HTTP at this address; port 0 takes a free one [usual: 127.0.0.1:5000]
    #[arg(long, value_name = "ADDR:PORT", env = "FRAMEWIRE_LISTEN")]
    pub listen: Option<String>,
    /// Speed of the embedded core: so many times the console's 59.7275 frames/s, or `unlimited` [usual: 1]
    #[arg(long, value_name = "N|unlimited", env = "FRAMEWIRE_SPEED")]
    #[serde(deserialize_with = "text_or_number::deserialize")]
    pub speed: Option<SpeedSetting>,
    /// Load this Lua script into the embedded core; may be given several times
    #[arg(long, value_name = "FILE", env = "FRAMEWIRE_LUA", value_delimiter = ',')]
    pub lua: Vec<PathBuf>,
    /// Offer the embedded core to programs on this machine through the shared-memory channel NAME too (Linux)
    #[arg(long, value_name = "NAME", env = "FRAMEWIRE_CHANNEL", conflicts_with = "attach")]
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
    /// Log warnings and errors only
    #[arg(short, long, env = "FRAMEWIRE_QUIET")]
    pub quiet: bool,
    /// Form of the log
    #[arg(long, value_enum, env = "FRAMEWIRE_LOG_FORMAT")]
    pub log_format: Option<Format>,
}

impl Settings {
    /// These settings, and those of `other` where these are not set.
    fn or(self, other: Settings) -> Settings {
        // A choice of emulator is one setting: one made nearer to the user hides one made farther away.
        let (rom, attach) = match (self.rom, self.attach) {
            (None, None) => (other.rom, other.attach),
            chosen => chosen,
        };
        Settings {
            rom,
            attach,
            listen: self.listen.or(other.listen),
            speed: self.speed.or(other.speed),
            lua: if self.lua.is_empty() { other.lua } else { self.lua },
            channel: self.channel.or(other.channel),
            deadline: self.deadline.or(other.deadline),
            allow_origin: if self.allow_origin.is_empty() { other.allow_origin } else { self.allow_origin },
            allow_host: if self.allow_host.is_empty() { other.allow_host } else { self.allow_host },
            quiet: self.quiet || other.quiet,
            log_format: self.log_format.or(other.log_format),
        }
    }

    /// Adds the settings of `file`, or of `framewire.toml` in the working folder if there is one.
    ///
    /// # Errors
    /// If the file was named and cannot be read, or holds something else than settings.
    pub fn with_file(self, file: Option<&Path>) -> anyhow::Result<Settings> {
        let path = file.unwrap_or(Path::new(USUAL_FILE));
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if file.is_none() && error.kind() == std::io::ErrorKind::NotFound => return Ok(self),
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let settings: Settings =
            toml::from_str(&text).with_context(|| format!("{} holds something wrong", path.display()))?;
        if settings.rom.is_some() && settings.attach.is_some() {
            bail!("{} sets both rom and attach; take one of them out", path.display());
        }
        Ok(self.or(settings))
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

    /// Which web pages may drive the emulator.
    ///
    /// # Errors
    /// If an origin or a name is none.
    pub fn access(&self) -> anyhow::Result<Access> {
        let mut access = Access::default();
        for origin in &self.allow_origin {
            access.allow_origin(origin).context("--allow-origin")?;
        }
        for name in &self.allow_host {
            access.allow_host(name).context("--allow-host")?;
        }
        Ok(access)
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

    fn from_toml(text: &str) -> anyhow::Result<Settings> {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(&file, text)?;
        Settings::default().with_file(Some(file.path()))
    }

    #[test]
    fn a_file_sets_what_the_command_line_does_not() -> anyhow::Result<()> {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(&file, "attach = \"desk:8888\"\nspeed = 2\nlisten = \"127.0.0.1:1\"\nquiet = true")?;
        let given = Settings {
            rom: Some("game.gba".into()),
            listen: Some("127.0.0.1:2".into()),
            ..Default::default()
        };
        let settings = given.with_file(Some(file.path()))?;
        assert_eq!(settings.listen()?.port(), 2);
        assert_eq!(settings.speed, Some(SpeedSetting::Times(2.0)));
        assert_eq!((settings.rom, settings.attach), (Some("game.gba".into()), None));
        assert!(settings.quiet);
        Ok(())
    }

    #[test]
    fn wrong_files_say_what_is_wrong() {
        for (text, says) in [
            ("rom = \"a\"\nattach = \"b\"", "both"),
            ("rmo = \"a\"", "rmo"),
            ("speed = 0", "0.01 to 1000"),
            ("speed = \"fast\"", "unlimited"),
            ("deadline = \"-1\"", "3600"),
            ("allow-origin = \"http://localhost\"", "sequence"),
        ] {
            let error = format!("{:#}", from_toml(text).expect_err(text));
            assert!(error.contains(says), "{text}: {error}");
        }
        let missing = Settings::default().with_file(Some(Path::new("no such file")));
        assert!(missing.is_err());
    }

    #[test]
    fn pages_and_names_are_checked() -> anyhow::Result<()> {
        let settings =
            from_toml("allow-origin = [\"http://localhost:3000\", \"null\"]\nallow-host = [\"desk\"]")?;
        settings.access()?;
        for text in ["allow-origin = [\"localhost:3000\"]", "allow-host = [\"desk:5000\"]"] {
            assert!(from_toml(text)?.access().is_err(), "{text}");
        }
        Ok(())
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
