//! The end-to-end tests: one binary, a module for each thing that is tested.

mod routes;
mod served;
mod stock;
