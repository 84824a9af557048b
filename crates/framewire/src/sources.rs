//! Merges settings from the command line, the environment and a TOML file, in this order of precedence.
//!
//! Several settings together choose the emulators. If one source chooses emulators, the choices of later sources are
//! ignored.

use std::mem::take;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use anyhow::{Context, bail};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{ArgMatches, Command, Error, FromArgMatches, Id};

use crate::requested::EmulatorOption;
use crate::settings::Settings;

/// The settings file in the working folder.
const DEFAULT_FILE: &str = "framewire.toml";

/// The path and the text of the settings file that was read.
static FILE: OnceLock<(PathBuf, String)> = OnceLock::new();

/// The path of the settings file that was read, if the file contains the setting `name`.
pub fn file_with(name: &str) -> Option<&'static Path> {
    let (path, text) = FILE.get()?;
    let settings: toml::Table = toml::from_str(text).ok()?;
    settings.contains_key(name).then_some(path.as_path())
}

/// The largest settings file that is accepted, in bytes.
const MAX_FILE: u64 = 1 << 20;

/// The argument for ROMs without `--rom`.
pub const GAMES: &str = "games";

/// The settings from the command line and from the environment, before they are merged.
#[derive(Debug, Default, Clone)]
pub struct RawSettings {
    /// The settings of the command line, and those of the environment that are not in `environment`.
    command_line: Settings,
    /// The settings of the environment that choose or configure an emulator.
    environment: Settings,
}

