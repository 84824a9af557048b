//! The tree of an expression, and its value.

use crate::Number;

/// A part of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Constant(i64),
    /// A number with a decimal point; in formulas only.
    Real(f64),
    /// `true` and `false`, which are shown as such.
    Truth(bool),
    /// The frame counter.
    Frame,
    /// The number at the place with this index.
    Place(usize),
    Unary(Unary, Box<Node>),
    Binary(Binary, Box<Node>, Box<Node>),
    /// The result of the history function with this index; in formulas only.
    History(usize),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unary {
    Minus,
    Complement,
    Not,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Binary {
    Or,
    And,
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    BitOr,
    BitXor,
    BitAnd,
    ShiftLeft,
    ShiftRight,
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Node {
    /// Its value; `None` if there is none, for example for a division by zero.
    pub(crate) fn value(&self, frame: u32, values: &[i64]) -> Option<i64> {
        match self.number(frame, values, &[])? {
            Number::Whole(number) => Some(number),
            Number::Real(_) => None,
        }
    }

    /// As [`value`](Node::value), for formulas: `histories` are the results of the history functions.
    pub(crate) fn number(&self, frame: u32, values: &[i64], histories: &[Number]) -> Option<Number> {
        match self {
            Node::Constant(number) => Some(Number::Whole(*number)),
            Node::Real(number) => Some(Number::Real(*number)),
            Node::Truth(truth) => Some(Number::Whole((*truth).into())),
            Node::Frame => Some(Number::Whole(frame.into())),
            Node::Place(index) => values.get(*index).copied().map(Number::Whole),
            Node::History(index) => histories.get(*index).copied(),
            Node::Unary(unary, of) => unary.apply(of.number(frame, values, histories)?),
            Node::Binary(binary, left, right) => {
                let left = left.number(frame, values, histories)?;
                // The right side is not computed if the left side decides.
                match (binary, left.is_true()) {
                    (Binary::Or, true) => return Some(Number::Whole(1)),
                    (Binary::And, false) => return Some(Number::Whole(0)),
                    _ => {}
                }
                match (left, right.number(frame, values, histories)?) {
                    (Number::Whole(left), Number::Whole(right)) => {
                        binary.apply(left, right).map(Number::Whole)
                    }
                    (left, right) => binary.apply_to_reals(left.as_f64(), right.as_f64()),
                }
            }
        }
    }

    /// Whether it can only be true or false.
    pub(crate) fn is_condition(&self) -> bool {
        match self {
            Node::Truth(_) | Node::Unary(Unary::Not, _) => true,
            Node::Binary(binary, ..) => binary.is_condition(),
            _ => false,
        }
    }
}

impl Unary {
    fn apply(self, of: Number) -> Option<Number> {
        match (self, of) {
            (Unary::Minus, Number::Whole(of)) => of.checked_neg().map(Number::Whole),
            (Unary::Minus, Number::Real(of)) => Some(Number::Real(-of)),
            (Unary::Complement, Number::Whole(of)) => Some(Number::Whole(!of)),
            (Unary::Complement, Number::Real(_)) => None,
            (Unary::Not, of) => Some(Number::Whole((!of.is_true()).into())),
        }
    }
}

impl Binary {
    fn is_condition(self) -> bool {
        use Binary::*;
        matches!(self, Or | And) || self.is_comparison()
    }

    pub(crate) fn is_comparison(self) -> bool {
        use Binary::*;
        matches!(self, Equal | Unequal | Less | LessOrEqual | Greater | GreaterOrEqual)
    }

    /// For numbers of which one or both have a decimal point. Bit operators and shifts have no value for these, and a
    /// result that is not finite does not exist.
    fn apply_to_reals(self, left: f64, right: f64) -> Option<Number> {
        let truth = |truth: bool| Some(Number::Whole(truth.into()));
        let real = |number: f64| if number.is_finite() { Some(Number::Real(number)) } else { None };
        match self {
            Binary::Or | Binary::And => truth(right != 0.0),
            Binary::Equal => truth(left == right),
            Binary::Unequal => truth(left != right),
            Binary::Less => truth(left < right),
            Binary::LessOrEqual => truth(left <= right),
            Binary::Greater => truth(left > right),
            Binary::GreaterOrEqual => truth(left >= right),
            Binary::Add => real(left + right),
            Binary::Subtract => real(left - right),
            Binary::Multiply => real(left * right),
            Binary::Divide => real(left / right),
            Binary::Remainder => real(left % right),
            Binary::BitOr | Binary::BitXor | Binary::BitAnd | Binary::ShiftLeft | Binary::ShiftRight => None,
        }
    }

    fn apply(self, left: i64, right: i64) -> Option<i64> {
        let shift = || u32::try_from(right).ok().filter(|bits| *bits < i64::BITS);
        let shifted_left = |bits: u32| i64::try_from(i128::from(left) << bits).ok();
        match self {
            Binary::Or | Binary::And => Some((right != 0).into()),
            Binary::Equal => Some((left == right).into()),
            Binary::Unequal => Some((left != right).into()),
            Binary::Less => Some((left < right).into()),
            Binary::LessOrEqual => Some((left <= right).into()),
            Binary::Greater => Some((left > right).into()),
            Binary::GreaterOrEqual => Some((left >= right).into()),
            Binary::BitOr => Some(left | right),
            Binary::BitXor => Some(left ^ right),
            Binary::BitAnd => Some(left & right),
            Binary::ShiftLeft => shift().and_then(shifted_left),
            Binary::ShiftRight => shift().map(|bits| left >> bits),
            Binary::Add => left.checked_add(right),
            Binary::Subtract => left.checked_sub(right),
            Binary::Multiply => left.checked_mul(right),
            Binary::Divide => left.checked_div(right),
            Binary::Remainder => left.checked_rem(right),
        }
    }
}
