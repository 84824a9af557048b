use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::failure::Failure;
use crate::problem::Problem;
use crate::transport::streams::OpenStream;

/// Limits how many clients watch and listen at once: each costs more than other streams do.
#[derive(Clone)]
pub(crate) struct ViewerLimit {
    all: u32,
    free: Arc<Semaphore>,
}

/// The place of a viewer or listener, given back when it is dropped.
pub(crate) struct ViewerPlace {
    _permit: OwnedSemaphorePermit,
    _stream: OpenStream,
}

impl ViewerLimit {
    pub(crate) fn new(count: u32) -> ViewerLimit {
        ViewerLimit { all: count, free: Arc::new(Semaphore::new(count as usize)) }
    }

    /// Takes a place for a stream.
    pub(crate) fn take(&self, stream: OpenStream) -> Result<ViewerPlace, Problem> {
        match self.free.clone().try_acquire_owned() {
            Ok(permit) => Ok(ViewerPlace { _permit: permit, _stream: stream }),
            Err(_) => Err(Failure::busy(format!(
                "{} viewers and listeners are here, as many as are served at once; close one and try again",
                self.all
            ))
            .into()),
        }
    }
}
