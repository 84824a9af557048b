//! Completion of command lines by shells, with the names of symbols from the server.

use std::ffi::{OsStr, OsString};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{CommandFactory, FromArgMatches};
use clap_complete::Shell;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};
use clap_complete::env::{CompleteEnv, Shells};
use serde_json::Value;

use super::Failure;
use super::client::encode;
use super::server::ServerArgs;
use crate::{Cli, output};

/// The timeout of the request for names. It is short, because the user is waiting at the prompt.
const TIMEOUT: Duration = Duration::from_millis(400);
/// The environment variable that a shell's completion script sets to ask for candidates.
const VARIABLE: &str = "COMPLETE";
/// The last line of the script for zsh. If the script is the file `_framewire` in a folder of `$fpath`, zsh runs it for
/// the first completion. So the script must then also produce that completion.
const ZSH_FILE: &str = "\n[[ $funcstack[1] != _framewire ]] || _clap_dynamic_completer_framewire \"$@\"\n";

/// Arguments of `framewire completions`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  source <(framewire completions bash)                                        # in ~/.bashrc
  source <(framewire completions zsh)                                         # in ~/.zshrc, after compinit
  framewire completions fish > ~/.config/fish/completions/framewire.fish

The script runs framewire to get the possible completions. For addresses and expressions, framewire asks the server for the \
names of symbols.")]
pub struct Args {
    /// The shell
    shell: Shell,
}

/// Prints the script for a shell.
pub fn run(args: &Args) -> anyhow::Result<ExitCode> {
    output::text(&script(args.shell)?).context("cannot print the script")?;
    Ok(ExitCode::SUCCESS)
}

fn script(shell: Shell) -> anyhow::Result<String> {
    let mut script = Vec::new();
    let name = shell.to_string();
    let shells = Shells::builtins();
    let completer = shells.completer(&name).with_context(|| format!("there is no script for {name}"))?;
    completer.write_registration(VARIABLE, "framewire", "framewire", "framewire", &mut script)?;
    let script = String::from_utf8(script)?;
    Ok(if shell == Shell::Zsh { script + ZSH_FILE } else { script })
}

/// If a shell's completion script started this process, prints the candidates and ends the process.
pub fn answer() {
    CompleteEnv::with_factory(Cli::command).var(VARIABLE).complete();
}

/// Completes an address.
pub fn symbols() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| candidates(word, ""))
}

/// Completes the last name of an expression.
pub fn expressions() -> ArgValueCompleter {
    ArgValueCompleter::new(|word: &OsStr| {
        let text = word.to_string_lossy();
        let before = text.trim_end_matches(is_in_name);
        candidates(OsStr::new(&text[before.len()..]), before)
    })
}

fn is_in_name(char: char) -> bool {
    char.is_alphanumeric() || "_.$@".contains(char)
}

/// The server's symbols that begin with `word`, each with `before` in front of it. Empty if the server does not answer.
fn candidates(word: &OsStr, before: &str) -> Vec<CompletionCandidate> {
    let Some(word) = word.to_str() else { return Vec::new() };
    let Ok(list) = ask(word) else { return Vec::new() };
    let symbols = list["symbols"].as_array().into_iter().flatten();
    let candidate = |symbol: &Value| {
        let name = symbol["name"].as_str().filter(|name| name.starts_with(word))?;
        let help = symbol["doc"].as_str().map(|doc| doc.to_owned().into());
        Some(CompletionCandidate::new(format!("{before}{name}")).help(help))
    };
    symbols.filter_map(candidate).collect()
}

fn ask(word: &str) -> Result<Value, Failure> {
    let server = server().ok_or(Failure::Closed)?;
    server.client()?.get_within(&format!("/v1/symbols?contains={}", encode(word)), TIMEOUT)?.json()
}

/// The server that the unfinished command line names.
fn server() -> Option<ServerArgs> {
    // The shell's script passes the words of the command line after `--`.
    let typed: Vec<OsString> = std::env::args_os().skip_while(|arg| arg != "--").skip(1).collect();
    let matches = Cli::command().ignore_errors(true).try_get_matches_from(typed).ok()?;
    let (_, mut command) = matches.subcommand()?;
    // The server's arguments belong to the innermost subcommand, such as `save` in `state save`.
    while let Some((_, inner)) = command.subcommand() {
        command = inner;
    }
    ServerArgs::from_arg_matches(command).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_for_zsh_also_completes_the_first_time() {
        let script = super::script(Shell::Zsh).unwrap();
        assert!(script.starts_with("#compdef framewire\n"), "{script}");
        // `ZSH_FILE` calls this function, whose name clap_complete chooses.
        assert!(script.contains("function _clap_dynamic_completer_framewire() {"), "{script}");
        assert!(script.ends_with(ZSH_FILE), "{script}");
        assert!(!super::script(Shell::Bash).unwrap().contains("funcstack"));
    }
}
