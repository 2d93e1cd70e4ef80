//! Keys that never show.

use std::fmt;

/// A key or another header value that must not be seen; `Debug` and errors show `***`.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret(String);

impl Secret {
    /// Wraps a secret; white space around it (a final line end, say) is left out.
    pub fn new(text: impl AsRef<str>) -> Self {
        Self(text.as_ref().trim().to_owned())
    }

    /// Returns the secret itself, for the one place that sends it.
    pub fn expose(&self) -> &str {
        &self.0
    }

    /// Says whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replaces every appearance of the secret in `text`.
    ///
    /// Values under four characters are not looked for: they would turn up in ordinary words.
    pub(crate) fn scrub(&self, text: &mut String) {
        if self.0.len() >= 4 && text.contains(&self.0) {
            *text = text.replace(&self.0, "***");
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}
