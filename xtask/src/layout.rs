//! The arrows between crates: who may use whom.
//!
//! A crate may use any lower layer, never its own layer or a higher one; tests and build scripts are held to the same.
//! A few arrows that the layers would allow are ruled out on purpose. `ARCHITECTURE.md` has the reasons at length.

use std::collections::BTreeSet;

use crate::metadata::{Metadata, Package};

/// Layers, lowest first. A new crate gets its place here.
const LAYERS: &[(u8, &[&str])] = &[
    (0, &["alisio-protocol"]),
    (1, &["alisio-policy", "alisio-shell"]),
    (2, &["alisio-sdk"]),
    (3, &["alisio-conformance", "alisio-host", "alisio-store"]),
    (4, &["alisio-data", "alisio-engine", "alisio-plugins", "alisio-providers", "alisio-tools"]),
    (5, &["alisio-server", "alisio-tui"]),
    (6, &["alisio"]),
];

/// The chores stand beside the layers: they use none of our crates, and none uses them.
const OUTSIDE: &str = "xtask";

/// Arrows that the layers allow and we don't: who, what, why.
const RULED_OUT: &[(&str, &str, &str)] =
    &[("alisio-engine", "alisio-host", "a whole turn runs in a test without a machine")];

/// Crates that see nothing of ours but these.
const SEES_ONLY: &[(&str, &[&str], &str)] = &[
    ("alisio-server", &["alisio-engine", "alisio-protocol"], "a surface shows events and sends operations"),
    ("alisio-tui", &["alisio-engine", "alisio-protocol"], "a surface shows events and sends operations"),
];

/// Packages of others that only these crates use directly (tests aside).
const OWNED: &[(&str, &[&str], &str)] = &[
    ("anyhow", &["alisio", "xtask"], "a library has an error type of its own"),
    ("rusqlite", &["alisio-store", "alisio-data"], "the state database has one owner"),
];

/// Crates that decide or describe and never act.
const PURE: &[&str] = &["alisio-protocol", "alisio-policy", "alisio-shell"];

/// What must not be linked into those, however far down.
const IMPURE: &[&str] = &[
    "async-executor",
    "async-io",
    "async-std",
    "fastrand",
    "futures-executor",
    "getrandom",
    "mio",
    "rand",
    "reqwest",
    "rusqlite",
    "smol",
    "tokio",
];

/// Lists every arrow that must not be, each with crate and rule.
pub(crate) fn violations(metadata: &Metadata) -> Vec<String> {
    let members: BTreeSet<&str> = metadata.members().map(|package| package.name.as_str()).collect();
    let mut errors = Vec::new();
    for package in metadata.members() {
        let name = package.name.as_str();
        if layer(name).is_none() && name != OUTSIDE {
            errors.push(format!("`{name}` has no layer; give it one in xtask/src/layout.rs"));
            continue;
        }
        for used in package.dependencies.iter().filter(|used| members.contains(used.name.as_str())) {
            // What a neighbour makes may be what the tests of a crate are about.
            let is_test_of_neighbour =
                used.kind.as_deref() == Some("dev") && layer(name) == layer(&used.name);
            if !is_test_of_neighbour {
                errors.extend(forbidden(name, &used.name));
            }
        }
        errors.extend(owned(package));
        if PURE.contains(&name) {
            let linked = metadata.everything_in(package);
            errors.extend(IMPURE.iter().filter(|impure| linked.contains(*impure)).map(|impure| {
                format!(
                    "`{name}` is built with `{impure}`; it must have no runtime, file, clock or randomness"
                )
            }));
        }
    }
    errors
}

fn forbidden(name: &str, used: &str) -> Option<String> {
    if let Some((.., reason)) = RULED_OUT.iter().find(|(who, what, _)| *who == name && *what == used) {
        return Some(format!("`{name}` must not see `{used}`: {reason}"));
    }
    if let Some((_, sees, reason)) =
        SEES_ONLY.iter().find(|(who, sees, _)| *who == name && !sees.contains(&used))
    {
        return Some(format!("`{name}` must not see `{used}`, only {}: {reason}", sees.join(" and ")));
    }
    match (layer(name), layer(used)) {
        (Some(own), Some(other)) if other < own => None,
        (Some(own), Some(other)) => {
            Some(format!("`{name}` (layer {own}) must not use `{used}` (layer {other}): only lower layers"))
        }
        _ => Some(format!("`{name}` must not use `{used}`: the chores stand beside the layers")),
    }
}

