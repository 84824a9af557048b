//! Parses memory: `u16[…]`, names, `bytes[…]` and `text[…]`.

use super::operators::binary;
use super::{Parser, Purpose};
use crate::node::{Binary, Node, Unary};
use crate::token::Token;
use crate::{Format, MAX_PLACES, MAX_RANGE, ParseError, Range, Subject, Symbol, Type};

/// One more than the last address.
const END: u64 = 1 << 32;
/// The longest name of a memory domain, in bytes. The encoding has one byte for its length.
const MAX_DOMAIN: usize = 255;

/// The error for `bytes[…]` or `text[…]` where they are not accepted. It says where they can be used.
const ALONE: &str = "`bytes[…]` can only stand alone or be compared: bytes[ADDRESS, 2] == \"0aff\"; \
                     `text[…, LENGTH]` can only stand alone; for a number, write for example u16[ADDRESS]";
/// The error for `bytes[…]` that stands alone where only numbers are accepted.
const WATCHED: &str =
    "`bytes[ADDRESS, LENGTH]` can only be watched alone; to compare, write bytes[ADDRESS, 2] == \"0aff\"";

impl Parser<'_> {
    /// Parses memory in brackets, such as `u16[…]` or a comparison of `text[…]`, or a name.
    pub(super) fn memory(&mut self, word: &str) -> Result<Node, ParseError> {
        let column = self.column();
        let in_brackets = *self.peek_second() == Token::Sign("[");
        match Type::named(word) {
            Some(kind) if in_brackets && self.can_read() => self.typed(kind),
            Some(_) if in_brackets => {
                let what =
                    if self.purpose == Purpose::Address { "an address" } else { "an index or a length" };
                Err(self
                    .wrong(format!("{what} has to be known beforehand here and cannot be read from memory")))
            }
            Some(_) => Err(self.wrong(format!("`{word}` is a type; write {word}[ADDRESS]"))),
            None if word == "text" && in_brackets && self.can_read() => self.text(),
            None if word == "bytes" && in_brackets && self.can_read() => self.bytes(),
            None if self.purpose == Purpose::Count => {
                Err(self.wrong(format!("expected a number, not `{word}`")))
            }
            None => {
                let names = self.names;
                let path = self.path();
                if let Some(variable) = names.variable(&path) {
                    return self.variable(variable);
                }
                let root = word.split('.').next().unwrap_or_default();
                if names.variable(root).is_some() || names.variable(&format!("{root}[]")).is_some() {
                    let message = format!(
                        "`{path}` is not a name; GET /v1/symbols lists the fields of `{root}` and the lengths of arrays"
                    );
                    return Err(self.wrong(message));
                }
                let symbol = self.symbol(word)?;
                self.named(word, symbol, column)
            }
        }
    }

    /// Parses `bytes[ADDRESS, LENGTH]` or `text[ADDRESS, LENGTH]`. Returns `None` if the text is anything else, such as
    /// a comparison.
    pub(crate) fn range(&mut self) -> Result<Option<Subject>, ParseError> {
        let is_text = match self.peek() {
            Token::Word(word) if word == "bytes" => false,
            Token::Word(word) if word == "text" => true,
            _ => return Ok(None),
        };
        if *self.peek_second() != Token::Sign("[") {
            return Ok(None);
        }
        let first = self.next;
        let opened = self.open();
        let (domain, node, column) = self.address_node()?;
        if is_text && *self.peek() != Token::Sign(",") {
            self.next = first;
            return Ok(None);
        }
        let address = known_address(&node, column)?;
        let length = self.length()?;
        self.expect("]", opened)?;
        match self.peek() {
            Token::End => {}
            Token::Sign("==" | "!=") => {
                self.next = first;
                return Ok(None);
            }
            _ => return Err(self.wrong(ALONE)),
        }
        within(address, length, column)?;
        let range = Range { domain, address, length };
        Ok(Some(if is_text { Subject::Text(range) } else { Subject::Range(range) }))
    }

    /// Parses `, LENGTH`.
    fn length(&mut self) -> Result<u16, ParseError> {
        if !self.takes(",") {
            return Err(self.wrong("expected a comma and the number of bytes: bytes[ADDRESS, LENGTH]"));
        }
        let column = self.column();
        let length = self.count()?;
        let length = u16::try_from(length).ok().filter(|length| (1..=MAX_RANGE).contains(length));
        length.ok_or_else(|| ParseError::new(column, format!("the number of bytes must be 1 to {MAX_RANGE}")))
    }

    /// Parses `text[ADDRESS] == "RED"`, which compares each byte.
    fn text(&mut self) -> Result<Node, ParseError> {
        let opened = self.open();
        let at = self.address_node()?;
        if *self.peek() == Token::Sign(",") {
            return Err(self.wrong(
                "`text[ADDRESS, LENGTH]` can only be watched alone; to compare, write text[ADDRESS] == \"RED\"",
            ));
        }
        self.expect("]", opened)?;
        let is_equal = self.equality("expected == or != and a text: text[ADDRESS] == \"RED\"")?;
        let Token::Text(text) = self.peek().clone() else {
            return Err(self.wrong(format!("expected a text such as \"RED\", not {}", self.peek().shown())));
        };
        let bytes = self.names.text(&text).map_err(|problem| self.wrong(problem))?;
        self.compared(at, &bytes, is_equal)
    }

    /// Parses `bytes[ADDRESS, 2] == "0aff"`, which compares each byte.
    fn bytes(&mut self) -> Result<Node, ParseError> {
        let is_first = self.next == 0;
        let opened = self.open();
        let at = self.address_node()?;
        let length = self.length()?;
        self.expect("]", opened)?;
        let stands_alone = is_first && *self.peek() == Token::End;
        let is_equal = self.equality(if stands_alone { WATCHED } else { ALONE })?;
        let Token::Text(text) = self.peek().clone() else {
            let found = self.peek().shown();
            return Err(self.wrong(format!("expected hex digits such as \"0aff\", not {found}")));
        };
        let Some(bytes) = hex(&text) else {
            return Err(self.wrong(format!("{text:?} is not bytes; write two hex digits for each: \"0aff\"")));
        };
        if bytes.len() != usize::from(length) {
            let message =
                format!("{} bytes are compared with {length}; use equal numbers of bytes", bytes.len());
            return Err(self.wrong(message));
        }
        self.compared(at, &bytes, is_equal)
    }

    /// Takes `==` or `!=`. Returns whether it was `==`.
    fn equality(&mut self, problem: &str) -> Result<bool, ParseError> {
        let is_equal = self.takes("==");
        if !is_equal && !self.takes("!=") {
            return Err(self.wrong(problem));
        }
        Ok(is_equal)
    }

    /// Takes the token that holds `bytes`. Returns the node that compares them with the bytes in memory.
    fn compared(
        &mut self,
        (domain, address, column): (Option<String>, Node, usize),
        bytes: &[u8],
        is_equal: bool,
    ) -> Result<Node, ParseError> {
        if bytes.is_empty() || bytes.len() > MAX_PLACES {
            let message = format!("this compares {} bytes; compare 1 to {MAX_PLACES}", bytes.len());
            return Err(self.wrong(message));
        }
        self.advance();
        self.note_copies(&address, bytes.len(), column)?;
        let mut all = Node::Truth(true);
        for (offset, byte) in bytes.iter().enumerate() {
            let offset = Node::Constant(offset as i64);
            let at = binary(Binary::Add, address.clone(), offset);
            let read = self.number_at(Type::U8, domain.clone(), at, column)?;
            let is_same = binary(Binary::Equal, read, Node::Constant((*byte).into()));
            all = match all {
                Node::Truth(_) => is_same,
                all => binary(Binary::And, all, is_same),
            };
        }
        Ok(if is_equal { all } else { Node::Unary(Unary::Not, Box::new(all)) })
    }

    /// Whether memory can be read here.
    fn can_read(&self) -> bool {
        match self.purpose {
            Purpose::Value => true,
            Purpose::Address => self.reads_memory,
            Purpose::Count => false,
        }
    }

    fn typed(&mut self, kind: Type) -> Result<Node, ParseError> {
        let opened = self.open();
        let (domain, node, column) = self.address_node()?;
        self.expect("]", opened)?;
        self.number_at(kind, domain, node, column)
    }

    /// Parses `ADDRESS` or `DOMAIN:OFFSET`. Also returns the column of the number.
    fn address_node(&mut self) -> Result<(Option<String>, Node, usize), ParseError> {
        let mut domain = None;
        if let (Token::Word(name), Token::Sign(":")) = (self.peek(), self.peek_second()) {
            let length = name.len();
            if length > MAX_DOMAIN {
                return Err(self.wrong(format!(
                    "the name of this memory domain has {length} bytes; names have {MAX_DOMAIN} bytes at most"
                )));
            }
            domain = Some(name.clone());
            self.advance();
            self.advance();
        }
        let column = self.column();
        Ok((domain, self.part(Purpose::Address)?, column))
    }

    /// Parses a length or an index that has to be known beforehand.
    fn count(&mut self) -> Result<i64, ParseError> {
        let column = self.column();
        known(&self.part(Purpose::Count)?, column)
    }

    /// Parses a part of an expression for this purpose.
    pub(super) fn part(&mut self, purpose: Purpose) -> Result<Node, ParseError> {
        let before = std::mem::replace(&mut self.purpose, purpose);
        let node = self.deeper(Self::expression);
        self.purpose = before;
        node
    }

    fn symbol(&self, name: &str) -> Result<Symbol, ParseError> {
        self.names.find(name).map_err(|message| {
            if *self.peek_second() == Token::Sign("[") && self.purpose == Purpose::Value {
                let types = Type::ALL.map(Type::name).join(", ");
                return self.wrong(format!("`{name}` is neither a type ({types}) nor a symbol"));
            }
            self.wrong(message)
        })
    }

    /// Parses a name, with its index if there is one.
    fn named(&mut self, name: &str, symbol: Symbol, column: usize) -> Result<Node, ParseError> {
        let first = self.next;
        self.advance();
        let opened = self.column();
        let index = if self.takes("[") {
            let index_column = self.column();
            let index = self.count()?;
            self.expect("]", opened)?;
            Some((index, index_column))
        } else {
            None
        };
        self.last_name = (first..self.next, symbol.kind.map(|kind| (kind, Format::Plain)));
        let address = i64::from(symbol.address);
        match (self.purpose, index, symbol.kind) {
            (Purpose::Value, None, Some(kind)) if symbol.count == 1 => {
                self.number_at(kind, None, Node::Constant(address), column)
            }
            (Purpose::Value, None, Some(kind)) => {
                let (kind, last) = (kind.name(), symbol.count.saturating_sub(1));
                let message = format!(
                    "`{name}` is an array of {} {kind}; write {name}[0] to {name}[{last}]",
                    symbol.count
                );
                Err(ParseError::new(column, message))
            }
            (Purpose::Value, None, None) => {
                let message = format!(
                    "the symbol file does not say how large `{name}` is; write for example u8[{name}] or u16[{name}]"
                );
                Err(ParseError::new(column, message))
            }
            (_, None, _) => Ok(Node::Constant(address)),
            (_, Some((_, at)), None) => {
                let message = format!(
                    "the symbol file does not say what type `{name}` has; write for example u8[{name}+2]"
                );
                Err(ParseError::new(at, message))
            }
            (_, Some((index, at)), Some(kind)) => {
                if !(0..i64::from(symbol.count)).contains(&index) {
                    let last = symbol.count.saturating_sub(1);
                    let message = format!("`{name}` has the indices 0 to {last}, not {index}");
                    return Err(ParseError::new(at, message));
                }
                let element = Node::Constant(address + index * i64::from(kind.size()));
                if self.purpose == Purpose::Value {
                    return self.number_at(kind, None, element, column);
                }
                Ok(element)
            }
        }
    }
}

