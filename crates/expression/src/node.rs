//! The tree of an expression, and its value.

/// A part of an expression.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    Constant(i64),
    /// `true` and `false`, which are shown as such.
    Truth(bool),
    /// The frame counter.
    Frame,
    /// The number at the place with this index.
    Place(usize),
    Unary(Unary, Box<Node>),
    Binary(Binary, Box<Node>, Box<Node>),
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
        match self {
            Node::Constant(number) => Some(*number),
            Node::Truth(truth) => Some((*truth).into()),
            Node::Frame => Some(frame.into()),
            Node::Place(index) => values.get(*index).copied(),
            Node::Unary(unary, of) => {
                let of = of.value(frame, values)?;
                match unary {
                    Unary::Minus => of.checked_neg(),
                    Unary::Complement => Some(!of),
                    Unary::Not => Some((of == 0).into()),
                }
            }
            Node::Binary(binary, left, right) => {
                let left = left.value(frame, values)?;
                // The right side is not computed if the left side decides.
                match (binary, left != 0) {
                    (Binary::Or, true) => return Some(1),
                    (Binary::And, false) => return Some(0),
                    _ => {}
                }
                binary.apply(left, right.value(frame, values)?)
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

impl Binary {
    fn is_condition(self) -> bool {
        use Binary::*;
        matches!(self, Or | And) || self.is_comparison()
    }

    pub(crate) fn is_comparison(self) -> bool {
        use Binary::*;
        matches!(self, Equal | Unequal | Less | LessOrEqual | Greater | GreaterOrEqual)
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