impl RawSettings {
    /// Merges all sources. The file is `file`, or `framewire.toml` in the working folder if there is one.
    ///
    /// # Errors
    /// If the environment or the file contradicts itself: it only attaches to mGBAs, but also sets something for
    /// embedded cores. If an earlier source chooses emulators, such a contradiction is ignored. Also if the file cannot
    /// be read, or contains anything but settings. Only `framewire.toml` may be missing.
    pub fn with_file(self, file: Option<&Path>) -> anyhow::Result<Settings> {
        let mut settings = self.command_line;
        if !settings.select_emulators()
            && let Some(other) = self.environment.conflicting_with_attach()
        {
            let other = other.replace('-', "_").to_uppercase();
            bail!("the environment sets both FRAMEWIRE_ATTACH and FRAMEWIRE_{other}; unset one of them");
        }
        settings = settings.or(self.environment);
        let path = file.unwrap_or(Path::new(DEFAULT_FILE));
        let text = match framewire_files::read_text(path, MAX_FILE) {
            Ok(text) => text,
            Err(error) if file.is_none() && error.kind() == std::io::ErrorKind::NotFound => {
                return Ok(settings);
            }
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        let fallback: Settings = toml::from_str(&text)
            .with_context(|| format!("{} is not a valid settings file", path.display()))?;
        let _ = FILE.set((path.to_owned(), text));
        if !settings.select_emulators()
            && let Some(other) = fallback.conflicting_with_attach()
        {
            bail!("{} sets both attach and {other}; take one of them out", path.display());
        }
        Ok(settings.or(fallback))
    }
}

impl FromArgMatches for RawSettings {
    fn from_arg_matches(matches: &ArgMatches) -> Result<RawSettings, Error> {
        let mut command_line = Settings::from_arg_matches(matches)?;
        forget_default(matches, "no_sgb_borders", &mut command_line.no_sgb_borders);
        forget_default(matches, "allow_script", &mut command_line.allow_script);
        forget_default(matches, "quiet", &mut command_line.quiet);
        // The source matters only for settings that choose or configure an emulator; clap merges the others.
        let paths = |id, values: &mut Vec<PathBuf>| {
            from_environment(matches, id, values).into_iter().flat_map(split).collect()
        };
        let texts = |id, values: &mut Vec<String>| {
            from_environment(matches, id, values)
                .iter()
                .flat_map(|text| parts(text))
                .map(str::to_owned)
                .collect()
        };
        let environment = Settings {
            rom: paths("rom", &mut command_line.rom),
            attach: texts("attach", &mut command_line.attach),
            symbols: paths("symbols", &mut command_line.symbols),
            patch: paths("patch", &mut command_line.patch),
            cheats: paths("cheats", &mut command_line.cheats),
            save: paths("save", &mut command_line.save),
            save_type: texts("save_type", &mut command_line.save_type),
            bios: from_environment(matches, "bios", &mut command_line.bios),
            gb_model: from_environment(matches, "gb_model", &mut command_line.gb_model),
            gb_palette: from_environment(matches, "gb_palette", &mut command_line.gb_palette),
            no_sgb_borders: from_environment(matches, "no_sgb_borders", &mut command_line.no_sgb_borders),
            speed: from_environment(matches, "speed", &mut command_line.speed),
            clock: from_environment(matches, "clock", &mut command_line.clock),
            lua: paths("lua", &mut command_line.lua),
            channel: from_environment(matches, "channel", &mut command_line.channel),
            ..Settings::default()
        };
        let roms = roms(matches, take(&mut command_line.rom));
        command_line.order = order(matches, &command_line.attach, &roms);
        command_line.rom = roms.into_iter().map(|(_, rom)| rom).collect();
        if let Some(other) = command_line.conflicting_with_attach() {
            let message = format!(
                "--attach cannot be used with --{other}, which is for an embedded core; take one of them out\n"
            );
            return Err(Error::raw(ErrorKind::ArgumentConflict, message));
        }
        Ok(RawSettings { command_line, environment })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), Error> {
        *self = RawSettings::from_arg_matches(matches)?;
        Ok(())
    }
}

/// Takes the value of a setting, if it comes from the environment.
fn from_environment<T: Default>(matches: &ArgMatches, id: &str, value: &mut T) -> T {
    if matches.value_source(id) == Some(ValueSource::EnvVariable) { take(value) } else { T::default() }
}

/// Removes the value of a flag that neither the command line nor the environment sets. Clap gives it the value false,
/// which would hide the value of the file.
fn forget_default(matches: &ArgMatches, id: &str, flag: &mut Option<bool>) {
    if matches.value_source(id) == Some(ValueSource::DefaultValue) {
        *flag = None;
    }
}

/// The ROMs of the command line with their positions: those of `--rom` and those without an option.
fn roms(matches: &ArgMatches, by_option: Vec<PathBuf>) -> Vec<(usize, PathBuf)> {
    let option = matches.indices_of("rom").into_iter().flatten();
    let mut all: Vec<(usize, PathBuf)> = option.zip(by_option).collect();
    // Not every command with settings has this argument.
    if let Ok(Some(alone)) = matches.try_get_many::<PathBuf>(GAMES) {
        let positions = matches.indices_of(GAMES).into_iter().flatten();
        all.extend(positions.zip(alone.cloned()));
    }
    all.sort_by_key(|(position, _)| *position);
    all
}

/// The order in which the command line names emulators.
fn order(matches: &ArgMatches, attach: &[String], roms: &[(usize, PathBuf)]) -> Vec<EmulatorOption> {
    // Values from the environment have positions too, but `attach` is then empty.
    let positions = matches.indices_of("attach").into_iter().flatten().take(attach.len());
    let mut all: Vec<_> = positions.map(|position| (position, EmulatorOption::Attach)).collect();
    all.extend(roms.iter().map(|(position, _)| (*position, EmulatorOption::Rom)));
    all.sort_by_key(|(position, _)| *position);
    all.into_iter().map(|(_, option)| option).collect()
}

impl clap::Args for RawSettings {
    fn group_id() -> Option<Id> {
        Settings::group_id()
    }

    fn augment_args(command: Command) -> Command {
        Settings::augment_args(command)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Settings::augment_args_for_update(command)
    }
}

/// The parts of an environment variable's value, which are separated by commas.
fn parts(value: &str) -> impl Iterator<Item = &str> {
    value.split(',').filter(|part| !part.is_empty())
}

/// Splits the value of an environment variable that contains paths.
fn split(paths: PathBuf) -> Vec<PathBuf> {
    match paths.to_str() {
        Some(text) => parts(text).map(PathBuf::from).collect(),
        None => vec![paths],
    }
}

impl Settings {
    /// Whether these settings name an emulator, or set something for embedded cores.
    fn select_emulators(&self) -> bool {
        !self.attach.is_empty() || self.embedded_setting().is_some()
    }

