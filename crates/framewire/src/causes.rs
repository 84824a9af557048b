//! An error with its causes, for people.

use std::error::Error;

/// The texts of an error and its causes, the error's own first. A cause whose words were part of the text before it is
/// left out.
pub fn of(error: &(dyn Error + 'static)) -> Vec<String> {
    let mut texts: Vec<String> = Vec::new();
    let mut next = Some(error);
    while let Some(cause) = next {
        let text = cause.to_string();
        if !texts.last().is_some_and(|said| said.contains(&text)) {
            texts.push(text);
        }
        next = cause.source();
    }
    texts
}

/// [`of`] in one line.
pub fn in_a_line(error: &(dyn Error + 'static)) -> String {
    of(error).join(": ")
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
        assert_eq!(of(error.as_ref()), ["cannot start", "cannot read a: no such file"]);
        assert_eq!(in_a_line(error.as_ref()), "cannot start: cannot read a: no such file");
    }

    #[test]
    fn every_cause_is_named() {
        let error = anyhow::anyhow!("refused").context("cannot connect").context("no emulator");
        assert_eq!(of(error.as_ref()), ["no emulator", "cannot connect", "refused"]);
    }
}
