//! Expressions that an emulator evaluates, and their encoding as bytes. `lua/src/code.lua` implements the same rules.
//! The test vectors in `crates/protocol/vectors/code.tsv` check both.

use crate::node::{Binary, Node, Source, Unary};
use crate::parse::Parser;
use crate::{Format, Names, ParseError, Range, Type};

/// The deepest nesting of operators and reads. The innermost operand counts as one level.
const MAX_DEPTH: usize = 200;

/// The longest encoding of a parsed expression, in bytes. The protocol has 16 bits for the length. The limit is lower
/// than 65,535, because [`plus`](Code::plus) can make an encoding a little longer.
const MAX_CODE: usize = 65_000;

// The first byte of each part. For an operator, it is UNARY plus the operator's index in `Unary`, or BINARY plus its
// index in `Binary`.
const CONSTANT: u8 = 0;
const FRAME: u8 = 1;
const READ: u8 = 2;
const UNARY: u8 = 0x10;
const BINARY: u8 = 0x20;

/// An expression that an emulator evaluates between two frames. Addresses in it may be read from memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Code {
    pub(crate) root: Node,
}

/// Why bytes are not an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CodeError {
    /// The bytes end too early, continue after the expression, or contain an unknown byte.
    #[error("these bytes are not an expression")]
    Malformed,
    /// The expression is nested too deeply for the stack.
    #[error("{MAX_DEPTH} or more operators are nested; use fewer, or group them with brackets")]
    TooDeep,
}

/// The memory of an emulator, and its frame counter.
pub trait ReadMemory {
    /// The frame counter.
    fn frame(&self) -> u32;
    /// The number at an address of the bus, or at an offset in a domain; `None` if there is no such memory.
    fn read(&mut self, kind: Type, domain: Option<&str>, address: u32) -> Option<i64>;
}

struct FromMemory<'a, M>(&'a mut M);

impl<M: ReadMemory> Source for FromMemory<'_, M> {
    fn frame(&self) -> u32 {
        self.0.frame()
    }

    fn read(&mut self, kind: Type, domain: Option<&str>, address: i64) -> Option<i64> {
        self.0.read(kind, domain, u32::try_from(address).ok()?)
    }
}

impl Code {
    /// Compiles `text`, looking up its names in `names`.
    ///
    /// # Errors
    /// [`ParseError`] says what is wrong, and in which column.
    pub fn parse(text: &str, names: &dyn Names) -> Result<Code, ParseError> {
        Code { root: Parser::new(text, names)?.code()? }.checked()
    }

    /// Compiles `text` as an address, like the text in the brackets of `u16[…]`: a name stands for its address. Also
    /// returns the type and the format of the number at that address, if the text is only a name with a type.
    ///
    /// # Errors
    /// [`ParseError`] says what is wrong, and in which column.
    pub fn parse_address(
        text: &str,
        names: &dyn Names,
    ) -> Result<(Code, Option<(Type, Format)>), ParseError> {
        let (root, kind) = Parser::new(text, names)?.address_code()?;
        Ok((Code { root }.checked()?, kind))
    }

    /// Refuses code that is longer than [`MAX_CODE`]. The code can be much longer than the text: a comparison of bytes
    /// or of a text contains its address once for each byte.
    fn checked(self) -> Result<Code, ParseError> {
        let length = self.encode().len();
        if length > MAX_CODE {
            let message = format!(
                "this expression needs {length} bytes of code; at most {MAX_CODE} are accepted; compare fewer bytes, or use a \
                 simpler address"
            );
            return Err(ParseError::new(1, message));
        }
        Ok(self)
    }

    /// This expression plus `more`.
    pub fn plus(self, more: u32) -> Code {
        let Node::Constant(number) = self.root else {
            let more = Box::new(Node::Constant(more.into()));
            return Code { root: Node::Binary(Binary::Add, Box::new(self.root), more) };
        };
        Code::constant(number.saturating_add(more.into()))
    }

