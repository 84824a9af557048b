//! The end-to-end tests: one binary with a module for each subject.

mod clients;
mod comeback;
mod commands;
mod doctor;
mod ending;
mod game;
mod gameboy;
mod harm;
mod lockstep;
mod memory;
mod once;
mod program;
mod recorded;
mod remote;
mod replay;
mod routes;
mod saves;
mod served;
mod silence;
mod snapshots;
mod stock;
mod stuck;
mod text;
mod timelines;
mod video;
mod watches;
