//! Paths as text: what is refused outright, and the lexical cleaning of the rest. Nothing here looks at the disk.

use std::path::{Component, Path, PathBuf};

use super::FileError;

const LONGEST_PATH: usize = 4096;
const LONGEST_NAME: usize = 255;

/// Checks a path as the model wrote it and makes it absolute and clean, relative paths counting from `base`.
pub(super) fn absolute(base: &Path, input: &str) -> Result<PathBuf, FileError> {
    if input.is_empty() {
        return Err(FileError::EmptyPath);
    }
    if input.contains('\0') {
        return Err(FileError::NulInPath);
    }
    if input.len() > LONGEST_PATH || input.split('/').any(|name| name.len() > LONGEST_NAME) {
        return Err(FileError::LongPath);
    }
    if input == "~" || input.starts_with("~/") {
        return Err(FileError::Tilde(input.to_owned()));
    }
    Ok(clean(&base.join(input)))
}

/// Removes `.` and resolves `..` by the text alone; `..` above `/` stays at `/`.
fn clean(path: &Path) -> PathBuf {
    let mut cleaned = PathBuf::new();
    for component in path.components() {
        match component {
            Component::CurDir => {}
            Component::ParentDir => {
                cleaned.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => cleaned.push(component),
        }
    }
    cleaned
}

/// Resolves the links of everything but the last component of an absolute path, as far as it exists. The last
/// component is kept as it is, so that a link there is met, and refused, when it is opened.
pub(super) fn real(path: &Path) -> PathBuf {
    let (Some(parent), Some(name)) = (path.parent(), path.file_name()) else { return path.to_owned() };
    let mut missing = vec![name];
    let mut ancestor = parent;
    loop {
        if let Ok(mut found) = ancestor.canonicalize() {
            found.extend(missing.iter().rev());
            return found;
        }
        let (Some(above), Some(name)) = (ancestor.parent(), ancestor.file_name()) else {
            return path.to_owned();
        };
        missing.push(name);
        ancestor = above;
    }
}

/// Says whether `root` as a workspace would hand over a person's whole home directory, or more.
///
/// Both paths are compared as they are; pass canonical ones.
pub fn is_broad(root: &Path, home: Option<&Path>) -> bool {
    root.parent().is_none() || home.is_some_and(|home| home.parent().is_some() && home.starts_with(root))
}
