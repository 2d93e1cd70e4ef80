//! Child processes, each with its permit.