    /// The expression whose value is always this number.
    pub fn constant(number: i64) -> Code {
        Code { root: Node::Constant(number) }
    }

    /// Its value, if the value depends on neither memory nor frames.
    pub fn known(&self) -> Option<i64> {
        if self.root.is_known() { self.root.value(0, &[]) } else { None }
    }

    /// Whether it reads addresses from memory.
    pub fn follows_pointers(&self) -> bool {
        self.root.follows_pointers()
    }

    /// Whether it can only be true or false.
    pub fn is_condition(&self) -> bool {
        self.root.is_condition()
    }

    /// Its value now; `None` if it has no value, for example because of a division by zero or memory that does not
    /// exist.
    pub fn value(&self, memory: &mut impl ReadMemory) -> Option<i64> {
        self.root.evaluate(&mut FromMemory(memory))?.whole()
    }

    /// The memory that it reads at fixed addresses.
    pub fn ranges(&self) -> Vec<Range> {
        let mut ranges = Vec::new();
        list(&self.root, &mut ranges);
        ranges
    }

    /// Encodes the expression in prefix order: each operator before its operands.
    pub fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        encode(&self.root, &mut bytes);
        bytes
    }

    /// Decodes bytes that [`encode`](Self::encode) returned.
    ///
    /// # Errors
    /// [`CodeError`].
    pub fn decode(bytes: &[u8]) -> Result<Code, CodeError> {
        let mut rest = bytes;
        let root = decode(&mut rest, 0)?;
        if rest.is_empty() { Ok(Code { root }) } else { Err(CodeError::Malformed) }
    }
}

fn list(node: &Node, ranges: &mut Vec<Range>) {
    match node {
        Node::Read(kind, domain, address) => match **address {
            Node::Constant(address) => {
                let (domain, address) = (domain.clone(), address as u32);
                ranges.push(Range { domain, address, length: kind.size() });
            }
            ref address => list(address, ranges),
        },
        Node::Unary(_, of) => list(of, ranges),
        Node::Binary(_, left, right) => {
            list(left, ranges);
            list(right, ranges);
        }
        _ => {}
    }
}

fn encode(node: &Node, out: &mut Vec<u8>) {
    let mut constant = |number: i64| {
        out.push(CONSTANT);
        out.extend_from_slice(&number.to_le_bytes());
    };
    match node {
        Node::Constant(number) => constant(*number),
        Node::Truth(truth) => constant((*truth).into()),
        // `Code::parse` never makes these nodes. They occur only in `Formula` and in `Expression`, whose memory is read
        // beforehand.
        Node::Real(_) | Node::Place(_) | Node::History(_) => constant(0),
        Node::Frame => out.push(FRAME),
        Node::Read(kind, domain, address) => {
            out.extend([READ, *kind as u8]);
            let domain = domain.as_deref().unwrap_or_default();
            // The length fits into a byte, because the parser refuses longer names.
            out.push(domain.len() as u8);
            out.extend(domain.bytes());
            encode(address, out);
        }
        Node::Unary(unary, of) => {
            out.push(UNARY + *unary as u8);
            encode(of, out);
        }
        Node::Binary(binary, left, right) => {
            out.push(BINARY + *binary as u8);
            encode(left, out);
            encode(right, out);
        }
    }
}

