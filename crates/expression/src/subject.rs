use crate::parse::Parser;
use crate::{Expression, Names, ParseError, Range};

/// What a watch looks at.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A number.
    Expression(Expression),
    /// Bytes: `bytes[0x02000000, 16]`.
    Range(Range),
}

impl Subject {
    /// Compiles an expression or a `bytes[ADDRESS, LENGTH]`.
    ///
    /// # Errors
    /// [`ParseError`]: what is wrong in which column.
    pub fn parse(text: &str, names: &dyn Names) -> Result<Subject, ParseError> {
        let mut parser = Parser::new(text, names)?;
        if let Some(range) = parser.range()? {
            return Ok(Subject::Range(range));
        }
        let root = parser.whole()?;
        Ok(Subject::Expression(Expression::new(text, root, parser)))
    }
}
