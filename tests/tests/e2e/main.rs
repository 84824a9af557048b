//! The end-to-end tests: one binary, a module for each thing that is tested.

mod doctor;
mod ending;
mod game;
mod gameboy;
mod once;
mod program;
mod replay;
mod routes;
mod served;
mod stock;
mod stuck;
mod text;
