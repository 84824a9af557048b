//! A safe wrapper over libmgba through a flat C shim.