fn decode(rest: &mut &[u8], depth: usize) -> Result<Node, CodeError> {
    if depth == MAX_DEPTH {
        return Err(CodeError::TooDeep);
    }
    let part = |rest: &mut &[u8]| decode(rest, depth + 1).map(Box::new);
    let tag = byte(rest)?;
    Ok(match tag {
        CONSTANT => {
            let (number, after) = rest.split_first_chunk().ok_or(CodeError::Malformed)?;
            *rest = after;
            Node::Constant(i64::from_le_bytes(*number))
        }
        FRAME => Node::Frame,
        READ => {
            let kind = Type::ALL.get(usize::from(byte(rest)?)).ok_or(CodeError::Malformed)?;
            let length = usize::from(byte(rest)?);
            let domain = rest.split_off(..length).ok_or(CodeError::Malformed)?;
            let domain = std::str::from_utf8(domain).map_err(|_| CodeError::Malformed)?;
            let domain = if domain.is_empty() { None } else { Some(domain.to_owned()) };
            Node::Read(*kind, domain, part(rest)?)
        }
        UNARY..BINARY => {
            let unary = Unary::ALL.get(usize::from(tag - UNARY)).ok_or(CodeError::Malformed)?;
            Node::Unary(*unary, part(rest)?)
        }
        _ => {
            let binary =
                Binary::ALL.get(usize::from(tag.wrapping_sub(BINARY))).ok_or(CodeError::Malformed)?;
            let left = part(rest)?;
            Node::Binary(*binary, left, part(rest)?)
        }
    })
}

