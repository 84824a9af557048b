//! Output on the standard streams. They may be closed, or not read any more: that ends nothing, and does not panic as
//! `println!` would.

use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line to standard output.
///
/// # Errors
/// If it cannot be written although somebody reads.
pub fn line(text: impl Display) -> io::Result<()> {
    output(&format!("{text}\n"))
}

/// Writes text to standard output.
///
/// # Errors
/// As [`line`].
pub fn output(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        // `framewire script | head` must not fail.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Writes a line to standard error, if anybody reads it.
pub fn notice(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}
