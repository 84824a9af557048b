//! What routes share: `extract` has what handlers take from a request, `parameters` checks the names in a query.

pub(crate) mod extract;
pub(crate) mod parameters;
