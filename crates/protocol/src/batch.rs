//! Operations done together, and what becomes of them.

#[cfg(doc)]
use crate::MAX_TRACE;
use crate::error::{OpError, Status};
use crate::op::{Effect, Op};
use crate::value::Value;
use crate::wire::{DecodeError, Reader, Wire};
use crate::{MAX_FRAME, MAX_KEY, MAX_OPS};

/// Bytes of a request frame in front of its operations, at most: kind, id, answered, key with its length, count.
const MAX_REQUEST_HEAD: usize = 1 + 4 + 4 + 1 + MAX_KEY + 2;

/// Operations done in order at one frame boundary; the first that fails is the last that is tried.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Batch {
    /// The operations, at most [`MAX_OPS`].
    pub ops: Vec<Op>,
    /// Names the batch over repetitions by a caller that never heard the answer, 1 to [`MAX_KEY`] bytes: an emulator
    /// that remembers an outcome under this key gives it again instead of doing the batch twice.
    pub key: Option<String>,
    /// What logs call it, at most [`MAX_TRACE`] bytes; changes nothing of what is done.
    pub trace: Option<String>,
}

impl Batch {
    /// A batch of these operations.
    pub fn new(ops: Vec<Op>) -> Batch {
        Batch { ops, key: None, trace: None }
    }

    /// Whether a request can carry it; one that does not pass must not be encoded.
    ///
    /// # Errors
    ///
    /// Which of [`MAX_OPS`], [`MAX_KEY`] and [`MAX_FRAME`] it breaks, and what to do instead.
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
            let message = format!("a request of {size} bytes; send less than {MAX_FRAME} bytes at a time");
            return Err(OpError::new(Status::TooLarge, message));
        }
        Ok(())
    }

    /// Whether any of its operations changes anything.
    pub fn effect(&self) -> Effect {
        match self.ops.iter().any(|op| op.info().effect == Effect::Change) {
            true => Effect::Change,
            false => Effect::Read,
        }
    }
}

impl From<Op> for Batch {
    fn from(op: Op) -> Batch {
        Batch::new(vec![op])
    }
}

impl Wire for Batch {
    fn encode(&self, out: &mut Vec<u8>) {
        debug_assert!(self.ops.len() <= MAX_OPS, "check() was not asked");
        (self.ops.len() as u16).encode(out);
        self.ops.iter().for_each(|op| op.encode(out));
    }

    fn decode(reader: &mut Reader<'_>) -> Result<Self, DecodeError> {
        let count = usize::from(reader.get::<u16>()?);
        if count > MAX_OPS {
            return Err(DecodeError::TooLarge { what: "batch", limit: MAX_OPS });
        }
        let ops = (0..count).map(|_| reader.get()).collect::<Result<_, _>>()?;
        Ok(Batch::new(ops))
    }
}

/// What became of a batch.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Outcome {
    /// The emulator's frame counter when the batch was done.
    pub frame: u32,
    /// One result an operation, in order; after an error there are no more.
    pub results: Vec<Result<Value, OpError>>,
}

impl Outcome {
    /// The result of a batch of one.
    pub fn single(mut self) -> Result<Value, OpError> {
        match self.results.pop() {
            Some(result) if self.results.is_empty() => result,
            _ => Err(OpError::failed("the reply does not hold one result")),
        }
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
