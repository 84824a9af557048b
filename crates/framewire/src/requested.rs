//! The emulators that the settings request, and their names.

use std::path::{Path, PathBuf};

use anyhow::bail;
use framewire_http::is_emulator_name;

use crate::choose::with_port;
use crate::settings::Settings;

/// The option that requests an emulator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EmulatorOption {
    /// `--attach`.
    Attach,
    /// `--rom`.
    Rom,
}

/// An emulator that the settings request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Requested {
    /// Its name, for `?emulator=`.
    pub name: String,
    /// The mGBA to attach to, or the ROM to run.
    pub source: Source,
}

/// The mGBA to attach to, or the ROM to run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A stock mGBA whose script listens at `HOST:PORT`.
    Attach(String),
    /// This ROM in an embedded core.
    Rom(PathBuf),
    /// The built-in game in an embedded core.
    Demo,
}

impl Settings {
    /// The emulators that these settings name, in the order of the command line. If the environment or a file names
    /// them, those of `attach` come before those of `rom`. If no setting names an emulator, but a setting configures
    /// an embedded core, the list contains only the demo game. If no setting does either, the list is empty.
    ///
    /// # Errors
    /// If two emulators have the same name, or an address has no host or no valid port.
    pub fn requested(&self) -> anyhow::Result<Vec<Requested>> {
        if self.rom.is_empty() && self.attach.is_empty() {
            let demo = Requested { name: "demo".to_owned(), source: Source::Demo };
            return Ok(self.embedded_core_setting().map(|_| demo).into_iter().collect());
        }
        let (mut attach, mut rom) = (self.attach.iter(), self.rom.iter());
        let mut given = Vec::with_capacity(self.attach.len() + self.rom.len());
        for option in &self.order {
            match option {
                EmulatorOption::Attach => {
                    given.extend(attach.next().map(|text| read_attach(text)).transpose()?);
                }
                EmulatorOption::Rom => given.extend(rom.next().map(|path| read_rom(path))),
            }
        }
        for text in attach {
            given.push(read_attach(text)?);
        }
        given.extend(rom.map(|path| read_rom(path)));
        let mut all: Vec<Requested> = Vec::with_capacity(given.len());
        for (index, (name, _)) in given.iter().enumerate() {
            if let Some(name) = name
                && given[..index].iter().any(|(earlier, _)| earlier.as_ref() == Some(name))
            {
                bail!(
                    "two emulators have the name {name}; give each a different name, such as --rom {name}2=FILE"
                );
            }
        }
        for (index, (name, source)) in given.iter().enumerate() {
            let taken = |name: &str| {
                let later = given[index..].iter().any(|(other, _)| other.as_deref() == Some(name));
                later || all.iter().any(|requested| requested.name == name)
            };
            let name = name.clone().unwrap_or_else(|| free(default_name(source), taken));
            all.push(Requested { name, source: source.clone() });
        }
        Ok(all)
    }
}

fn read_attach(text: &str) -> anyhow::Result<(Option<String>, Source)> {
    let (name, address) = named(text).map_or((None, text), |(name, address)| (Some(name), address));
    Ok((name.map(str::to_owned), Source::Attach(with_port(address)?)))
}

fn read_rom(path: &Path) -> (Option<String>, Source) {
    let (name, path) = named_path(path);
    (name.map(str::to_owned), Source::Rom(path.to_owned()))
}

/// Splits `NAME=PATH` into the name of an emulator and a path. The name may be left out. A file whose own name has the
/// form `NAME=…` is written `./NAME=…`.
pub fn named_path(path: &Path) -> (Option<&str>, &Path) {
    match path.to_str().and_then(named) {
        Some((name, path)) => (Some(name), Path::new(path)),
        None => (None, path),
    }
}

/// The values of a setting that are for the emulator `name` or for all emulators.
pub fn values_for<'a>(all: &'a [impl AsRef<Path>], name: &str) -> Vec<&'a Path> {
    let named = all.iter().map(|setting| named_path(setting.as_ref()));
    named.filter(|(owner, _)| owner.is_none_or(|owner| owner == name)).map(|(_, value)| value).collect()
}

