//! What cargo knows of the packages, reduced to what the checks ask.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result};
use serde::Deserialize;

/// Which platforms' dependencies to look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Platforms {
    /// Those of every platform; cargo may have to fetch packages that this machine never builds.
    All,
    /// Only this one's: what the build fetched is enough, so that a test can ask.
    #[cfg(test)]
    ThisOne,
}

/// Packages and what they use.
#[derive(Debug, Default)]
pub(crate) struct Metadata {
    /// Every package, members and others.
    pub(crate) packages: Vec<Package>,
    /// What each package (by id) is built with, tests and build scripts left out.
    pub(crate) built_with: BTreeMap<String, Vec<String>>,
}

/// One package.
#[derive(Debug, Deserialize)]
pub(crate) struct Package {
    pub(crate) id: String,
    pub(crate) name: String,
    /// The licence as SPDX expression.
    pub(crate) license: Option<String>,
    pub(crate) dependencies: Vec<Dependency>,
    /// Whether it is one of ours.
    #[serde(skip)]
    pub(crate) member: bool,
}

/// One line of a package's `Cargo.toml`.
#[derive(Debug, Deserialize)]
pub(crate) struct Dependency {
    pub(crate) name: String,
    /// `dev` or `build`; nothing for the normal ones.
    pub(crate) kind: Option<String>,
}

impl Metadata {
    /// Asks cargo.
    pub(crate) fn load(platforms: Platforms) -> Result<Self> {
        let mut command = crate::cargo();
        command.args(["metadata", "--format-version", "1", "--all-features", "--quiet"]);
        match platforms {
            Platforms::All => {}
            #[cfg(test)]
            Platforms::ThisOne => {
                command.args(["--filter-platform", &crate::dist::host_target()?]);
            }
        }
        Self::parse(&crate::output_of(command)?)
    }

    fn parse(json: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        struct Raw {
            packages: Vec<Package>,
            workspace_members: BTreeSet<String>,
            resolve: Resolve,
        }
        #[derive(Deserialize)]
        struct Resolve {
            nodes: Vec<Node>,
        }
        #[derive(Deserialize)]
        struct Node {
            id: String,
            deps: Vec<Arrow>,
        }
        #[derive(Deserialize)]
        struct Arrow {
            pkg: String,
            dep_kinds: Vec<Kind>,
        }
        #[derive(Deserialize)]
        struct Kind {
            kind: Option<String>,
        }

        let raw: Raw =
            serde_json::from_slice(json).context("the answer of `cargo metadata` was not understood")?;
        let mut packages = raw.packages;
        for package in &mut packages {
            package.member = raw.workspace_members.contains(&package.id);
        }
        let normal = |arrow: &Arrow| arrow.dep_kinds.iter().any(|kind| kind.kind.is_none());
        let built_with = raw
            .resolve
            .nodes
            .into_iter()
            .map(|node| (node.id, node.deps.into_iter().filter(normal).map(|arrow| arrow.pkg).collect()))
            .collect();
        Ok(Self { packages, built_with })
    }

    /// Our own packages.
    pub(crate) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.iter().filter(|package| package.member)
    }

    /// The names of everything that is linked into `package`, itself left out.
    pub(crate) fn everything_in(&self, package: &Package) -> BTreeSet<&str> {
        let mut seen = BTreeSet::new();
        let mut waiting = vec![package.id.as_str()];
        while let Some(id) = waiting.pop() {
            for used in self.built_with.get(id).into_iter().flatten() {
                if seen.insert(used.as_str()) {
                    waiting.push(used);
                }
            }
        }
        self.packages
            .iter()
            .filter(|one| seen.contains(one.id.as_str()))
            .map(|one| one.name.as_str())
            .collect()
    }
}
