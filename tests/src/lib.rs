//! End-to-end tests: stock mGBA in a window, faults, browsers.