    /// The name of a setting for embedded cores, if these settings have one although they only attach to mGBAs.
    fn conflicting_with_attach(&self) -> Option<&'static str> {
        if self.attach.is_empty() || !self.rom.is_empty() { None } else { self.embedded_core_setting() }
    }

    /// These settings, completed with those of `fallback`.
    fn or(self, mut fallback: Settings) -> Settings {
        if !self.attach.is_empty() || !self.rom.is_empty() {
            // The fallback's settings for its game are dropped together with that game.
            fallback = Settings {
                attach: vec![],
                rom: vec![],
                order: vec![],
                symbols: vec![],
                patch: vec![],
                cheats: vec![],
                save: vec![],
                save_type: vec![],
                ..fallback
            };
            if self.rom.is_empty() {
                // Only mGBAs are attached, so the fallback's settings for embedded cores are dropped too.
                fallback = Settings {
                    bios: None,
                    gb_model: None,
                    gb_palette: None,
                    no_sgb_borders: None,
                    speed: None,
                    clock: None,
                    lua: vec![],
                    channel: None,
                    ..fallback
                };
            }
        } else if self.embedded_setting().is_some() && fallback.rom.is_empty() && !fallback.attach.is_empty()
        {
            // These settings configure an embedded core, and the fallback only attaches to mGBAs. The symbols of the
            // fallback belong to the games of these mGBAs.
            fallback = Settings { attach: vec![], symbols: vec![], ..fallback };
        }
        fn first<T>(set: Vec<T>, fallback: Vec<T>) -> Vec<T> {
            if set.is_empty() { fallback } else { set }
        }
        Settings {
            rom: first(self.rom, fallback.rom),
            attach: first(self.attach, fallback.attach),
            order: first(self.order, fallback.order),
            symbols: first(self.symbols, fallback.symbols),
            patch: first(self.patch, fallback.patch),
            cheats: first(self.cheats, fallback.cheats),
            save: first(self.save, fallback.save),
            save_type: first(self.save_type, fallback.save_type),
            listen: self.listen.or(fallback.listen),
            bios: self.bios.or(fallback.bios),
            gb_model: self.gb_model.or(fallback.gb_model),
            gb_palette: self.gb_palette.or(fallback.gb_palette),
            no_sgb_borders: self.no_sgb_borders.or(fallback.no_sgb_borders),
            speed: self.speed.or(fallback.speed),
            clock: self.clock.or(fallback.clock),
            history: self.history.or(fallback.history),
            lua: first(self.lua, fallback.lua),
            channel: self.channel.or(fallback.channel),
            paused: self.paused || fallback.paused,
            deadline: self.deadline.or(fallback.deadline),
            allow_origin: first(self.allow_origin, fallback.allow_origin),
            allow_host: first(self.allow_host, fallback.allow_host),
            token_file: self.token_file.or(fallback.token_file),
            read_token_file: self.read_token_file.or(fallback.read_token_file),
            tls_cert: self.tls_cert.or(fallback.tls_cert),
            tls_key: self.tls_key.or(fallback.tls_key),
            files: self.files.or(fallback.files),
            data: self.data.or(fallback.data),
            otlp: self.otlp.or(fallback.otlp),
            allow_script: self.allow_script.or(fallback.allow_script),
            quiet: self.quiet.or(fallback.quiet),
            log_format: self.log_format.or(fallback.log_format),
        }
    }
}

#[cfg(test)]
mod tests {
    use framewire_emulator::SetSpeed;

    use super::*;

    fn from_toml(given: RawSettings, text: &str) -> anyhow::Result<Settings> {
        let file = tempfile::NamedTempFile::new()?;
        std::fs::write(&file, text)?;
        given.with_file(Some(file.path()))
    }