/// The bytes that pairs of hex digits stand for; `None` if the text does not consist of such pairs.
fn hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.chars().map(|digit| digit.to_digit(16)).collect::<Option<Vec<u32>>>()?;
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    Some(pairs.iter().map(|[high, low]| (high << 4 | low) as u8).collect())
}

/// The value of a node that uses neither memory nor the frame counter.
pub(super) fn known(node: &Node, column: usize) -> Result<i64, ParseError> {
    let problem =
        || ParseError::new(column, "this has no value: it divides by zero, shifts too far or is too large");
    node.value(0, &[]).ok_or_else(problem)
}

pub(super) fn known_address(node: &Node, column: usize) -> Result<u32, ParseError> {
    if !node.is_known() {
        let message = "a pointer leads to this address; use one that is known without reading memory";
        return Err(ParseError::new(column, message));
    }
    let address = known(node, column)?;
    u32::try_from(address)
        .map_err(|_| ParseError::new(column, format!("the address is {address}; use 0 to 0xffffffff")))
}

/// Refuses memory that extends beyond the last address.
pub(super) fn within(address: u32, size: u16, column: usize) -> Result<(), ParseError> {
    if u64::from(address) + u64::from(size) > END {
        let message = format!("{size} bytes from {address:#010x} on go beyond the last address");
        return Err(ParseError::new(column, message));
    }
    Ok(())
}