fn byte(rest: &mut &[u8]) -> Result<u8, CodeError> {
    rest.split_off_first().copied().ok_or(CodeError::Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NoNames, Symbol, Variable};

    /// Memory of 256 bytes, on the bus and in the domain `wram`. Each byte holds its own address. The field is the
    /// frame counter.
    struct Bytes(u32);

    impl ReadMemory for Bytes {
        fn frame(&self) -> u32 {
            self.0
        }

        fn read(&mut self, kind: Type, domain: Option<&str>, address: u32) -> Option<i64> {
            let end = address.checked_add(kind.size().into())?;
            if end > 256 || domain.is_some_and(|domain| domain != "wram") {
                return None;
            }
            let bytes: Vec<u8> = (address..end).map(|address| address as u8).collect();
            Some(kind.read(&bytes))
        }
    }

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    #[test]
    fn codes_are_indexes_into_the_lists_that_decoding_uses() {
        assert!(Type::ALL.iter().enumerate().all(|(index, kind)| *kind as usize == index));
        assert!(Unary::ALL.iter().enumerate().all(|(index, unary)| *unary as usize == index));
        assert!(Binary::ALL.iter().enumerate().all(|(index, binary)| *binary as usize == index));
    }

    #[test]
    fn code_matches_the_test_vectors_that_it_shares_with_the_script() {
        let rows = include_str!("../../protocol/vectors/code.tsv").lines();
        for row in rows.filter(|row| !row.starts_with('#')) {
            let columns: Vec<&str> = row.split('\t').collect();
            let [text, bytes, value] = columns[..] else { panic!("{row:?} does not have three columns") };
            let code = Code::parse(text, &NoNames).unwrap();
            assert_eq!(hex(&code.encode()), bytes, "{text}");
            let decoded = Code::decode(&code.encode()).unwrap();
            assert_eq!(hex(&decoded.encode()), bytes, "{text}");
            let found = decoded.value(&mut Bytes(77)).map_or("none".to_owned(), |value| value.to_string());
            assert_eq!(found, value, "{text}");
        }
    }

    #[test]
    fn bytes_that_are_not_an_expression_are_refused() {
        let good = Code::parse("u8[wram:1] + u16[u8[2]] > -frame", &NoNames).unwrap().encode();
        for length in 0..good.len() {
            assert!(Code::decode(&good[..length]).is_err(), "{length}");
        }
        for wrong in [&[3][..], &[0x13], &[0x32], &[1, 1], &[READ, 9, 0, FRAME], &[READ, 0, 1, 0xff, FRAME]] {
            assert_eq!(Code::decode(wrong), Err(CodeError::Malformed), "{wrong:?}");
        }
        assert_eq!(Code::decode(&[UNARY; 300]), Err(CodeError::TooDeep));
    }

    #[test]
    fn ranges_lists_memory_at_fixed_addresses() {
        let code = Code::parse("u16[u32[0x03005D8C] + 4] + u8[wram:7]", &NoNames).unwrap();
        let known: Vec<_> = code.ranges().into_iter().map(|range| (range.address, range.length)).collect();
        assert_eq!(known, [(0x0300_5D8C, 4), (7, 1)]);
    }

    #[test]
    fn an_address_may_be_read_from_memory() {
        let address = |text: &str| Code::parse_address(text, &NoNames).map(|(code, _)| code);
        let pointed = address("u8[u8[16] + 4] + 2").unwrap();
        assert_eq!((pointed.known(), pointed.value(&mut Bytes(77))), (None, Some(22)));
        assert_eq!(address("0x10 + 4").unwrap().known(), Some(20));
        for wrong in ["frame", "u8[frame]", "bytes[0, 4]", "", "wram:4"] {
            assert!(address(wrong).is_err(), "{wrong}");
        }
    }

    /// Names with one array of structures, `party`, with 4 elements of 8 bytes at address 16.
    struct Party(Variable);

    impl Names for Party {
        fn find(&self, name: &str) -> Result<Symbol, String> {
            NoNames.find(name)
        }

        fn variable(&self, path: &str) -> Option<&Variable> {
            (path == "party[]").then_some(&self.0)
        }
    }

    #[test]
    fn an_index_may_depend_on_the_frame_counter() {
        let base = Code::parse_address("16", &NoNames).unwrap().0;
        let names = Party(Variable { base, dimensions: vec![(4, 8)], kind: None, format: Format::Plain });
        let code = Code::parse("u8[party[frame % 2] + 1]", &names).unwrap();
        assert_eq!((code.value(&mut Bytes(6)), code.value(&mut Bytes(7))), (Some(17), Some(25)));
    }

    #[test]
    fn copies_of_an_address_cannot_grow_without_a_limit() {
        let nested = (0..5).fold("0".to_owned(), |at, _| format!("text[{at}] == \"{}\"", "A".repeat(60)));
        let error = Code::parse(&nested, &NoNames).unwrap_err();
        assert!(error.message.contains("compare fewer bytes"), "{error}");
        let wide = format!("text[{}0] == \"{}\"", "u8[0] + ".repeat(80), "A".repeat(64));
        assert!(Code::parse(&wide, &NoNames).is_err());
        let domain = "d".repeat(255);
        let named = (0..2).fold("0".to_owned(), |at, _| format!("text[{domain}:{at}] == \"A\""));
        let named = format!("text[{domain}:{named}] == \"{}\"", "A".repeat(64));
        let long = format!("{named} && text[text[0] == \"{}\"] == \"{}\"", "A".repeat(16), "A".repeat(36));
        let error = Code::parse(&long, &NoNames).unwrap_err();
        assert!(error.message.contains("bytes of code"), "{error}");
        let usual = format!("text[u32[0x03005D8C] + 4] == \"{}\"", "A".repeat(64));
        assert!(Code::parse(&usual, &NoNames).is_ok());
    }

    #[test]
    fn an_index_whose_address_is_too_large_is_refused() {
        let dimensions = vec![(u32::MAX, u32::MAX)];
        for base in ["16", "u32[16]"] {
            let base = Code::parse_address(base, &NoNames).unwrap().0;
            let dimensions = dimensions.clone();
            let names = Party(Variable { base, dimensions, kind: None, format: Format::Plain });
            let error = Code::parse("u8[party[4294967294]]", &names).unwrap_err();
            assert_eq!(error.column, 10, "{error}");
            assert!(error.message.contains("use a smaller index"), "{error}");
        }
    }

    #[test]
    fn names_of_domains_that_do_not_fit_into_the_code_are_refused() {
        let read = |length: usize| Code::parse(&format!("u8[{}:0]", "d".repeat(length)), &NoNames);
        assert!(read(255).is_ok());
        assert!(read(256).unwrap_err().message.contains("has 256 bytes"));
    }

    #[test]
    fn only_code_reads_addresses_from_memory() {
        let error = crate::Expression::parse("u8[u32[0]]", &NoNames).unwrap_err();
        assert!(error.message.contains("beforehand"), "{error}");
        assert!(Code::parse("u8[frame]", &NoNames).is_err());
        assert!(Code::parse("bytes[0, 4]", &NoNames).is_err());
    }
}
