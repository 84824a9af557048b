//! Changes errors so that they say what to do: if the command line contains a ROM in place of a subcommand, and if the
//! wrong value of an option comes from an environment variable or the settings file.

use std::env;
use std::path::Path;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Command, CommandFactory, Error};

use crate::sources;

/// The usual extensions of ROM files, and of archives that can contain a ROM.
const EXTENSIONS: [&str; 9] = ["gba", "agb", "mb", "gb", "gbc", "sgb", "bin", "zip", "7z"];

/// If the word that clap did not expect looks like a ROM, returns an error that says how to play it. Otherwise returns
/// `error`.
pub fn with_serve(error: Error) -> Error {
    let unknown = error.get(ContextKind::InvalidSubcommand).or_else(|| error.get(ContextKind::InvalidArg));
    match unknown {
        Some(ContextValue::String(word)) if is_game(word) && expects_subcommand(&error) => {
            let word = if word.contains(' ') { format!("{word:?}") } else { word.clone() };
            let message = format!("{word} is not a subcommand; to play this game: framewire serve {word}\n");
            Error::raw(ErrorKind::InvalidSubcommand, message)
        }
        _ => error,
    }
}

/// Whether an error is about the command line of the program itself, and not about that of a subcommand. The usage in
/// the error is then `framewire <COMMAND>`.
fn expects_subcommand(error: &Error) -> bool {
    let Some(ContextValue::StyledStr(usage)) = error.get(ContextKind::Usage) else { return false };
    usage.to_string().lines().any(|line| {
        let words: Vec<&str> = line.split_whitespace().filter(|word| *word != "Usage:").collect();
        matches!(words[..], [_, "<COMMAND>"])
    })
}

/// Whether a word has the extension of a ROM, or is the path of a file.
fn is_game(word: &str) -> bool {
    let path = Path::new(word);
    let extension = path.extension().unwrap_or_default().to_string_lossy().to_lowercase();
    !word.starts_with('-') && (EXTENSIONS.contains(&extension.as_str()) || path.is_file())
}

/// If the value that clap did not accept comes from an environment variable, names the variable in the error instead of
/// the option.
pub fn with_variable(mut error: Error) -> Error {
    if let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg)
        && let Some(variable) = option.split(' ').next().and_then(variable_of)
    {
        error.insert(ContextKind::InvalidArg, ContextValue::String(variable));
    }
    error
}

/// The same text. If it begins with an option, such as `--speed`, and the option's value comes from an environment
/// variable or the settings file, the name of the variable, or that of the file and the setting, replaces the option.
pub fn naming_source(text: String) -> String {
    let end = text.find(|next: char| next == ':' || next.is_whitespace()).unwrap_or(text.len());
    match variable_of(&text[..end]).or_else(|| setting_of(&text[..end])) {
        Some(source) => source + &text[end..],
        None => text,
    }
}

/// The environment variable that gives an option such as `--speed` its value. `None` if the option is on the command
/// line, or no such variable is set.
fn variable_of(option: &str) -> Option<String> {
    let name = option.strip_prefix("--")?;
    if is_on_command_line(option) { None } else { find_variable(&crate::Cli::command(), name) }
}

/// The settings file and the name of its setting that gives an option such as `--speed` its value. `None` if the option
/// is on the command line, or the file does not contain the setting.
fn setting_of(option: &str) -> Option<String> {
    let name = option.strip_prefix("--")?;
    if is_on_command_line(option) {
        return None;
    }
    Some(format!("{}: {name}", sources::file_with(name)?.display()))
}

/// Whether an option such as `--speed` is on the command line of this process.
pub fn is_on_command_line(option: &str) -> bool {
    let sets =
        |arg: &str| arg.strip_prefix(option).is_some_and(|rest| rest.is_empty() || rest.starts_with('='));
    env::args_os().take_while(|arg| arg != "--").any(|arg| arg.to_str().is_some_and(sets))
}

/// The variable that is set for the option with this name, of the command or of its subcommands.
fn find_variable(command: &Command, option: &str) -> Option<String> {
    let mut variables =
        command.get_arguments().filter(|arg| arg.get_long() == Some(option)).filter_map(|arg| arg.get_env());
    match variables.find(|variable| env::var_os(variable).is_some()) {
        Some(variable) => variable.to_str().map(str::to_owned),
        None => command.get_subcommands().find_map(|command| find_variable(command, option)),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    #[test]
    fn the_error_for_a_rom_in_place_of_a_subcommand_says_how_to_play_it() {
        for (args, hint) in [
            (["framewire", "game.gba"], Some("framewire serve game.gba")),
            (["framewire", "My Game.GB"], Some("framewire serve \"My Game.GB\"")),
            (["framewire", "servee"], None),
            (["framewire", "--rmo"], None),
        ] {
            let error = crate::Cli::command().try_get_matches_from(args).unwrap_err();
            let message = super::with_serve(error).to_string();
            assert_eq!(message.contains("to play this game"), hint.is_some(), "{message}");
            assert!(hint.is_none_or(|hint| message.contains(hint)), "{message}");
        }
    }

    #[test]
    fn a_second_rom_after_a_subcommand_is_not_said_to_be_a_subcommand() {
        let lines = ["replay run.fwr game.gba", "mcp a.gba b.gba", "state game.gba", "script game.gba"];
        for line in lines {
            let args = std::iter::once("framewire").chain(line.split(' '));
            let error = crate::Cli::command().try_get_matches_from(args).unwrap_err();
            let message = super::with_serve(error).to_string();
            assert!(!message.contains("to play this game"), "{message}");
        }
        let args = ["framewire", "--speed", "2", "game.gba"];
        let error = crate::Cli::command().try_get_matches_from(args).unwrap_err();
        let message = super::with_serve(error).to_string();
        assert!(message.contains("framewire serve game.gba"), "{message}");
    }
}
