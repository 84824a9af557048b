//! Ways to use sockets, for comparison and measurement.
