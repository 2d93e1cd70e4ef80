//! Licences of everything we build with.

use spdx::{Expression, ParseMode};

use crate::metadata::{Metadata, Package};

/// What may be linked into a program under MIT without further duties than naming the authors. A weak copyleft
/// (MPL-2.0) is missing on purpose: nothing needs it.
const ALLOWED: &[&str] = &[
    "0BSD",
    "Apache-2.0",
    "Apache-2.0 WITH LLVM-exception",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "ISC",
    "MIT",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

/// Single packages under another licence: package, licence, why.
const EXCEPTIONS: &[(&str, &str, &str)] = &[(
    "webpki-root-certs",
    "CDLA-Permissive-2.0",
    "certificates are data; the licence asks only to pass it on",
)];

/// Lists every package whose licence does not fit, with the licence.
pub(crate) fn violations(metadata: &Metadata) -> Vec<String> {
    metadata.packages.iter().filter_map(violation).collect()
}

fn violation(package: &Package) -> Option<String> {
    let name = &package.name;
    let Some(text) = &package.license else {
        return Some(format!("`{name}` names no licence"));
    };
    // Lax, because old packages write `MIT/Apache-2.0`.
    let Ok(expression) = Expression::parse_mode(text, ParseMode::LAX) else {
        return Some(format!("`{name}` has the licence `{text}`, which is no SPDX expression"));
    };
    let fits = expression.evaluate(|required| {
        let required = required.to_string();
        ALLOWED.contains(&required.as_str())
            || EXCEPTIONS.iter().any(|(package, licence, _)| package == name && *licence == required)
    });
    (!fits).then(|| {
        format!("`{name}` has the licence `{text}`, which is not in the list of xtask/src/licences.rs")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Platforms;

    #[test]
    fn every_package_has_a_licence_that_fits() {
        assert_eq!(violations(&Metadata::load(Platforms::ThisOne).unwrap()), Vec::<String>::new());
    }

    #[test]
    fn expressions_are_read_as_what_they_mean() {
        let fits = |name: &str, licence: Option<&str>| {
            violation(&Package {
                id: name.to_owned(),
                name: name.to_owned(),
                license: licence.map(str::to_owned),
                dependencies: Vec::new(),
                member: false,
            })
            .is_none()
        };
        for licence in [
            "MIT",
            "MIT/Apache-2.0",
            "Apache-2.0 / MIT",
            "MIT OR GPL-3.0-only",
            "(MIT OR Apache-2.0) AND Unicode-3.0",
            "Apache-2.0 WITH LLVM-exception",
        ] {
            assert!(fits("some", Some(licence)), "{licence}");
        }
        for licence in
            ["GPL-3.0-or-later", "MIT AND LGPL-2.1-only", "MPL-2.0", "CDLA-Permissive-2.0", "mine", ""]
        {
            assert!(!fits("some", Some(licence)), "{licence}");
        }
        assert!(!fits("some", None));
        assert!(fits("webpki-root-certs", Some("CDLA-Permissive-2.0")));
    }
}
