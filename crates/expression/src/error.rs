/// Why a text is no expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {message}")]
pub struct ParseError {
    /// Where, in characters from 1.
    pub column: usize,
    /// What is wrong there, and what is accepted.
    pub message: String,
}

impl ParseError {
    pub(crate) fn new(column: usize, message: impl Into<String>) -> ParseError {
        ParseError { column, message: message.into() }
    }
}
