//! Tests the stream of pictures with test vectors, random pictures and malformed messages. Also tests PNG and JPEG.

mod hostile;
mod scene;
mod still;
mod streams;
mod vectors;
