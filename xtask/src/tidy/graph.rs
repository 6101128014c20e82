//! Packages of the workspace and their dependencies, as resolved by `cargo`.

use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

/// Packages by ID.
#[derive(Debug, Default)]
pub(super) struct Graph {
    packages: BTreeMap<String, Package>,
}

#[derive(Debug, Default)]
pub(super) struct Package {
    pub(super) name: String,
    /// Whether the package belongs to the workspace.
    pub(super) member: bool,
    /// Folder of the manifest, relative to the root; empty for packages outside of the workspace.
    pub(super) folder: String,
    /// `package.metadata.architecture.layer`
    pub(super) layer: Option<String>,
    /// `package.license`
    pub(super) license: Option<String>,
    /// IDs of the direct normal dependencies.
    needs: Vec<String>,
}

impl Graph {
    /// Parses the output of `cargo metadata`.
    pub(super) fn from_metadata(metadata: &Value, root: &Path) -> Self {
        let members: BTreeSet<&str> = list(metadata, "/workspace_members")
            .filter_map(Value::as_str)
            .collect();
        let mut packages: BTreeMap<String, Package> = list(metadata, "/packages")
            .filter_map(|value| {
                let id = text(value, "/id")?;
                let package = package(value, members.contains(id.as_str()), root)?;
                Some((id, package))
            })
            .collect();
        for node in list(metadata, "/resolve/nodes") {
            let id = text(node, "/id").unwrap_or_default();
            if let Some(package) = packages.get_mut(&id) {
                package.needs = normal_dependencies(node);
            }
        }
        Self { packages }
    }

    /// Returns the packages of the workspace.
    pub(super) fn members(&self) -> impl Iterator<Item = &Package> {
        self.packages.values().filter(|package| package.member)
    }

    /// Returns the direct dependencies of a package.
    pub(super) fn needs<'a>(&'a self, package: &'a Package) -> impl Iterator<Item = &'a Package> {
        package.needs.iter().filter_map(|id| self.packages.get(id))
    }

    /// Returns all dependencies of a package, each as the shortest chain of names to it.
    pub(super) fn reached<'a>(&'a self, from: &'a Package) -> Vec<Vec<&'a str>> {
        let mut seen = BTreeSet::new();
        let mut ways = Vec::new();
        let mut open = VecDeque::from([(from, vec![from.name.as_str()])]);
        while let Some((package, way)) = open.pop_front() {
            for next in self.needs(package) {
                if !seen.insert(std::ptr::from_ref(next)) {
                    continue;
                }
                let mut longer = way.clone();
                longer.push(&next.name);
                ways.push(longer.clone());
                open.push_back((next, longer));
            }
        }
        ways
    }

    /// Creates a graph for tests from names, layers and names of dependencies.
    #[cfg(test)]
    pub(super) fn ours(packages: &[(&str, &str, &[&str])]) -> Self {
        let packages = packages.iter().map(|(name, layer, needs)| {
            let package = Package {
                name: (*name).to_owned(),
                member: !layer.is_empty(),
                folder: format!("crates/{name}"),
                layer: Some((*layer).to_owned()),
                license: None,
                needs: needs.iter().map(|need| (*need).to_owned()).collect(),
            };
            ((*name).to_owned(), package)
        });
        Self {
            packages: packages.collect(),
        }
    }
}

fn package(value: &Value, member: bool, root: &Path) -> Option<Package> {
    let manifest = text(value, "/manifest_path")?;
    let folder = Path::new(&manifest).parent()?.strip_prefix(root);
    Some(Package {
        name: text(value, "/name")?,
        member,
        folder: folder
            .map(|folder| folder.to_string_lossy().into_owned())
            .unwrap_or_default(),
        layer: text(value, "/metadata/architecture/layer"),
        license: text(value, "/license"),
        needs: Vec::new(),
    })
}

/// Returns the IDs of normal dependencies. Those for builds and tests are not linked into releases.
fn normal_dependencies(node: &Value) -> Vec<String> {
    list(node, "/deps")
        .filter(|dependency| {
            list(dependency, "/dep_kinds").any(|kind| kind.get("kind").is_none_or(Value::is_null))
        })
        .filter_map(|dependency| text(dependency, "/pkg"))
        .collect()
}

fn list<'a>(value: &'a Value, pointer: &str) -> impl Iterator<Item = &'a Value> {
    let found = value.pointer(pointer).and_then(Value::as_array);
    found.into_iter().flatten()
}

fn text(value: &Value, pointer: &str) -> Option<String> {
    Some(value.pointer(pointer)?.as_str()?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_normal_dependencies_are_followed() {
        let metadata = json!({
            "workspace_members": ["a"],
            "packages": [
                {"id": "a", "name": "a", "manifest_path": "/project/crates/a/Cargo.toml",
                 "metadata": {"architecture": {"layer": "core"}}, "license": "MIT"},
                {"id": "b", "name": "b", "manifest_path": "/elsewhere/b/Cargo.toml"},
                {"id": "c", "name": "c", "manifest_path": "/elsewhere/c/Cargo.toml"},
                {"id": "d", "name": "d", "manifest_path": "/elsewhere/d/Cargo.toml"},
            ],
            "resolve": {"nodes": [
                {"id": "a", "deps": [
                    {"pkg": "b", "dep_kinds": [{"kind": null}]},
                    {"pkg": "d", "dep_kinds": [{"kind": "dev"}, {"kind": "build"}]},
                ]},
                {"id": "b", "deps": [{"pkg": "c", "dep_kinds": [{"kind": null}]}]},
            ]},
        });

        let graph = Graph::from_metadata(&metadata, Path::new("/project"));
        let own: Vec<&Package> = graph.members().collect();
        let [a] = own.as_slice() else {
            panic!("one member, not {own:?}");
        };
        assert_eq!(a.folder, "crates/a");
        assert_eq!(a.layer.as_deref(), Some("core"));
        assert_eq!(graph.reached(a), [vec!["a", "b"], vec!["a", "b", "c"]]);
    }
}
