//! The stream of pictures: against its vectors, with random pictures, and with hostile messages; and whole pictures.

mod hostile;
mod scene;
mod still;
mod streams;
mod vectors;
