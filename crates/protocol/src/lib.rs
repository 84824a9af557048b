//! Operations, batches, binary frames and marker text. No I/O.