    fn attach(address: &str) -> Settings {
        Settings { attach: vec![address.into()], ..Default::default() }
    }

    fn rom(path: &str) -> Settings {
        Settings { rom: vec![path.into()], ..Default::default() }
    }

    #[test]
    fn a_file_sets_what_the_command_line_does_not() -> anyhow::Result<()> {
        let command_line = Settings { listen: Some("127.0.0.1:2".into()), ..rom("game.gba") };
        let given = RawSettings { command_line, ..Default::default() };
        let settings = from_toml(
            given,
            "rom = \"other.gba\"\nspeed = 2\nlisten = \"127.0.0.1:1\"\nquiet = true\nlua = \"a.lua\"",
        )?;
        assert_eq!(settings.lua, [PathBuf::from("a.lua")]);
        assert_eq!(settings.listen()?.port(), 2);
        assert_eq!(settings.speed, Some(SetSpeed::Times(2.0)));
        assert_eq!(settings.rom, [PathBuf::from("game.gba")]);
        assert_eq!(settings.quiet, Some(true));
        Ok(())
    }

    #[test]
    fn a_flag_that_an_earlier_source_switches_off_stays_off() -> anyhow::Result<()> {
        let text = "allow-script = true\nquiet = true\nno-sgb-borders = true";
        let off = || Settings {
            allow_script: Some(false),
            quiet: Some(false),
            no_sgb_borders: Some(false),
            ..Default::default()
        };
        let flags = |settings: Settings| [settings.allow_script, settings.quiet, settings.no_sgb_borders];
        // Clap merges the environment into the command line, and only some settings are separated again. So either
        // field can hold a flag that the environment switches off.
        for given in [
            RawSettings { command_line: off(), ..Default::default() },
            RawSettings { environment: off(), ..Default::default() },
        ] {
            assert_eq!(flags(from_toml(given, text)?), [Some(false); 3]);
        }
        assert_eq!(flags(from_toml(RawSettings::default(), text)?), [Some(true); 3]);
        assert_eq!(off().embedded_setting(), None);
        Ok(())
    }

    #[test]
    fn a_flag_that_is_not_given_does_not_hide_that_of_a_file() -> anyhow::Result<()> {
        let command = <RawSettings as clap::Args>::augment_args(Command::new("test"));
        let matches = command.get_matches_from(["test", "--quiet"]);
        let settings = from_toml(RawSettings::from_arg_matches(&matches)?, "allow-script = true")?;
        assert_eq!(
            (settings.quiet, settings.allow_script, settings.no_sgb_borders),
            (Some(true), Some(true), None)
        );
        Ok(())
    }

    #[test]
    fn a_choice_of_emulator_hides_the_choices_of_later_sources() -> anyhow::Result<()> {
        for (first, second) in [(rom("a"), attach("b")), (attach("b"), rom("a"))] {
            let given = RawSettings { command_line: first.clone(), environment: second };
            let settings = from_toml(given, "attach = \"c\"\nspeed = 2\nlua = [\"d.lua\"]")?;
            assert_eq!((&settings.rom, &settings.attach), (&first.rom, &first.attach));
            let embedded = !first.rom.is_empty();
            assert_eq!((settings.speed.is_some(), settings.lua.len()), (embedded, usize::from(embedded)));
        }
        let settings =
            from_toml(RawSettings { command_line: attach("b"), ..Default::default() }, "speed = 2")?;
        assert_eq!(settings.speed, None);
        Ok(())
    }

    #[test]
    fn symbols_of_a_file_are_dropped_together_with_its_attached_emulators() -> anyhow::Result<()> {
        let faster = Settings { speed: Some(SetSpeed::Unlimited), ..Default::default() };
        let text = "attach = \"desk=a\"\nsymbols = \"desk=game.sym\"";
        let settings = from_toml(RawSettings { command_line: faster, ..Default::default() }, text)?;
        assert!(settings.attach.is_empty() && settings.symbols.is_empty());
        Ok(())
    }

