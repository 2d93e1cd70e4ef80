//! Model services: one file a wire format, all behind one streaming trait.
