//! The tree of an expression, and its value.

use crate::{Number, Type};

/// A part of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Node {
    Constant(i64),
    /// A number with a decimal point; in formulas only.
    Real(f64),
    /// `true` or `false`. Unlike other constants, it is a condition.
    Truth(bool),
    /// The frame counter.
    Frame,
    /// The number at the place in memory with this index in the expression's list of places.
    Place(usize),
    /// The number at an address that is computed, on the bus or in a domain; only in a [`Code`](crate::Code).
    Read(Type, Option<String>, Box<Node>),
    Unary(Unary, Box<Node>),
    Binary(Binary, Box<Node>, Box<Node>),
    /// The result of the history function with this index; in formulas only.
    History(usize),
}

/// Where an expression gets the numbers that are not in its text.
pub(crate) trait Source {
    /// The frame counter.
    fn frame(&self) -> u32;
    /// The number at the place with this index.
    fn place(&self, _index: usize) -> Option<i64> {
        None
    }
    /// The result of the history function with this index.
    fn history(&self, _index: usize) -> Option<Number> {
        None
    }
    /// The number at an address that was computed.
    fn read(&mut self, kind: Type, domain: Option<&str>, address: i64) -> Option<i64>;
}

/// Numbers that were read beforehand.
struct Known<'a> {
    frame: u32,
    values: &'a [i64],
    histories: &'a [Number],
}

impl Source for Known<'_> {
    fn frame(&self) -> u32 {
        self.frame
    }

    fn place(&self, index: usize) -> Option<i64> {
        self.values.get(index).copied()
    }

    fn history(&self, index: usize) -> Option<Number> {
        self.histories.get(index).copied()
    }

    fn read(&mut self, _: Type, _: Option<&str>, _: i64) -> Option<i64> {
        None
    }
}

/// Defines operators, and `ALL` with all of them. Their order is that of their codes.
macro_rules! operators {
    ($name:ident: $($operator:ident)*) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(crate) enum $name {
            $($operator),*
        }

        impl $name {
            pub(crate) const ALL: &'static [$name] = &[$($name::$operator),*];
        }
    };
}

operators!(Unary: Minus Complement Not);
operators!(Binary:
    Or And Equal Unequal Less LessOrEqual Greater GreaterOrEqual BitOr BitXor BitAnd ShiftLeft ShiftRight
    Add Subtract Multiply Divide Remainder
);

impl Node {
    /// Its value; `None` if it has no value, for example because of a division by zero.
    pub(crate) fn value(&self, frame: u32, values: &[i64]) -> Option<i64> {
        self.number(frame, values, &[])?.whole()
    }

    /// Like [`value`](Node::value), for formulas: `histories` are the results of the history functions.
    pub(crate) fn number(&self, frame: u32, values: &[i64], histories: &[Number]) -> Option<Number> {
        self.evaluate(&mut Known { frame, values, histories })
    }

    /// Its value with numbers from `source`; `None` if it has no value.
    pub(crate) fn evaluate(&self, source: &mut impl Source) -> Option<Number> {
        match self {
            Node::Constant(number) => Some(Number::Whole(*number)),
            Node::Real(number) => Some(Number::Real(*number)),
            Node::Truth(truth) => Some(Number::Whole((*truth).into())),
            Node::Frame => Some(Number::Whole(source.frame().into())),
            Node::Place(index) => source.place(*index).map(Number::Whole),
            Node::History(index) => source.history(*index),
            Node::Read(kind, domain, address) => {
                let address = address.evaluate(source)?.whole()?;
                source.read(*kind, domain.as_deref(), address).map(Number::Whole)
            }
            Node::Unary(unary, of) => unary.apply(of.evaluate(source)?),
            Node::Binary(binary, left, right) => {
                let left = left.evaluate(source)?;
                // The right side is not computed if the left side decides the result.
                match (binary, left.is_true()) {
                    (Binary::Or, true) => return Some(Number::Whole(1)),
                    (Binary::And, false) => return Some(Number::Whole(0)),
                    _ => {}
                }
                binary.apply(left, right.evaluate(source)?)
            }
        }
    }

    /// The number of nodes: this one and all below it.
    pub(crate) fn size(&self) -> usize {
        1 + match self {
            Node::Read(_, _, of) | Node::Unary(_, of) => of.size(),
            Node::Binary(_, left, right) => left.size() + right.size(),
            _ => 0,
        }
    }

    /// Whether `is` is true for this node or for any node below it.
    fn any(&self, is: &impl Fn(&Node) -> bool) -> bool {
        is(self)
            || match self {
                Node::Read(_, _, of) | Node::Unary(_, of) => of.any(is),
                Node::Binary(_, left, right) => left.any(is) || right.any(is),
                _ => false,
            }
    }

    /// Whether its value depends on the frame counter.
    pub(crate) fn uses_frame(&self) -> bool {
        self.any(&|node| matches!(node, Node::Frame))
    }

    /// Whether it reads addresses from memory.
    pub(crate) fn follows_pointers(&self) -> bool {
        let reads = |node: &Node| matches!(node, Node::Read(..));
        self.any(&|node| matches!(node, Node::Read(_, _, address) if address.any(&reads)))
    }

    /// Whether its value depends on neither memory nor frames.
    pub(crate) fn is_known(&self) -> bool {
        !self.any(&|node| matches!(node, Node::Frame | Node::Place(_) | Node::Read(..) | Node::History(_)))
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
        matches!(self, Or | And | Equal | Unequal | Less | LessOrEqual | Greater | GreaterOrEqual)
    }

    /// Applies the operator to two numbers. For `Or` and `And`, the left number must not decide the result already, so
    /// only the right one matters.
    pub(crate) fn apply(self, left: Number, right: Number) -> Option<Number> {
        match (left, right) {
            (Number::Whole(left), Number::Whole(right)) => {
                self.apply_to_wholes(left, right).map(Number::Whole)
            }
            (left, right) => self.apply_to_reals(left.as_f64(), right.as_f64()),
        }
    }

    /// Applies the operator to two numbers, at least one of which has a decimal point. Returns `None` for bit operators
    /// and shifts, and if the result is not finite.
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

    fn apply_to_wholes(self, left: i64, right: i64) -> Option<i64> {
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
