//! Every configuration in the documentation and the examples is valid.
#![expect(clippy::unwrap_used, reason = "tests may fail loudly")]

use std::fs;
use std::path::{Path, PathBuf};

const FENCE: &str = "```kdl\n";

#[test]
fn every_example_is_right() {
    let folder = root().join("examples/configs");
    let files = files(&folder, "kdl");
    assert!(!files.is_empty());
    for file in files {
        // Files that an example names belong to the reader: they are not opened.
        let text = fs::read_to_string(&file).unwrap();
        if let Err(report) = proxy_config::parse(&text, &file.display().to_string()) {
            panic!("{report}");
        }
    }
}

#[test]
fn every_block_in_the_documentation_is_right() {
    let mut found = 0;
    for file in files(&root(), "md") {
        let text = fs::read_to_string(&file).unwrap();
        for block in text.split(FENCE).skip(1) {
            let block = block.split("```").next().unwrap_or_default();
            let name = file.display().to_string();
            found += 1;
            if let Err(report) = proxy_config::parse(block, &name) {
                panic!("{report}");
            }
        }
    }
    assert!(found > 0);
}

#[test]
fn the_configuration_in_the_manifest_is_right() {
    let file = root().join("examples/kubernetes/proxyd.yaml");
    let text = fs::read_to_string(&file).unwrap();
    let (_, rest) = text.split_once("  proxyd.kdl: |\n").unwrap();
    let lines = rest.lines();
    let block = lines.take_while(|line| line.is_empty() || line.starts_with("    "));
    let block: Vec<&str> = block.map(str::trim_start).collect();
    assert!(block.len() > 10, "{block:?}");
    if let Err(report) = proxy_config::parse(&block.join("\n"), "proxyd.yaml") {
        panic!("{report}");
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The files below `folder` with this extension, without build results.
fn files(folder: &Path, ending: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") && !path.ends_with(".git") {
            found.extend(files(&path, ending));
        } else if path.extension().is_some_and(|found| found == ending) {
            found.push(path);
        }
    }
    found
}
