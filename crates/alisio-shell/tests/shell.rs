//! What lines of shell are understood to do.
fn main() {}