    #[test]
    fn the_history_of_a_file_applies_to_attached_emulators_too() -> anyhow::Result<()> {
        for command_line in [attach("b"), rom("a")] {
            let settings = from_toml(RawSettings { command_line, ..Default::default() }, "history = \"1M\"")?;
            assert_eq!(settings.history(), 1 << 20);
        }
        Ok(())
    }

    #[test]
    fn the_clock_is_a_setting_for_embedded_cores() -> anyhow::Result<()> {
        let settings = from_toml(RawSettings::default(), "clock = \"2026-01-31T12:00:00+01:00\"")?;
        assert!(matches!(settings.clock, Some(framewire_emulator::Clock::At(_))));
        assert_eq!(settings.embedded_setting(), Some("clock"));
        assert!(from_toml(RawSettings::default(), "attach = \"a\"\nclock = \"frames\"").is_err());
        let settings =
            from_toml(RawSettings { command_line: attach("b"), ..Default::default() }, "clock = \"wall\"")?;
        assert_eq!(settings.clock, None);
        Ok(())
    }

    #[test]
    fn hardware_and_saves_are_settings_for_embedded_cores() -> anyhow::Result<()> {
        let text = "save = \"red=a.sav\"\nsave-type = [\"sram\"]\nbios = \"gba.bin\"\ngb-model = \"sgb\"\n\
                    gb-palette = \"ffffff,aaaaaa,555555,000000\"\nno-sgb-borders = true";
        let settings = from_toml(RawSettings::default(), text)?;
        assert_eq!(settings.save, [PathBuf::from("red=a.sav")]);
        assert_eq!((settings.save_type[0].as_str(), settings.gb_model.as_deref()), ("sram", Some("sgb")));
        assert!(settings.bios.is_some() && settings.gb_palette.is_some());
        assert_eq!(settings.no_sgb_borders, Some(true));
        // A save belongs to the game that the same source names; hardware settings apply to any game.
        let settings = from_toml(RawSettings { command_line: rom("b"), ..Default::default() }, text)?;
        assert!(settings.save.is_empty() && settings.save_type.is_empty() && settings.bios.is_some());
        let settings = from_toml(RawSettings { command_line: attach("b"), ..Default::default() }, text)?;
        assert_eq!(settings.embedded_core_setting(), None);
        for line in text.lines() {
            assert!(from_toml(RawSettings::default(), &format!("attach = \"a\"\n{line}")).is_err(), "{line}");
        }
        Ok(())
    }

    #[test]
    fn a_source_with_two_choices_is_refused() {
        let environment = Settings { speed: Some(SetSpeed::Unlimited), ..attach("b") };
        let given = RawSettings { environment, ..Default::default() };
        let message = format!("{:#}", from_toml(given, "").unwrap_err());
        assert!(message.contains("FRAMEWIRE_ATTACH and FRAMEWIRE_SPEED"), "{message}");
        let environment = Settings { gb_model: Some("sgb".to_owned()), ..attach("b") };
        let given = RawSettings { environment, ..Default::default() };
        let message = format!("{:#}", from_toml(given, "").unwrap_err());
        assert!(message.contains("and FRAMEWIRE_GB_MODEL"), "{message}");
    }

    #[test]
    fn errors_in_files_say_what_is_wrong() {
        for (text, says) in [
            ("lua = [\"a.lua\"]\nattach = \"b\"", "attach and lua"),
            ("rmo = \"a\"", "rmo"),
            ("speed = 0", "0.01 to 1000"),
            ("speed = \"fast\"", "unlimited"),
            ("clock = \"noon\"", "use wall, frames, or a time"),
            ("deadline = \"-1\"", "3600"),
            ("rom = 5", "use a string, or a list of strings"),
            ("speed = [1]", "use a string or a number"),
        ] {
            let error = format!("{:#}", from_toml(RawSettings::default(), text).expect_err(text));
            assert!(error.contains(says), "{text}: {error}");
        }
        assert!(RawSettings::default().with_file(Some(Path::new("no such file"))).is_err());
    }

