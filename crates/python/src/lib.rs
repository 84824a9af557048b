//! The module `framewire._native`: the native part of the Python package. The Python code in `python/framewire` wraps
//! it; programs use that package, not this module.
//!
//! - [`core`]: one embedded core;
//! - [`machine`]: a core, and the work that each frame needs: keys, watches, sound;
//! - [`recorder`]: records a core and replays recordings; [`store`]: the folder of snapshots and recordings;
//! - [`explorer`]: plays many branches from saved states, for searches;
//! - [`game`]: the files that a game file names;
//! - [`vector`]: a vector of environments, and the arrays that it writes into;
//! - [`errors`]: converts Rust's errors to the exceptions of `framewire.errors`.

use pyo3::prelude::*;

mod core;
mod errors;
mod explorer;
mod game;
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
    use crate::game::named_files;
    #[pymodule_export]
    use crate::store::Store;
    #[pymodule_export]
    use crate::vector::{Batch, VectorEnv};
}
