//! Output on the standard streams, and errors with their causes as text.
//!
//! If a stream is closed, or nothing reads it any more, the program continues; `println!` would panic.

use std::error::Error;
use std::fmt::Display;
use std::io::{self, Write};

/// Writes a line to standard output.
///
/// # Errors
/// If the line cannot be written although the stream is open.
pub fn line(text: impl Display) -> io::Result<()> {
    self::text(&format!("{text}\n"))
}

/// Writes text to standard output.
///
/// # Errors
/// Like [`line`].
pub fn text(text: &str) -> io::Result<()> {
    let mut stdout = io::stdout().lock();
    match stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush()) {
        // `framewire script | head` must not fail.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

/// Writes a line to standard error. Errors are ignored.
pub fn notice(text: impl Display) {
    let _ = writeln!(io::stderr(), "{text}");
}

/// The texts of an error and of its causes, starting with the error itself. A cause is left out if the text before it
/// already contains the text of the cause.
pub fn causes(error: &(dyn Error + 'static)) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(cause) = next {
        let text = cause.to_string();
        if !texts.last().is_some_and(|last| last.contains(&text)) {
            texts.push(text);
        }
        next = cause.source();
    }
    texts
}

/// [`causes`] in one line.
pub fn causes_in_a_line(error: &(dyn Error + 'static)) -> String {
    causes(error).join(": ")
}

#[cfg(test)]
mod tests {
    use std::io;

    use super::*;

    #[test]
    fn no_cause_is_named_twice() {
        let system = io::Error::new(io::ErrorKind::NotFound, "no such file");
        let error =
            anyhow::Error::from(system).context("cannot read a: no such file").context("cannot start");
        assert_eq!(causes(error.as_ref()), ["cannot start", "cannot read a: no such file"]);
        assert_eq!(causes_in_a_line(error.as_ref()), "cannot start: cannot read a: no such file");
    }

    #[test]
    fn every_cause_is_named() {
        let error = anyhow::anyhow!("refused").context("cannot connect").context("no emulator");
        assert_eq!(causes(error.as_ref()), ["no emulator", "cannot connect", "refused"]);
    }
}
