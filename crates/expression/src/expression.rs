use std::fmt;

use crate::node::Node;
use crate::parse::Parser;
use crate::{Names, ParseError, Place, Range};

/// A compiled expression.
#[derive(Debug, Clone, PartialEq)]
pub struct Expression {
    text: String,
    root: Node,
    places: Vec<Place>,
}

impl Expression {
    /// Compiles `text`, looking up its names in `names`.
    ///
    /// # Errors
    /// [`ParseError`] says what is wrong, and in which column.
    pub fn parse(text: &str, names: &dyn Names) -> Result<Expression, ParseError> {
        let mut parser = Parser::new(text, names)?;
        let root = parser.whole()?;
        Ok(Expression::new(text, root, parser.places))
    }

    fn new(text: &str, root: Node, places: Vec<Place>) -> Expression {
        Expression { text: text.trim().to_owned(), root, places }
    }

    /// The places in memory that it reads, each once.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// Whether its value depends on the frame counter, so that it can change even if memory does not.
    pub fn uses_frame(&self) -> bool {
        self.root.uses_frame()
    }

    /// Whether its value can only be true or false, like that of a comparison or of `not`.
    pub fn is_condition(&self) -> bool {
        self.root.is_condition()
    }

    /// Its value if the frame counter is `frame` and its [`places`](Expression::places) contain `values`, in the same
    /// order. `None` if it has no value: for a division by zero, a shift out of range, or a number beyond 64 bits.
    pub fn value(&self, frame: u32, values: &[i64]) -> Option<i64> {
        self.root.value(frame, values)
    }
}

/// The original text.
impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What a watch observes.
#[derive(Debug, Clone, PartialEq)]
pub enum Subject {
    /// A number.
    Expression(Expression),
    /// Bytes: `bytes[0x02000000, 16]`.
    Range(Range),
    /// The text in these bytes, up to its end: `text[0x02000000, 16]`.
    Text(Range),
}

impl Subject {
    /// Compiles an expression, a `bytes[ADDRESS, LENGTH]` or a `text[ADDRESS, LENGTH]`.
    ///
    /// # Errors
    /// [`ParseError`] says what is wrong, and in which column.
    pub fn parse(text: &str, names: &dyn Names) -> Result<Subject, ParseError> {
        let mut parser = Parser::new(text, names)?;
        if let Some(subject) = parser.range()? {
            return Ok(subject);
        }
        let root = parser.whole()?;
        Ok(Subject::Expression(Expression::new(text, root, parser.places)))
    }
}
