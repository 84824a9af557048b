//! Parses operators, from the lowest precedence to the highest. Bit operators bind tighter than comparisons, so
//! `flags & 1 == 0` means `(flags & 1) == 0`.

use super::{Parser, Purpose};
use crate::ParseError;
use crate::formula::History;
use crate::node::{Binary, Node, Unary};
use crate::token::Token;

/// The rows go from the lowest precedence to the highest. Each row holds left-associative operators of the same
/// precedence. All of them bind tighter than comparisons.
const LEVELS: [&[(&str, Binary)]; 6] = [
    &[("|", Binary::BitOr)],
    &[("^", Binary::BitXor)],
    &[("&", Binary::BitAnd)],
    &[("<<", Binary::ShiftLeft), (">>", Binary::ShiftRight)],
    &[("+", Binary::Add), ("-", Binary::Subtract)],
    &[("*", Binary::Multiply), ("/", Binary::Divide), ("%", Binary::Remainder)],
];

const COMPARISONS: [(&str, Binary); 6] = [
    ("==", Binary::Equal),
    ("!=", Binary::Unequal),
    ("<=", Binary::LessOrEqual),
    (">=", Binary::GreaterOrEqual),
    ("<", Binary::Less),
    (">", Binary::Greater),
];

pub(super) fn binary(binary: Binary, left: Node, right: Node) -> Node {
    Node::Binary(binary, Box::new(left), Box::new(right))
}

impl Parser<'_> {
    pub(super) fn expression(&mut self) -> Result<Node, ParseError> {
        let mut left = self.conjunction()?;
        while self.takes_word("or") || self.takes("||") {
            left = binary(Binary::Or, left, self.conjunction()?);
        }
        Ok(left)
    }

    fn conjunction(&mut self) -> Result<Node, ParseError> {
        let mut left = self.negation()?;
        while self.takes_word("and") || self.takes("&&") {
            left = binary(Binary::And, left, self.negation()?);
        }
        Ok(left)
    }

    fn negation(&mut self) -> Result<Node, ParseError> {
        if self.takes_word("not") {
            return Ok(Node::Unary(Unary::Not, Box::new(self.deeper(Self::negation)?)));
        }
        self.comparison()
    }

    fn comparison(&mut self) -> Result<Node, ParseError> {
        let left = self.level(0)?;
        let Some(comparison) = self.operator(&COMPARISONS) else { return Ok(left) };
        let right = self.level(0)?;
        if COMPARISONS.iter().any(|(sign, _)| *self.peek() == Token::Sign(sign)) {
            return Err(self.wrong("a comparison has two sides; write `a < b and b < c`"));
        }
        Ok(binary(comparison, left, right))
    }

    fn level(&mut self, level: usize) -> Result<Node, ParseError> {
        let Some(operators) = LEVELS.get(level) else { return self.unary() };
        let mut left = self.level(level + 1)?;
        while let Some(operator) = self.operator(operators) {
            left = binary(operator, left, self.level(level + 1)?);
        }
        Ok(left)
    }

    fn operator(&mut self, operators: &[(&str, Binary)]) -> Option<Binary> {
        operators.iter().find(|(sign, _)| self.takes(sign)).map(|(_, operator)| *operator)
    }

    fn unary(&mut self) -> Result<Node, ParseError> {
        let unary = match self.peek() {
            Token::Sign("-") => Unary::Minus,
            Token::Sign("~") => Unary::Complement,
            Token::Sign("!") => Unary::Not,
            _ => return self.operand(),
        };
        self.advance();
        Ok(Node::Unary(unary, Box::new(self.deeper(Self::unary)?)))
    }

    fn operand(&mut self) -> Result<Node, ParseError> {
        let column = self.column();
        let token = self.peek().clone();
        match token {
            Token::Number(number) => {
                self.advance();
                Ok(Node::Constant(number))
            }
            Token::Real(number) if self.formula.is_some() && self.purpose == Purpose::Value => {
                self.advance();
                Ok(Node::Real(number))
            }
            Token::Real(_) if self.formula.is_some() => Err(self.wrong(format!(
                "{} is not a whole number; addresses, indexes and lengths are whole numbers",
                token.shown()
            ))),
            Token::Real(_) => Err(self.wrong(format!(
                "{} is not a whole number; numbers with a decimal point are for the formulas of game files",
                token.shown()
            ))),
            Token::Sign("(") => {
                self.advance();
                let inner = self.deeper(Self::expression)?;
                self.expect(")", column)?;
                Ok(inner)
            }
            Token::Word(word) => self.word(&word),
            token => {
                let message = format!(
                    "expected a number, a name, memory such as u16[0x02000000] or `(`, not {}",
                    token.shown()
                );
                Err(self.wrong(message))
            }
        }
    }

    fn word(&mut self, word: &str) -> Result<Node, ParseError> {
        match word {
            "and" | "or" => Err(self.wrong(format!(
                "`{word}` needs something to its left and right; expected a number or a name"
            ))),
            "not" => Err(self.wrong(
                "expected a number or a name, not `not`; put brackets around it, as in 1 == (not lives)",
            )),
            "true" | "false" => {
                self.advance();
                Ok(Node::Truth(word == "true"))
            }
            "frame" if self.purpose == Purpose::Value => {
                self.advance();
                Ok(Node::Frame)
            }
            _ => match History::named(word) {
                Some(history) if *self.peek_second() == Token::Sign("(") => self.history(history),
                _ => self.memory(word),
            },
        }
    }

    /// Parses `delta(x)` and the like.
    fn history(&mut self, history: History) -> Result<Node, ParseError> {
        let name = history.name();
        if self.formula.is_some() && self.purpose != Purpose::Value {
            return Err(self.wrong(format!(
                "`{name}` cannot be used in an address, an index or a length; use it outside of them"
            )));
        }
        if self.formula.is_none() {
            return Err(self.wrong(format!(
                "`{name}` compares frames, so it can be used only in the formulas of game files; a watch reports changes"
            )));
        }
        let opened = self.open();
        let of = self.deeper(Self::expression)?;
        self.expect(")", opened)?;
        let Some(functions) = &mut self.formula else { return Err(self.wrong("expected a formula")) };
        functions.push((history, of));
        Ok(Node::History(functions.len() - 1))
    }
}