fn named(text: &str) -> Option<(&str, &str)> {
    text.split_once('=').filter(|(name, rest)| is_emulator_name(name) && !rest.is_empty())
}

/// The name of an emulator for which the settings give no name: the first 48 characters of its address, or of the name
/// of its file without the extension. A `-` replaces each character that a name cannot have; at the start and at the
/// end of the name, `-` is left out. If nothing remains, the name is `emulator`.
fn default_name(source: &Source) -> String {
    let text = match source {
        Source::Attach(address) => address.clone(),
        Source::Rom(path) => path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
        Source::Demo => "demo".to_owned(),
    };
    let fit = |char: char| if is_emulator_name(char.encode_utf8(&mut [0; 4])) { char } else { '-' };
    let name: String = text.chars().take(48).map(fit).collect();
    let name = name.trim_matches('-');
    if name.is_empty() { "emulator".to_owned() } else { name.to_owned() }
}

/// Returns the first of `name`, `name-2`, `name-3`, … that is not taken.
fn free(name: String, taken: impl Fn(&str) -> bool) -> String {
    let mut candidate = name.clone();
    let mut number = 1u32;
    while taken(&candidate) {
        number += 1;
        candidate = format!("{name}-{number}");
    }
    candidate
}

/// Checks that `names` contains the name of every emulator to which a value of the setting `option` refers.
pub fn check_names(option: &str, values: &[impl AsRef<Path>], names: &[&str]) -> anyhow::Result<()> {
    for value in values {
        let value = value.as_ref();
        if let (Some(name), _) = named_path(value)
            && !names.contains(&name)
        {
            let (value, names) = (value.display(), names.join(", "));
            bail!("{option} {value}: there is no emulator {name}; there are: {names}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(settings: &Settings) -> Vec<String> {
        settings.requested().unwrap().into_iter().map(|requested| requested.name).collect()
    }

    #[test]
    fn default_names_come_from_files_and_addresses() {
        let settings = Settings {
            rom: vec![
                "games/My Game!.gba".into(),
                "b=games/x.gba".into(),
                "dir/c=d.gba".into(),
                "other/x.gba".into(),
            ],
            attach: vec!["left=desk:9000".into(), "desk".into(), "[::1]:8888".into()],
            ..Settings::default()
        };
        let expected = ["left", "desk:8888", "::1-:8888", "My-Game", "b", "c-d", "x"];
        assert_eq!(names(&settings), expected);
        let requested = settings.requested().unwrap();
        assert_eq!(requested[0].source, Source::Attach("desk:9000".into()));
        assert_eq!(requested[4].source, Source::Rom("games/x.gba".into()));
        assert_eq!(requested[5].source, Source::Rom("dir/c=d.gba".into()));
    }

    #[test]
    fn equal_default_names_get_numbers() {
        let rom = |names: &[&str]| Settings {
            rom: names.iter().map(PathBuf::from).collect(),
            ..Settings::default()
        };
        assert_eq!(names(&rom(&["x.gba", "x.gba", "x-2=y.gba", "=.gba"])), ["x", "x-3", "x-2", "emulator"]);
        assert!(
            rom(&["x=a.gba", "x=b.gba"]).requested().unwrap_err().to_string().contains("have the name x")
        );
    }

    #[test]
    fn emulators_have_the_order_of_the_command_line() {
        let settings = Settings {
            rom: vec!["a.gba".into(), "c.gba".into()],
            attach: vec!["b=desk".into()],
            order: vec![EmulatorOption::Rom, EmulatorOption::Attach, EmulatorOption::Rom],
            ..Settings::default()
        };
        assert_eq!(names(&settings), ["a", "b", "c"]);
        assert!(names(&Settings::default()).is_empty());
        let demo = Settings { channel: Some("x".into()), ..Settings::default() };
        assert_eq!(demo.requested().unwrap()[0].source, Source::Demo);
    }
}
