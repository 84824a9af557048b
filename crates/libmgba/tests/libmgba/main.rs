//! Tests of the wrapper with the real libmgba, on small hand-written ROMs.

mod archives;
mod cheats;
mod comparison;
mod domains;
mod files;
mod hardware;
mod instructions;
mod patches;
mod running;
mod saves;
mod scripts;
mod sensors;
mod states;
mod support;
mod threads;
mod undrawn;
mod unheard;
mod waiting;
