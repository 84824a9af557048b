use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::failure::Failure;
use crate::problem::Problem;
use crate::transport::streams::Stream;

/// Room for those who look and listen: each costs more than other streams do.
pub(crate) struct Seats {
    all: u32,
    free: Arc<Semaphore>,
}

/// Room for one, given back when it is dropped.
pub(crate) struct Seat {
    _permit: OwnedSemaphorePermit,
    _stream: Stream,
}

impl Seats {
    pub(crate) fn new(count: u32) -> Seats {
        Seats { all: count, free: Arc::new(Semaphore::new(count as usize)) }
    }

    /// Takes a seat for a stream.
    pub(crate) fn take(&self, stream: Stream) -> Result<Seat, Problem> {
        match self.free.clone().try_acquire_owned() {
            Ok(permit) => Ok(Seat { _permit: permit, _stream: stream }),
            Err(_) => Err(Failure::busy(format!(
                "{} viewers and listeners are here, as many as are served at once; close one and try again",
                self.all
            ))
            .into()),
        }
    }
}
