//! The end-to-end tests: one binary, a module for each thing that is tested.

mod doctor;
mod ending;
mod game;
mod once;
mod program;
mod routes;
mod served;
mod stock;
mod text;
