//! Parses names whose addresses are computed, such as `party[2].hp`.

use super::memory::{known, known_address, within};
use super::operators::binary;
use super::{Parser, Purpose};
use crate::node::{Binary, Node};
use crate::token::Token;
use crate::{Format, ParseError, Place, Type, Variable};

fn constant(number: impl Into<i64>) -> Node {
    Node::Constant(number.into())
}

impl Parser<'_> {
    /// The path that begins at the next token, with `[]` in place of each index.
    pub(super) fn path(&self) -> String {
        let mut path = String::new();
        let mut tokens = self.tokens[self.next..].iter().map(|(_, token)| token).peekable();
        if let Some(Token::Word(word)) = tokens.next() {
            path.push_str(word);
        }
        while tokens.next_if(|token| **token == Token::Sign("[")).is_some() {
            let mut depth = 1;
            for token in tokens.by_ref() {
                match token {
                    Token::Sign("[") => depth += 1,
                    Token::Sign("]") => depth -= 1,
                    _ => {}
                }
                if depth == 0 {
                    break;
                }
            }
            path.push_str("[]");
            if let Some(Token::Word(member)) = tokens.peek()
                && member.starts_with('.')
            {
                path.push_str(member);
                tokens.next();
            }
        }
        path
    }

    /// Parses the path of this variable.
    pub(super) fn variable(&mut self, variable: &Variable) -> Result<Node, ParseError> {
        let (first, column) = (self.next, self.column());
        self.advance();
        let mut address = variable.base.root.clone();
        for (count, size) in &variable.dimensions {
            let opened = self.column();
            self.advance();
            let index_column = self.column();
            let index = self.index(*count)?;
            self.expect("]", opened)?;
            if matches!(self.peek(), Token::Word(member) if member.starts_with('.')) {
                self.advance();
            }
            let too_large = || {
                let message = "the address of this element is too large; use a smaller index";
                ParseError::new(index_column, message)
            };
            let offset = match index {
                Node::Constant(index) => constant(index.checked_mul(i64::from(*size)).ok_or_else(too_large)?),
                index => binary(Binary::Multiply, index, constant(*size)),
            };
            address = match (address, offset) {
                (Node::Constant(address), Node::Constant(offset)) => {
                    constant(address.checked_add(offset).ok_or_else(too_large)?)
                }
                (address, offset) => binary(Binary::Add, address, offset),
            };
        }
        self.last_name = (first..self.next, variable.kind.map(|kind| (kind, variable.format)));
        if self.purpose != Purpose::Value {
            return Ok(address);
        }
        let Some(kind) = variable.kind else {
            let message = "this is a whole structure; write the name of a field after it, such as .hp";
            return Err(ParseError::new(column, message));
        };
        let number = self.number_at(kind, None, address, column)?;
        self.value_of(number, kind, variable.format, column)
    }

    /// Parses an index. The index may depend on memory only if the expression can read memory while it is evaluated.
    fn index(&mut self, count: u32) -> Result<Node, ParseError> {
        let column = self.column();
        let purpose = if self.reads_memory { Purpose::Value } else { Purpose::Count };
        let node = self.part(purpose)?;
        if !node.is_known() {
            return Ok(node);
        }
        let index = known(&node, column)?;
        if (0..i64::from(count)).contains(&index) {
            return Ok(Node::Constant(index));
        }
        let last = count.saturating_sub(1);
        Err(ParseError::new(column, format!("the indices here are 0 to {last}, not {index}")))
    }

    /// Makes the node that reads the number at an address.
    pub(super) fn number_at(
        &mut self,
        kind: Type,
        domain: Option<String>,
        address: Node,
        column: usize,
    ) -> Result<Node, ParseError> {
        if self.reads_memory && !address.is_known() {
            return Ok(Node::Read(kind, domain, Box::new(address)));
        }
        let address = known_address(&address, column)?;
        within(address, kind.size(), column)?;
        self.place(Place { domain, address, kind }, column)
    }

    /// Makes the node of the value that a number represents.
    fn value_of(
        &mut self,
        number: Node,
        kind: Type,
        format: Format,
        column: usize,
    ) -> Result<Node, ParseError> {
        match format {
            Format::Plain => Ok(number),
            Format::Bits { first, count } => {
                let shifted = binary(Binary::ShiftRight, number, constant(first));
                Ok(binary(Binary::BitAnd, shifted, constant((1_i64 << count) - 1)))
            }
            Format::Bcd => {
                self.note_copies(&number, usize::from(kind.size()) * 2, column)?;
                let digit = |place: u16| {
                    let shifted = binary(Binary::ShiftRight, number.clone(), constant(place * 4));
                    let digit = binary(Binary::BitAnd, shifted, constant(15));
                    binary(Binary::Multiply, digit, constant(10_i64.pow(place.into())))
                };
                let digits = (1..kind.size() * 2).map(digit);
                Ok(digits.fold(digit(0), |sum, digit| binary(Binary::Add, sum, digit)))
            }
            Format::Fixed(divisor) if self.formula.is_some() => {
                Ok(binary(Binary::Divide, number, Node::Real(divisor.into())))
            }
            Format::Fixed(_) | Format::Float => {
                let kind = kind.name();
                let message = format!(
                    "this field is a fraction, but values here are whole numbers; {kind}[NAME] reads its bits"
                );
                Err(ParseError::new(column, message))
            }
        }
    }
}
