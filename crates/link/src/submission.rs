use std::time::Instant;

use framewire_protocol::{Batch, Outcome};

use crate::LinkError;

/// Called once with what became of a batch.
pub type Respond = Box<dyn FnOnce(Result<Outcome, LinkError>) + Send>;

/// A batch on its way into the link.
pub(crate) struct Submission {
    pub batch: Batch,
    pub deadline: Instant,
    pub respond: Respond,
}
