//! The log, on standard error. Standard output is for what programs read.

use std::io::IsTerminal;

use serde::Deserialize;
use tracing_subscriber::EnvFilter;

/// The form of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Starts logging. `RUST_LOG` overrides what `quiet` asks for.
pub fn start(format: Format, quiet: bool) {
    let usual = if quiet { "warn" } else { "info" };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(usual));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // They would go to standard error too, by a macro that panics when nobody reads that any more.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal());
    match format {
        Format::Text => builder.with_target(false).init(),
        Format::Json => builder.json().init(),
    }
}
