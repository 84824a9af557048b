//! The wrapper against the real libmgba, with ROMs written out by hand.

mod archives;
mod domains;
mod files;
mod running;
mod saves;
mod scripts;
mod states;
mod support;
mod threads;
mod undrawn;
