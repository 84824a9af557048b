//! The module `framewire._native`: what the Python package does not do in Python. `python/framewire` wraps it; programs
//! use that package, not this module.
//!
//! - [`core`]: one embedded core;
//! - [`machine`]: what runs with each of its frames: keys, watches, sound;
//! - [`recorder`]: recordings of it, and their replay; [`store`]: the folder of snapshots and recordings;
//! - [`explorer`]: many branches from saved states, for searches;
//! - [`vector`]: a vector of environments, and the arrays that it writes into;
//! - [`errors`]: from Rust's errors to the exceptions of `framewire.errors`.

use pyo3::prelude::*;

mod core;
mod errors;
mod explorer;
mod machine;
mod recorder;
mod store;
mod vector;

#[pymodule]
mod _native {
    #[pymodule_export]
    use crate::core::Core;
    #[pymodule_export]
    use crate::explorer::{Explorer, Rollout};
    #[pymodule_export]
    use crate::store::Store;
    #[pymodule_export]
    use crate::vector::{Batch, VectorEnv};
}
