//! An archive for other systems: the program, its completions, manual, unit and examples.

use crate::manual;
use crate::product::Build;
use crate::tree;
use std::path::Path;
use std::process::Command;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;

/// Documents of the repository in each archive.
const DOCUMENTS: [&str; 4] = ["README.md", "CHANGELOG.md", "LICENSE-MIT", "LICENSE-APACHE"];

/// Builds the archive in `out`, and returns its file name.
pub(crate) fn make(build: &Build<'_>, out: &Path) -> Result<String, TaskError> {
    let folder = tempfile::tempdir().map_err(|source| TaskError::System {
        action: "make a temporary folder",
        source,
    })?;
    let stem = build.stem();
    let root = folder.path().join(&stem);
    let name = build.product.name;
    tree::copy_stripped(build.program, &root.join(name))?;
    tree::write(&root.join(format!("{name}.8")), manual::page(build)?)?;
    tree::write(&root.join(format!("{name}.service")), build.unit()?)?;
    tree::write(
        &root.join(format!("{name}.kdl")),
        build.product.configuration,
    )?;
    for (path, script) in &build.completions {
        let file = Path::new(path).file_name().unwrap_or_default();
        tree::write(&root.join("completions").join(file), script)?;
    }
    for document in DOCUMENTS {
        tree::write(&root.join(document), tree::read(&build.source(document))?)?;
    }
    let examples = build.source("examples/configs");
    if name == "proxyd" {
        tree::copy_files(&examples, "kdl", &root.join("examples"))?;
    }
    tree::set_folder_modes(&root)?;
    let archive = out.join(format!("{stem}.tar"));
    self::archive(build, folder.path(), &stem, &archive)?;
    tree::compress(&archive)?;
    Ok(format!("{stem}.tar.gz"))
}

/// Archives the entry `name` of `folder`: in the order of the names, owned by root, with the commit's time.
pub(crate) fn archive(
    build: &Build<'_>,
    folder: &Path,
    name: &str,
    to: &Path,
) -> Result<(), TaskError> {
    let mut tar = Command::new("tar");
    tar.args(["--sort=name", "--owner=0", "--group=0", "--numeric-owner"])
        .args(["--format=ustar", &format!("--mtime=@{}", build.epoch)])
        .arg("--directory")
        .arg(folder)
        .arg("--create")
        .arg("--file")
        .arg(to)
        .arg(name);
    command::run(&mut tar)
}
