//! Configuration: layers, precedence, keys.
