//! Evaluates expressions with the memory of a core: for the operation `evaluate`, for the conditions of runs, for
//! watches, and for computed addresses.

use framewire_expression::{Code, CodeError, ReadMemory, Type};
use framewire_libmgba::Core;
use framewire_protocol::run::{self, Condition};
use framewire_protocol::{Access, Op, OpError};

use super::runs::compile_run;
use super::{bounds, computed};

/// Decodes conditions. Errors call them `place[0]`, `place[1]` and so on.
pub(super) fn compile(core: &Core, conditions: &[Condition], place: &str) -> Result<Vec<Code>, OpError> {
    let conditions = conditions.iter().enumerate();
    conditions.map(|(index, bytes)| decode(core, bytes, &format!("{place}[{index}]"))).collect()
}

/// Decodes an expression, and checks that the core has the memory at the expression's fixed addresses. Errors begin
/// with `place`.
pub(super) fn decode(core: &Core, bytes: &[u8], place: &str) -> Result<Code, OpError> {
    let problem = |error: CodeError| OpError::bad_argument(format!("{place}: {error}"));
    let code = Code::decode(bytes).map_err(problem)?;
    for range in code.ranges() {
        let (domain, length) = (range.domain.as_deref(), u32::from(range.length));
        let access = Access { domain, address: range.address, length, write: false };
        bounds::check(core, &access)
            .map_err(|error| OpError::new(error.status, format!("{place}: {error}")))?;
    }
    Ok(code)
}

/// Checks the expressions of an operation before it is performed. The core must have the memory at the fixed addresses
/// in them. If an expression gives the operation's address and does not depend on memory, the core must also have the
/// memory at that address.
///
/// # Errors
/// If the bytes are not expressions, if there is no such memory or it cannot be written, or if the name or the data of
/// `freeze` have a wrong length.
pub(super) fn check_op(core: &Core, op: &Op) -> Result<(), OpError> {
    let (address, length, write) = match op {
        Op::ReadAt { address, length } => (address, *length, false),
        Op::WriteAt { address, data } => (address, u32::try_from(data.len()).unwrap_or(u32::MAX), true),
        Op::Freeze { name, address, data, .. } => {
            computed::check_lengths(name, data)?;
            (address, data.len() as u32, true)
        }
        Op::Evaluate { expressions } => {
            return compile(core, &run::decode_expressions(expressions)?, "expressions").map(drop);
        }
        Op::Run { steps } => return compile_run(core, steps).map(drop),
        _ => return Ok(()),
    };
    let Some(value) = decode(core, address, "address")?.known() else { return Ok(()) };
    let out_of_range =
        |_| OpError::bad_argument(format!("address is {value}; use a number from 0 to 4294967295"));
    let address = u32::try_from(value).map_err(out_of_range)?;
    bounds::check(core, &Access { domain: None, address, length, write })
}

/// The result of [`Op::Evaluate`]: the values of its expressions, as bytes.
///
/// # Errors
/// If the bytes are not expressions, or if an expression has a fixed address at which the core has no memory.
pub(super) fn evaluate(core: &mut Core, expressions: &[u8]) -> Result<Vec<u8>, OpError> {
    let codes = compile(core, &run::decode_expressions(expressions)?, "expressions")?;
    let values: Vec<_> = codes.iter().map(|code| code.value(&mut CoreMemory(core))).collect();
    Ok(run::encode_values(&values))
}

/// The memory of a core, for expressions.
pub(super) struct CoreMemory<'a>(pub(super) &'a mut Core);

impl ReadMemory for CoreMemory<'_> {
    fn frame(&self) -> u32 {
        self.0.frame_counter()
    }

    fn read(&mut self, kind: Type, domain: Option<&str>, address: u32) -> Option<i64> {
        let mut bytes = [0; 4];
        let bytes = &mut bytes[..kind.size().into()];
        if bounds::read(self.0, domain, address, bytes) { Some(kind.read(bytes)) } else { None }
    }
}
