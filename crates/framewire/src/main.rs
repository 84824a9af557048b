//! The `framewire` program. Most subcommands have a file or a folder of their own; the one-shot commands are in
//! `commands`.

mod bench;
mod choose;
mod commands;
mod doctor;
mod hint;
mod logging;
mod man;
mod mcp;
mod output;
mod process;
#[cfg(feature = "embedded")]
mod replay;
mod requested;
#[cfg(test)]
#[path = "../../../tests/src/reserved_port.rs"]
mod reserved_port;
mod safety;
mod script;
mod serve;
mod settings;
mod sources;
mod symbols;
mod token;
mod traces;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Lets any program control the mGBA emulator: over HTTP, frame by frame, and fast.
///
/// Without a subcommand, it serves an open mGBA that has the script loaded, or else a built-in game.
#[derive(Debug, Parser)]
#[command(version, propagate_version = true, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: serve::Args,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serve an emulator over HTTP.
    Serve(Box<serve::ArgsWithGames>),
    /// Measure a server, a script or the embedded core under load.
    Bench(Box<bench::Args>),
    /// Replay a recording without a window, at full speed, and compare the result with what was recorded.
    #[cfg(feature = "embedded")]
    Replay(replay::Args),
    /// Read numbers or bytes from memory.
    Read(commands::read::Args),
    /// Write a number or bytes to memory.
    Write(commands::write::Args),
    /// Press keys at exact frames.
    Press(commands::press::Args),
    /// Take a picture of the game.
    Screenshot(commands::screenshot::Args),
    /// Wait until a condition on memory is true.
    Wait(commands::wait::Args),
    /// Print each change of values in memory.
    Watch(commands::watch::Args),
    /// Save or load the state of the game.
    State(commands::state::Args),
    /// Serve one emulator to a program that runs a language model, over stdin and stdout (MCP).
    Mcp(Box<mcp::Args>),
    /// Print instructions for coding agents that use this program and its HTTP API.
    Skill,
    /// Print the Lua script to load into mGBA.
    Script(script::Args),
    /// Create a token; other machines need one to connect.
    Token(token::Args),
    /// Check the setup, and say what is wrong and what to do.
    Doctor(Box<serve::ArgsWithGames>),
    /// Print a script that completes command lines in your shell.
    Completions(commands::complete::Args),
    /// Write the manual pages into a folder.
    #[command(hide = true)]
    Man(man::Args),
}

fn main() -> ExitCode {
    // If a shell runs this program to complete a command line, this call ends the process.
    commands::complete::answer();
    let cli = Cli::try_parse().unwrap_or_else(|error| hint::with_variable(hint::with_serve(error)).exit());
    let result = match cli.command {
        None => serve::run(cli.serve),
        Some(Command::Serve(args)) => serve::run(args.args),
        Some(Command::Bench(args)) => bench::run(*args),
        #[cfg(feature = "embedded")]
        Some(Command::Replay(args)) => replay::run(&args),
        Some(Command::Read(args)) => commands::end(commands::read::run(&args)),
        Some(Command::Write(args)) => commands::end(commands::write::run(&args)),
        Some(Command::Press(args)) => commands::end(commands::press::run(&args)),
        Some(Command::Screenshot(args)) => commands::end(commands::screenshot::run(&args)),
        Some(Command::Wait(args)) => commands::end(commands::wait::run(&args)),
        Some(Command::Watch(args)) => commands::end(commands::watch::run(&args)),
        Some(Command::State(args)) => commands::end(commands::state::run(&args)),
        Some(Command::Mcp(args)) => mcp::run(*args),
        Some(Command::Skill) => mcp::print_skill(),
        Some(Command::Script(args)) => script::run(args),
        Some(Command::Token(args)) => token::run(args),
        Some(Command::Doctor(args)) => doctor::run(args.args),
        Some(Command::Completions(args)) => commands::complete::run(&args),
        Some(Command::Man(args)) => man::run(&args),
    };
    result.unwrap_or_else(|error| {
        let causes = output::causes(error.as_ref()).join("\n  because: ");
        output::notice(format_args!("framewire: {}", hint::naming_source(causes)));
        ExitCode::FAILURE
    })
}
