//! One trait over an embedded core and an attached mGBA.
