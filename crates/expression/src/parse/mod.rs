//! Tokens to a tree, by descent: `operators` from loose to tight, then `memory`, what is in brackets.

mod memory;
mod operators;

use crate::node::Node;
use crate::token::{Token, tokens};
use crate::{MAX_PLACES, MAX_TEXT, Names, ParseError, Place};

/// Brackets and signs within each other, which bounds the stack.
const MAX_DEPTH: usize = 64;

/// What a number being read is for, which decides what a name in it means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Purpose {
    /// Names are the numbers in memory.
    Value,
    /// Names are addresses; memory is not read.
    Address,
    /// An index or a length: no names.
    Count,
}

pub(crate) struct Parser<'a> {
    tokens: Vec<(usize, Token)>,
    /// Index of the token that comes next.
    next: usize,
    depth: usize,
    purpose: Purpose,
    names: &'a dyn Names,
    places: Vec<Place>,
    uses_frame: bool,
}

impl<'a> Parser<'a> {
    pub(crate) fn new(text: &str, names: &'a dyn Names) -> Result<Parser<'a>, ParseError> {
        if text.len() > MAX_TEXT {
            let message = format!("an expression has {MAX_TEXT} bytes at most; this one has {}", text.len());
            return Err(ParseError::new(MAX_TEXT, message));
        }
        let tokens = tokens(text)?;
        let purpose = Purpose::Value;
        Ok(Parser { tokens, next: 0, depth: 0, purpose, names, places: Vec::new(), uses_frame: false })
    }

    /// The text up to its end.
    pub(crate) fn whole(&mut self) -> Result<Node, ParseError> {
        if *self.peek() == Token::End {
            let message = "nothing is here; an expression is such as `score > 10` or `u16[0x02000000]`";
            return Err(ParseError::new(self.column(), message));
        }
        let root = self.expression()?;
        match self.peek() {
            Token::End => Ok(root),
            token => {
                Err(self.wrong(format!("an operator or the end is accepted here, not {}", token.shown())))
            }
        }
    }

    /// The places that were read, and whether the frame counter was.
    pub(crate) fn done(self) -> (Vec<Place>, bool) {
        (self.places, self.uses_frame)
    }

    fn peek(&self) -> &Token {
        &self.tokens[self.next].1
    }

    /// The token behind the next one.
    fn peek_second(&self) -> &Token {
        &self.tokens[(self.next + 1).min(self.tokens.len() - 1)].1
    }

    /// Where the next token begins.
    fn column(&self) -> usize {
        self.tokens[self.next].0
    }

    /// Goes on to the token behind; the end stays.
    fn advance(&mut self) {
        self.next = (self.next + 1).min(self.tokens.len() - 1);
    }

    fn takes(&mut self, sign: &str) -> bool {
        let is_it = matches!(self.peek(), Token::Sign(next) if *next == sign);
        if is_it {
            self.advance();
        }
        is_it
    }

    fn takes_word(&mut self, word: &str) -> bool {
        let is_it = matches!(self.peek(), Token::Word(next) if next == word);
        if is_it {
            self.advance();
        }
        is_it
    }

    /// A closing sign, of what was opened in column `opened`.
    fn expect(&mut self, sign: &str, opened: usize) -> Result<(), ParseError> {
        match self.takes(sign) {
            true => Ok(()),
            false => {
                let found = self.peek().shown();
                Err(self.wrong(format!(
                    "`{sign}` is missing for the bracket of column {opened}; {found} is here"
                )))
            }
        }
    }

    fn wrong(&self, message: impl Into<String>) -> ParseError {
        ParseError::new(self.column(), message)
    }

    /// Does `read` one level deeper.
    fn deeper<T>(&mut self, read: impl FnOnce(&mut Self) -> Result<T, ParseError>) -> Result<T, ParseError> {
        if self.depth == MAX_DEPTH {
            return Err(
                self.wrong(format!("at most {MAX_DEPTH} brackets and signs may be within each other"))
            );
        }
        self.depth += 1;
        let result = read(self);
        self.depth -= 1;
        result
    }

    /// The index of `place`, new or known.
    fn place(&mut self, place: Place, column: usize) -> Result<Node, ParseError> {
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
