//! A recursive descent parser, which turns tokens into a tree. `operators` parses operators by their precedence,
//! `memory` parses names and brackets, and `variable` parses names whose addresses are computed.

mod memory;
mod operators;
mod variable;

use crate::formula::History;
use crate::node::Node;
use crate::token::{Token, tokens};
use crate::{Format, MAX_PLACES, MAX_TEXT, Names, Place, Type};

/// Why a text is not an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("column {column}: {message}")]
pub struct ParseError {
    /// The column of the error, in characters, counted from 1.
    pub column: usize,
    /// What is wrong there, and what is accepted.
    pub message: String,
}

impl ParseError {
    pub(crate) fn new(column: usize, message: impl Into<String>) -> ParseError {
        ParseError { column, message: message.into() }
    }
}

/// How deeply brackets and operators with one operand, such as `-`, may be nested, counted together. This limits the
/// use of the stack.
const MAX_DEPTH: usize = 64;

/// The largest number of nodes that are copies. A comparison of bytes or of a text copies the node of its address once
/// for each byte. A BCD field copies the node that reads its number once for each digit. If an address contains such a
/// comparison or field, each level of nesting multiplies the number of copies.
const MAX_COPIES: usize = 4096;

/// The purpose of the part of the expression that is being parsed. It decides what a name in this part means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// A value: names stand for numbers in memory.
    Value,
    /// An address: names stand for addresses. Memory can be read only if `reads_memory` is set.
    Address,
    /// A length, or an index that has to be known beforehand: no names.
    Count,
}

pub(crate) struct Parser<'a> {
    tokens: Vec<(usize, Token)>,
    /// Index of the next token.
    next: usize,
    depth: usize,
    /// The number of nodes that are copies.
    copies: usize,
    purpose: Purpose,
    names: &'a dyn Names,
    /// The places that the expression reads.
    pub(crate) places: Vec<Place>,
    /// The history functions of a formula, such as `delta(x)`, inner ones first; `None` for other expressions.
    pub(crate) formula: Option<Vec<(History, Node)>>,
    /// Whether memory is read while the expression is evaluated, so that addresses can be read from memory. Otherwise,
    /// all places are read beforehand.
    reads_memory: bool,
    /// The tokens of the name that was parsed last, and the type and the format of the number there.
    last_name: (std::ops::Range<usize>, Option<(Type, Format)>),
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &str, names: &'a dyn Names) -> Result<Parser<'a>, ParseError> {
        if text.len() > MAX_TEXT {
            let message =
                format!("an expression has {MAX_TEXT} bytes at most, but this one has {}", text.len());
            let column = text.char_indices().take_while(|(at, _)| *at < MAX_TEXT).count();
            return Err(ParseError::new(column, message));
        }
        Ok(Parser {
            tokens: tokens(text)?,
            next: 0,
            depth: 0,
            copies: 0,
            purpose: Purpose::Value,
            names,
            places: Vec::new(),
            formula: None,
            reads_memory: false,
            last_name: (0..0, None),
        })
    }

    /// Parses a whole expression that reads memory while it is evaluated.
    pub(crate) fn code(mut self) -> Result<Node, ParseError> {
        self.reads_memory = true;
        self.whole()
    }

    /// Parses a whole address. Also returns the type and the format of the number there, if the address is only a name
    /// with a type.
    pub(crate) fn address_code(mut self) -> Result<(Node, Option<(Type, Format)>), ParseError> {
        self.reads_memory = true;
        self.purpose = Purpose::Address;
        let root = self.whole()?;
        let (tokens, kind) = &self.last_name;
        let is_only_name = *tokens == (0..self.next);
        Ok((root, if is_only_name { *kind } else { None }))
    }

    /// Parses the text up to its end.
    pub(crate) fn whole(&mut self) -> Result<Node, ParseError> {
        if *self.peek() == Token::End {
            let message = "nothing is here; write an expression such as `score > 10` or `u16[0x02000000]`";
            return Err(ParseError::new(self.column(), message));
        }
        let root = self.expression()?;
        match self.peek() {
            Token::End => Ok(root),
            token => Err(self.wrong(format!("expected an operator or the end, not {}", token.shown()))),
        }
    }

    /// Counts copies of a node, before they are made.
    fn note_copies(&mut self, node: &Node, count: usize, column: usize) -> Result<(), ParseError> {
        self.copies = self.copies.saturating_add(node.size().saturating_mul(count));
        if self.copies > MAX_COPIES {
            let message = "this reads too many bytes at an address that takes many steps to compute; compare fewer \
                           bytes, or use a simpler address";
            return Err(ParseError::new(column, message));
        }
        Ok(())
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.next].1
    }

    /// The token after the next one.
    fn peek_second(&self) -> &Token {
        &self.tokens[(self.next + 1).min(self.tokens.len() - 1)].1
    }

    /// The column of the next token.
    fn column(&self) -> usize {
        self.tokens[self.next].0
    }

    /// Moves to the next token. At the end it stays there.
    fn advance(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }

    /// Moves past a word and the bracket after it. Returns the column of the bracket.
    fn open(&mut self) -> usize {
        self.advance();
        let column = self.column();
        self.advance();
        column
    }

    /// Moves past the next token if it is this sign. Returns whether it was.
    fn takes(&mut self, sign: &str) -> bool {
        let is_next = matches!(self.peek(), Token::Sign(next) if *next == sign);
        if is_next {
            self.advance();
        }
        is_next
    }

    /// Moves past the next token if it is this word. Returns whether it was.
    fn takes_word(&mut self, word: &str) -> bool {
        let is_next = matches!(self.peek(), Token::Word(next) if next == word);
        if is_next {
            self.advance();
        }
        is_next
    }

    /// Takes the closing sign of a bracket that was opened in column `opened`.
    fn expect(&mut self, sign: &str, opened: usize) -> Result<(), ParseError> {
        if self.takes(sign) {
            return Ok(());
        }
        let found = self.peek().shown();
        Err(self.wrong(format!("`{sign}` is missing for the bracket in column {opened}; found {found}")))
    }

    fn wrong(&self, message: impl Into<String>) -> ParseError {
        ParseError::new(self.column(), message)
    }

    /// Calls `parse` one nesting level deeper.
    fn deeper<T>(&mut self, parse: impl FnOnce(&mut Self) -> Result<T, ParseError>) -> Result<T, ParseError> {
        if self.depth == MAX_DEPTH {
            let message = format!(
                "at most {MAX_DEPTH} brackets and operators with one operand, such as `not`, can be nested"
            );
            return Err(self.wrong(message));
        }
        self.depth += 1;
        let result = parse(self);
        self.depth -= 1;
        result
    }

    /// Makes the node that reads a place. The list of places has each place only once.
    fn place(&mut self, place: Place, column: usize) -> Result<Node, ParseError> {
        if self.reads_memory {
            let Place { domain, address, kind } = place;
            return Ok(Node::Read(kind, domain, Box::new(Node::Constant(address.into()))));
        }
        let known = self.places.iter().position(|known| *known == place);
        if known.is_none() && self.places.len() == MAX_PLACES {
            let message = format!("an expression reads {MAX_PLACES} places of memory at most");
            return Err(ParseError::new(column, message));
        }
        Ok(Node::Place(known.unwrap_or_else(|| {
            self.places.push(place);
            self.places.len() - 1
        })))
    }
}
