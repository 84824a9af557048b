//! Reads server-sent events.

use std::io::{self, BufRead, BufReader, Read};
use std::iter;

/// An event.
#[derive(Debug, PartialEq, Eq)]
pub struct Event {
    /// Its name.
    pub name: String,
    /// Its data.
    pub data: String,
}

/// The events in the body of a reply, until it ends.
pub fn events(body: impl Read) -> impl Iterator<Item = io::Result<Event>> {
    let mut body = BufReader::new(body);
    iter::from_fn(move || read(&mut body).transpose())
}

fn read(body: &mut impl BufRead) -> io::Result<Option<Event>> {
    let mut event = Event { name: String::new(), data: String::new() };
    let mut line = String::new();
    loop {
        line.clear();
        if body.read_line(&mut line)? == 0 {
            return Ok(None);
        }
        let line = line.trim_end_matches(['\n', '\r']);
        if line.is_empty() && !event.name.is_empty() {
            return Ok(Some(event));
        }
        // Other fields and comments do not matter here.
        match line.split_once(':') {
            Some(("event", name)) => event.name = name.trim_start().to_owned(),
            // Framewire sends the data of an event in one line.
            Some(("data", data)) => event.data.push_str(data.trim_start()),
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_and_comments_are_skipped() {
        let stream = b": hello\n\nid: w-1\nevent: values\ndata: {\"frame\":1}\n\n:\n\nevent: end\ndata: {}\n\nevent: cut";
        let events: Vec<Event> = events(&stream[..]).map(Result::unwrap).collect();
        let event = |name: &str, data: &str| Event { name: name.into(), data: data.into() };
        assert_eq!(events, [event("values", "{\"frame\":1}"), event("end", "{}")]);
    }
}
