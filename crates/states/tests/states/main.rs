//! States of real cores, taken apart and put together.

mod apart;
mod kept;
mod support;
