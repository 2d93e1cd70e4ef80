//! Files in declared roots, reached through directory handles.
