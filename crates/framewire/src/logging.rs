//! The log, which goes to standard error. Standard output is for data that other programs read.

use std::io::IsTerminal;

use serde::Deserialize;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::prelude::*;

use crate::traces::SpanLayer;

/// The format of log lines.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Format {
    /// For people.
    #[default]
    Text,
    /// One JSON object per line.
    Json,
}

/// Starts the log, and passes spans to `spans`. The variable `RUST_LOG` overrides `quiet`.
pub fn start(format: Format, quiet: bool, spans: Option<SpanLayer>) {
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        // The library prints its own errors with `eprintln!`, which panics if standard error is closed.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal());
    let lines = match format {
        Format::Text => lines.with_target(false).boxed(),
        Format::Json => lines.json().boxed(),
    };
    tracing_subscriber::registry().with(spans).with(lines.with_filter(filter(quiet))).init();
}

fn filter(quiet: bool) -> Targets {
    let level = if quiet { LevelFilter::WARN } else { LevelFilter::INFO };
    let from_environment = std::env::var("RUST_LOG").ok().and_then(|directives| directives.parse().ok());
    from_environment.unwrap_or_else(|| default_filter(level))
}

/// The filter that applies without `RUST_LOG`. From `rmcp`, the MCP library, it shows only warnings and errors, with
/// two exceptions:
///
/// - It hides the warnings of `streamable_http_server`. This module logs a warning for each request that it refuses,
///   but the client gets the error anyway.
/// - It hides all lines of `service`. This module logs an error for each reply that a client did not wait for.
fn default_filter(level: LevelFilter) -> Targets {
    Targets::new()
        .with_default(level)
        .with_target("rmcp", LevelFilter::WARN)
        .with_target("rmcp::service", LevelFilter::OFF)
        .with_target("rmcp::transport::streamable_http_server", LevelFilter::ERROR)
}