    #[test]
    fn a_value_of_a_wrong_type_in_a_file_is_refused_with_its_line() {
        let command = <RawSettings as clap::Args>::augment_args(Command::new("test"));
        let keys: Vec<&str> = command.get_arguments().filter_map(clap::Arg::get_long).collect();
        assert!(keys.contains(&"rom") && keys.contains(&"log-format"), "{keys:?}");
        for key in keys {
            for value in ["true", "1", "\"?\"", "[[1]]", "[true]", "{ a = 1 }", "1979-05-27", "inf", "-1"] {
                let error = from_toml(RawSettings::default(), &format!("\n{key} = {value}")).err();
                let is_flag = ["no-sgb-borders", "allow-script", "quiet"].contains(&key);
                // Most texts are checked only when they are used. Three settings also accept numbers.
                let is_right = match value {
                    "true" => is_flag,
                    "\"?\"" => !is_flag,
                    "1" => ["speed", "history", "deadline"].contains(&key),
                    _ => false,
                };
                let error = error.map(|error| format!("{error:#}"));
                match &error {
                    None => assert!(is_right, "{key} = {value}"),
                    Some(error) => assert!(error.contains("line 2"), "{key} = {value}: {error}"),
                }
            }
        }
    }

    #[test]
    fn roms_and_attached_emulators_may_be_mixed() -> anyhow::Result<()> {
        let text = "rom = [\"a.gba\", \"b=b.gba\"]\nattach = \"desk\"\nspeed = 2\nsymbols = \"a.sym\"";
        let settings = from_toml(RawSettings::default(), text)?;
        assert_eq!((settings.rom.len(), &settings.attach[..]), (2, &["desk".to_owned()][..]));
        assert_eq!(settings.symbols, [PathBuf::from("a.sym")]);
        let faster = Settings { speed: Some(SetSpeed::Unlimited), ..Default::default() };
        let settings = from_toml(RawSettings { command_line: faster, ..Default::default() }, text)?;
        assert_eq!((settings.rom.len(), settings.attach.len()), (2, 1));
        let command = <RawSettings as clap::Args>::augment_args(Command::new("test"));
        let matches =
            command.get_matches_from(["test", "--rom", "a", "--attach", "x", "--rom", "b", "--speed", "2"]);
        let order = RawSettings::from_arg_matches(&matches)?.command_line.order;
        assert_eq!(order, [EmulatorOption::Rom, EmulatorOption::Attach, EmulatorOption::Rom]);
        Ok(())
    }

    #[test]
    fn roms_with_and_without_an_option_keep_their_order() {
        let command = <crate::serve::ArgsWithGames as clap::Args>::augment_args(Command::new("test"));
        let matches =
            command.get_matches_from(["test", "--attach", "x", "a.gba", "--rom", "b.gba", "c=c.gba"]);
        let given = RawSettings::from_arg_matches(&matches).unwrap().command_line;
        assert_eq!(given.rom, [PathBuf::from("a.gba"), "b.gba".into(), "c=c.gba".into()]);
        assert_eq!(given.order[..2], [EmulatorOption::Attach, EmulatorOption::Rom]);
    }

    #[test]
    fn only_environment_variables_are_split_at_commas() {
        assert_eq!(split("a.lua,b c.lua".into()), [PathBuf::from("a.lua"), "b c.lua".into()]);
        let command = <RawSettings as clap::Args>::augment_args(Command::new("test"));
        for option in ["--lua", "--symbols", "--patch", "--cheats", "--save", "--rom"] {
            let matches = command.clone().get_matches_from(["test", option, "a,b", option, "c"]);
            let given = RawSettings::from_arg_matches(&matches).unwrap().command_line;
            let Settings { lua, symbols, patch, cheats, save, rom, .. } = given;
            let all = [lua, symbols, patch, cheats, save, rom].concat();
            assert_eq!(all, [PathBuf::from("a,b"), "c".into()], "{option}");
        }
    }
}
