//! The bill of materials: every crate that is linked or runs in the build, as `CycloneDX` 1.5.

use crate::product::Build;
use crate::tree;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use xtask_kit::task_error::TaskError;

/// Writes the bill in `out`, and returns its file name.
pub(crate) fn make(build: &Build<'_>, out: &Path) -> Result<String, TaskError> {
    let metadata = build.workspace.metadata()?;
    let lock = tree::read_text(&build.source("Cargo.lock"))?;
    let (name, version) = (build.product.name, &build.version);
    let components = components(&metadata, name, &checksums(&lock));
    let bill = json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "name": name,
                "version": version,
                "licenses": [{ "expression": "MIT OR Apache-2.0" }],
            },
        },
        "components": components,
    });
    let name = format!("{}.cdx.json", build.stem());
    let text = serde_json::to_string_pretty(&bill).map_err(|source| TaskError::Json {
        program: "package",
        source,
    })?;
    tree::write(&out.join(&name), text + "\n")?;
    Ok(name)
}

/// The dependencies of the program, sorted by name, without the ones of tests.
fn components(
    metadata: &Value,
    program: &str,
    checksums: &BTreeMap<(String, String), String>,
) -> Vec<Value> {
    let packages: BTreeMap<&str, &Value> = list(&metadata["packages"])
        .filter_map(|package| Some((package["id"].as_str()?, package)))
        .collect();
    let nodes: BTreeMap<&str, &Value> = metadata
        .pointer("/resolve/nodes")
        .into_iter()
        .flat_map(list)
        .filter_map(|node| Some((node["id"].as_str()?, node)))
        .collect();
    let root = packages.iter().find(|(_, one)| one["name"] == program);
    let mut waiting: Vec<&str> = root.map(|(id, _)| *id).into_iter().collect();
    let mut found: BTreeSet<&str> = waiting.iter().copied().collect();
    while let Some(id) = waiting.pop() {
        let needs = nodes
            .get(id)
            .into_iter()
            .flat_map(|node| list(&node["deps"]));
        let built = needs.filter(|need| list(&need["dep_kinds"]).any(|kind| kind["kind"] != "dev"));
        for need in built.filter_map(|need| need["pkg"].as_str()) {
            if found.insert(need) {
                waiting.push(need);
            }
        }
    }
    let mut components: Vec<Value> = found
        .iter()
        .filter_map(|id| packages.get(id))
        .filter(|package| package["name"] != program)
        .map(|package| component(package, checksums))
        .collect();
    components.sort_by_cached_key(|one| one["purl"].to_string());
    components
}

fn component(package: &Value, checksums: &BTreeMap<(String, String), String>) -> Value {
    let text = |field: &str| package[field].as_str().unwrap_or_default().to_owned();
    let (name, version) = (text("name"), text("version"));
    let mut component = serde_json::Map::new();
    let mut put = |field: &str, value: Value| component.insert(field.to_owned(), value);
    put("type", json!("library"));
    put("name", json!(name));
    put("version", json!(version));
    put("purl", json!(format!("pkg:cargo/{name}@{version}")));
    if let Some(license) = package["license"].as_str() {
        // The syntax before SPDX expressions.
        let expression = license.replace('/', " OR ");
        put("licenses", json!([{ "expression": expression }]));
    }
    if let Some(sum) = checksums.get(&(name, version)) {
        put("hashes", json!([{ "alg": "SHA-256", "content": sum }]));
    }
    component.into()
}

/// SHA-256 of each package's archive, by name and version, from `Cargo.lock`.
fn checksums(lock: &str) -> BTreeMap<(String, String), String> {
    let value = |package: &str, key: &str| {
        let begin = format!("{key} = \"");
        let line = package.lines().find_map(|line| line.strip_prefix(&begin))?;
        Some(line.trim_end_matches('"').to_owned())
    };
    let packages = lock.split("[[package]]").skip(1);
    packages
        .filter_map(|package| {
            let key = (value(package, "name")?, value(package, "version")?);
            Some((key, value(package, "checksum")?))
        })
        .collect()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dependencies_of_tests_are_left_out() {
        let normal = json!([{ "kind": null }]);
        let metadata = json!({
            "packages": [
                { "id": "p", "name": "proxyd", "version": "1.0.0" },
                { "id": "a", "name": "a", "version": "2.0.0", "license": "MIT/Apache-2.0" },
                { "id": "b", "name": "b", "version": "3.0.0" },
            ],
            "resolve": { "nodes": [
                { "id": "p", "deps": [
                    { "pkg": "a", "dep_kinds": normal },
                    { "pkg": "b", "dep_kinds": [{ "kind": "dev" }] },
                ] },
            ] },
        });
        let lock = "[[package]]\nname = \"a\"\nversion = \"2.0.0\"\nchecksum = \"ff\"\n";
        let found = components(&metadata, "proxyd", &checksums(lock));
        assert_eq!(found.len(), 1);
        assert_eq!(found[0]["purl"], "pkg:cargo/a@2.0.0");
        assert_eq!(found[0]["hashes"][0]["content"], "ff");
        assert_eq!(found[0]["licenses"][0]["expression"], "MIT OR Apache-2.0");
    }
}