fn owned(package: &Package) -> impl Iterator<Item = String> + '_ {
    package.dependencies.iter().filter(|used| used.kind.is_none()).filter_map(|used| {
        let (what, owners, reason) = OWNED.iter().find(|(what, ..)| *what == used.name)?;
        let name = &package.name;
        (!owners.contains(&name.as_str()))
            .then(|| format!("`{name}` must not use `{what}`, only {} may: {reason}", owners.join(" and ")))
    })
}

fn layer(name: &str) -> Option<u8> {
    LAYERS.iter().find(|(_, crates)| crates.contains(&name)).map(|(layer, _)| *layer)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::{Dependency, Platforms};

    #[test]
    fn this_workspace_keeps_its_layers() {
        assert_eq!(violations(&Metadata::load(Platforms::ThisOne).unwrap()), Vec::<String>::new());
    }

    /// Makes a workspace out of `who -> what` lines; names that begin with `alisio` and `xtask` are members.
    fn workspace(arrows: &[(&str, &str)]) -> Metadata {
        let mut metadata = Metadata::default();
        let names: BTreeSet<&str> = arrows.iter().flat_map(|(who, what)| [*who, *what]).collect();
        for name in names {
            let uses = arrows.iter().filter(|(who, _)| *who == name).map(|(_, what)| (*what).to_owned());
            metadata.built_with.insert(name.to_owned(), uses.clone().collect());
            metadata.packages.push(Package {
                id: name.to_owned(),
                name: name.to_owned(),
                license: None,
                dependencies: uses.map(|name| Dependency { name, kind: None }).collect(),
                member: name.starts_with("alisio") || name == OUTSIDE,
            });
        }
        metadata
    }

    #[test]
    fn wrong_arrows_are_named_with_their_rule() {
        type Arrows = &'static [(&'static str, &'static str)];
        let cases: &[(Arrows, &[&str])] = &[
            (&[("alisio", "alisio-tools"), ("alisio-tools", "alisio-host"), ("alisio-host", "tokio")], &[]),
            (
                &[("alisio-host", "alisio-tools")],
                &["`alisio-host` (layer 3) must not use `alisio-tools` (layer 4): only lower layers"],
            ),
            (
                &[("alisio-tools", "alisio-providers")],
                &["`alisio-tools` (layer 4) must not use `alisio-providers` (layer 4): only lower layers"],
            ),
            (
                &[("alisio-policy", "alisio-shell")],
                &["`alisio-policy` (layer 1) must not use `alisio-shell` (layer 1): only lower layers"],
            ),
            (
                &[("alisio-engine", "alisio-host")],
                &[
                    "`alisio-engine` must not see `alisio-host`: a whole turn runs in a test without a machine",
                ],
            ),
            (
                &[("alisio-tui", "alisio-store")],
                &["`alisio-tui` must not see `alisio-store`, only alisio-engine and alisio-protocol: \
                   a surface shows events and sends operations"],
            ),
            (
                &[("alisio-policy", "harmless"), ("harmless", "tokio")],
                &[
                    "`alisio-policy` is built with `tokio`; it must have no runtime, file, clock or randomness",
                ],
            ),
            (
                &[("alisio-engine", "rusqlite")],
                &["`alisio-engine` must not use `rusqlite`, only alisio-store and alisio-data may: \
                   the state database has one owner"],
            ),
            (&[("alisio", "xtask")], &["`alisio` must not use `xtask`: the chores stand beside the layers"]),
            (
                &[("alisio-core", "serde")],
                &["`alisio-core` has no layer; give it one in xtask/src/layout.rs"],
            ),
        ];
        for (arrows, expected) in cases {
            assert_eq!(violations(&workspace(arrows)), *expected, "{arrows:?}");
        }
    }
}
