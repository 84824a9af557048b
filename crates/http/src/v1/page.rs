use serde::Deserialize;
use utoipa::IntoParams;

use crate::problem::Problem;

/// Most items of a list in one reply.
const MOST: usize = 1000;

/// EmulatorParam part of a list is wanted.
#[derive(Deserialize, IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
pub(crate) struct Page {
    /// How many to leave out at the beginning: `next` of the reply before.
    #[serde(default)]
    #[param(default = 0)]
    pub(crate) offset: usize,
    /// How many at most.
    #[serde(default = "usual")]
    #[param(default = 100, minimum = 1, maximum = 1000)]
    pub(crate) limit: usize,
}

fn usual() -> usize {
    100
}

impl Page {
    pub(crate) fn check(&self) -> Result<(), Problem> {
        if (1..=MOST).contains(&self.limit) {
            return Ok(());
        }
        let problem = format!("is {}", self.limit);
        Err(Problem::parameter("limit", &problem, format!("a whole number from 1 to {MOST}")))
    }

    /// Where the next part begins, if this one of `length` is not the last of `total`.
    pub(crate) fn next(&self, length: usize, total: usize) -> Option<usize> {
        let next = self.offset.saturating_add(length);
        (next < total).then_some(next)
    }
}
