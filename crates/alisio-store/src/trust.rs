//! Which project directories a person trusts, pinned to their content.
