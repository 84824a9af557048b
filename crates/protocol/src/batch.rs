//! Operations performed together, and their outcome.

#[cfg(doc)]
use crate::MAX_TRACE;
use crate::error::{OpError, Status};
use crate::op::{Effect, Op};
use crate::value::Value;
use crate::wire::{DecodeError, Reader, Wire};
use crate::{MAX_ADVANCE, MAX_FRAME, MAX_KEY, MAX_OPS};

/// The largest size in bytes of the part of a request frame before the operations: the kind,
/// [`Request::id`](crate::Request::id), [`Request::answered`](crate::Request::answered), the key with its length, and
/// the number of operations.
const MAX_REQUEST_HEAD: usize = 1 + 4 + 4 + 1 + MAX_KEY + 2;

/// The message of [`Status::NotDone`]. The script for a stock mGBA has the same text.
const NOT_DONE: &str = "not done: a later operation of this batch is refused";

/// The bit in a batch's encoded count that marks the batch as [`Batch::unchecked`].
const UNCHECKED: u16 = 0x8000;

/// Operations that are performed in order. No frame runs between them; only operations such as `run` and `advance` let
/// frames run. After the first operation that fails, no further operation is performed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// The operations, at most [`MAX_OPS`].
    pub ops: Vec<Op>,
    /// An idempotency key of 1 to [`MAX_KEY`] bytes, for a client that got no answer and repeats the batch. An emulator
    /// that remembers an outcome under this key returns that outcome again and does not perform the batch twice.
    pub key: Option<String>,
    /// Its name in logs, at most [`MAX_TRACE`] bytes. The name has no other effect.
    pub trace: Option<String>,
    /// Accepts any address, like mGBA's own functions: an address outside of the console's memory or of a memory domain
    /// wraps around, reads the open bus, or has no effect. If this is false, a batch with such an address is refused as
    /// a whole.
    pub unchecked: bool,
}

impl From<Vec<Op>> for Batch {
    fn from(ops: Vec<Op>) -> Batch {
        Batch::new(ops)
    }
}

impl Batch {
    /// A batch of these operations.
    pub fn new(ops: Vec<Op>) -> Batch {
        Batch { ops, ..Batch::default() }
    }

    /// Checks that the batch fits into a request. A batch that does not pass this check must not be encoded. The length
    /// of `trace` is not checked.
    ///
    /// # Errors
    /// If the batch exceeds [`MAX_OPS`], [`MAX_KEY`] or [`MAX_FRAME`], or if its key is empty. The error says what to
    /// do instead.
    pub fn check(&self) -> Result<(), OpError> {
        if self.ops.len() > MAX_OPS {
            let message =
                format!("{} operations in a batch; send at most {MAX_OPS} at a time", self.ops.len());
            return Err(OpError::new(Status::TooLarge, message));
        }
        if let Some(key) = &self.key
            && !(1..=MAX_KEY).contains(&key.len())
        {
            let message = format!("the key has {} bytes; use one of 1 to {MAX_KEY}", key.len());
            return Err(OpError::bad_argument(message));
        }
        let size = self.ops.iter().map(Op::size).sum::<usize>();
        if size > MAX_FRAME - MAX_REQUEST_HEAD {
            let most = MAX_FRAME - MAX_REQUEST_HEAD;
            let message = format!("operations of {size} bytes; send at most {most} bytes at a time");
            return Err(OpError::new(Status::TooLarge, message));
        }
        Ok(())
    }

    /// [`Effect::Change`] if any of its operations changes anything, or else [`Effect::Read`].
    #[inline]
    pub fn effect(&self) -> Effect {
        let changes = self.ops.iter().any(|op| op.info().effect == Effect::Change);
        if changes { Effect::Change } else { Effect::Read }
    }
}

/// Checks each operation with [`Op::check`], and checks that all `advance` operations together run at most
/// [`MAX_ADVANCE`] frames. Call this before the first operation is performed.
///
/// # Errors
/// The index of the first operation that is refused, and the reason.
pub fn check_ops(ops: &[Op]) -> Result<(), (usize, OpError)> {
    let mut advanced = 0;
    for (index, op) in ops.iter().enumerate() {
        op.check().map_err(|error| (index, error))?;
        let Op::Advance { frames } = *op else { continue };
        if frames == 0 || frames > MAX_ADVANCE - advanced {
            let before = match advanced {
                0 => String::new(),
                advanced => format!(", and the operations before this one run {advanced}"),
            };
            let message = format!("frames is {frames}; a batch can run 1 to {MAX_ADVANCE} frames{before}");
            return Err((index, OpError::bad_argument(message)));
        }
        advanced += frames;
    }
    Ok(())
}

