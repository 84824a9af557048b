//! Connections to an endpoint: the Lua script in a stock mGBA.
