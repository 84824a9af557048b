//! What a request's parameters and body were read as, on the way into an operation.

use framewire_protocol::Keys;

/// One value, checked already.
#[derive(Debug, Clone)]
pub(crate) enum Arg {
    Number(i64),
    Bool(bool),
    Text(String),
    Keys(Keys),
    Bytes(Vec<u8>),
}

/// Values in the order in which a route's operation takes them: the body, if it has one, then the parameters.
///
/// Each method takes the next one, or gives `None` if the row in the table and its operation do not fit each other.
#[derive(Debug, Default)]
pub(crate) struct Args {
    values: [Option<Arg>; Args::MOST],
    added: usize,
    taken: usize,
}

impl Args {
    /// More than any route has.
    const MOST: usize = 4;

    pub(crate) fn push(&mut self, value: Arg) {
        if let Some(place) = self.values.get_mut(self.added) {
            *place = Some(value);
            self.added += 1;
        }
    }

    fn next(&mut self) -> Option<Arg> {
        let value = self.values.get_mut(self.taken)?.take();
        self.taken += 1;
        value
    }

    pub(crate) fn number<T: TryFrom<i64>>(&mut self) -> Option<T> {
        match self.next()? {
            Arg::Number(number) => T::try_from(number).ok(),
            _ => None,
        }
    }

    pub(crate) fn boolean(&mut self) -> Option<bool> {
        match self.next()? {
            Arg::Bool(value) => Some(value),
            _ => None,
        }
    }

    pub(crate) fn text(&mut self) -> Option<String> {
        match self.next()? {
            Arg::Text(text) => Some(text),
            _ => None,
        }
    }

    pub(crate) fn bytes(&mut self) -> Option<Vec<u8>> {
        match self.next()? {
            Arg::Bytes(bytes) => Some(bytes),
            Arg::Text(text) => Some(text.into_bytes()),
            _ => None,
        }
    }

    /// A mask of keys, from names of buttons.
    pub(crate) fn keys(&mut self) -> Option<u16> {
        match self.next()? {
            Arg::Keys(keys) => Some(keys.mask()),
            _ => None,
        }
    }

    /// The number of a key, from the name of a button.
    pub(crate) fn key(&mut self) -> Option<u8> {
        u8::try_from(self.keys()?.trailing_zeros()).ok()
    }
}
