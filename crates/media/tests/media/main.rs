//! Tests the stream of pictures with test vectors, random pictures and malformed messages; and tests whole pictures.

mod hostile;
mod scene;
mod still;
mod streams;
mod vectors;
