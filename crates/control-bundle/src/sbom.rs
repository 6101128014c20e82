//! The bill of materials: `CycloneDX` 1.5, without anything that differs from run to run.

use crate::manifest::Requirements;
use control_auth::sha256_hex;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const BUNDLE: &str = "bundle";
const PROXY: &str = "proxyd";

/// The document about `files`, by their names in the bundle.
pub(crate) fn document(files: &BTreeMap<String, Vec<u8>>, requirements: &Requirements) -> Value {
    let components = files.iter().map(|(name, bytes)| {
        json!({
            "type": "file",
            "bom-ref": reference(name),
            "name": name,
            "hashes": [{"alg": "SHA-256", "content": sha256_hex(bytes)}],
        })
    });
    let mut components: Vec<Value> = components.collect();
    components.push(json!({
        "type": "application",
        "bom-ref": PROXY,
        "name": PROXY,
        "version": requirements.least_proxy_version,
        "description": "The least version of the proxy that this configuration needs",
    }));
    let mut needs: Vec<String> = files.keys().map(|name| reference(name)).collect();
    needs.push(PROXY.to_owned());
    json!({
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {
            "component": {"type": "application", "bom-ref": BUNDLE, "name": "configuration"},
        },
        "components": components,
        "dependencies": [{"ref": BUNDLE, "dependsOn": needs}],
    })
}

fn reference(name: &str) -> String {
    format!("file:{name}")
}