impl From<Op> for Batch {
    fn from(op: Op) -> Batch {
        Batch::new(vec![op])
    }
}

/// The binary form contains neither the key nor the name in logs; [`Frame`](crate::Frame) encodes these.
impl Wire for Batch {
    fn encode(&self, out: &mut Vec<u8>) {
        debug_assert!(self.ops.len() <= MAX_OPS, "check() was not called");
        let count = self.ops.len() as u16;
        let flag = if self.unchecked { UNCHECKED } else { 0 };
        (count | flag).encode(out);
        self.ops.iter().for_each(|op| op.encode(out));
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = reader.get::<u16>()?;
        let unchecked = count & UNCHECKED != 0;
        let count = usize::from(count & !UNCHECKED);
        if count > MAX_OPS {
            return Err(DecodeError::TooLarge { what: "batch", limit: MAX_OPS });
        }
        let ops = (0..count).map(|_| reader.get()).collect::<Result<_, _>>()?;
        Ok(Batch { unchecked, ..Batch::new(ops) })
    }
}

/// The outcome of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// The emulator's frame counter when the batch was done.
    pub frame: u32,
    /// One result per operation that was performed, in order; the last may be an error. If an operation is refused
    /// before any operation of its batch is performed: its error, after one [`Status::NotDone`] for each operation
    /// before it.
    pub results: Vec<Result<Value, OpError>>,
}

impl Outcome {
    /// The outcome of a batch whose operation `index` is refused before any operation is performed.
    pub fn refused(frame: u32, index: usize, error: OpError) -> Outcome {
        let not_done = || Err(OpError::new(Status::NotDone, NOT_DONE));
        let mut results: Vec<_> = std::iter::repeat_with(not_done).take(index).collect();
        results.push(Err(error));
        Outcome { frame, results }
    }

    /// If an operation was refused before any operation was performed, or if the first operation failed: its index and
    /// the error.
    pub fn refusal(&self) -> Option<(usize, &OpError)> {
        let first = self.results.first()?.as_ref().err()?;
        if first.status != Status::NotDone && self.results.len() > 1 {
            return None;
        }
        let (last, before) = self.results.split_last()?;
        Some((before.len(), last.as_ref().err()?))
    }

    /// The result of a batch with one operation.
    pub fn single(mut self) -> Result<Value, OpError> {
        match self.results.pop() {
            Some(result) if self.results.is_empty() => result,
            _ => Err(OpError::failed("the reply does not have exactly one result")),
        }
    }

    /// Whether the batch may have changed anything. `ops` are its operations.
    pub fn has_changed(&self, ops: &[Op]) -> bool {
        let may_have = |result: &Result<Value, OpError>| match result {
            Ok(_) => true,
            Err(error) => !error.status.is_refusal(),
        };
        let changes = ops.iter().map(|op| op.info().effect == Effect::Change);
        changes.zip(&self.results).any(|(change, result)| change && may_have(result))
    }
}

impl Wire for Outcome {
    fn encode(&self, out: &mut Vec<u8>) {
        self.frame.encode(out);
        (self.results.len() as u16).encode(out);
        for result in &self.results {
            match result {
                Ok(value) => {
                    out.push(0);
                    value.encode(out);
                }
                Err(error) => {
                    error.status.encode(out);
                    error.message.encode(out);
                }
            }
        }
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let frame = reader.get()?;
        let count = usize::from(reader.get::<u16>()?);
        let results = (0..count)
            .map(|_| {
                // The clone only peeks at the first byte: 0 before a value, or else the status of an error.
                Ok(match reader.clone().get::<u8>()? {
                    0 => {
                        reader.get::<u8>()?;
                        Ok(reader.get()?)
                    }
                    _ => Err(OpError { status: reader.get()?, message: reader.get()? }),
                })
            })
            .collect::<Result<_, _>>()?;
        Ok(Outcome { frame, results })
    }
}
