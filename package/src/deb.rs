//! A Debian package, put together by `dpkg-deb`.

use crate::control::{self, MAINTAINER};
use crate::manual;
use crate::product::Build;
use crate::tree;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use xtask_kit::command;
use xtask_kit::task_error::TaskError;

/// Builds the package in `out`, and returns its file name.
pub(crate) fn make(build: &Build<'_>, out: &Path) -> Result<String, TaskError> {
    let folder = tempfile::tempdir().map_err(|source| TaskError::System {
        action: "make a temporary folder",
        source,
    })?;
    let root = folder.path();
    add_files(build, root)?;
    let files = tree::set_folder_modes(root)?;
    let metadata = root.join("DEBIAN");
    tree::write(
        &metadata.join("control"),
        control::control(build, kib(&files))?,
    )?;
    tree::write(&metadata.join("conffiles"), conffiles(&files, root))?;
    tree::write(&metadata.join("md5sums"), md5sums(&files, root)?)?;
    for (name, script) in control::scripts(build.product) {
        tree::write_script(&metadata.join(name), &script)?;
    }
    tree::set_folder_modes(root)?;
    let name = format!("{}.deb", build.stem());
    let mut deb = Command::new("dpkg-deb");
    // The number of threads would show in the bytes.
    deb.env("SOURCE_DATE_EPOCH", build.epoch)
        .env("DPKG_DEB_THREADS_MAX", "1")
        .args(["--root-owner-group", "-Zxz", "--build"])
        .arg(root)
        .arg(out.join(&name));
    command::read(&mut deb)?;
    Ok(name)
}

fn add_files(build: &Build<'_>, root: &Path) -> Result<(), TaskError> {
    let name = build.product.name;
    tree::copy_stripped(build.program, &root.join(format!("usr/bin/{name}")))?;
    let unit = format!("usr/lib/systemd/system/{name}.service");
    tree::write(&root.join(unit), build.unit()?)?;
    let configuration = format!("etc/{name}/{name}.kdl");
    tree::write(&root.join(configuration), build.product.configuration)?;
    if let Some(rotation) = build.product.logrotate {
        tree::write(&root.join(format!("etc/logrotate.d/{name}")), rotation)?;
    }
    if let Some(overrides) = build.product.lintian_overrides {
        let path = format!("usr/share/lintian/overrides/{name}");
        tree::write(&root.join(path), overrides)?;
    }
    for (path, script) in &build.completions {
        tree::write(&root.join(path), script)?;
    }
    let manual = root.join(format!("usr/share/man/man8/{name}.8"));
    tree::write(&manual, manual::page(build)?)?;
    tree::compress(&manual)?;
    add_documents(build, &root.join(format!("usr/share/doc/{name}")))
}

fn add_documents(build: &Build<'_>, folder: &Path) -> Result<(), TaskError> {
    tree::write(&folder.join("copyright"), copyright(build)?)?;
    let changelog = folder.join("changelog");
    tree::write(&changelog, changes(build)?)?;
    tree::compress(&changelog)?;
    if build.product.name == "proxyd" {
        let examples = folder.join("examples");
        tree::copy_files(&build.source("examples/configs"), "kdl", &examples)?;
        tree::copy_files(&build.source("examples/systemd"), "socket", &examples)?;
    }
    Ok(())
}

/// Both licences.
fn copyright(build: &Build<'_>) -> Result<String, TaskError> {
    let mit = tree::read_text(&build.source("LICENSE-MIT"))?;
    Ok(format!(
        "{name} is licensed under the MIT License or the Apache License 2.0, at your choice.\n\n\
         On Debian systems, the text of the Apache License, version 2.0, is in\n\
         /usr/share/common-licenses/Apache-2.0. The MIT License:\n\n{mit}",
        name = build.product.name
    ))
}

/// The changelog in Debian's format, with one entry.
fn changes(build: &Build<'_>) -> Result<String, TaskError> {
    let seconds = format!("@{}", build.epoch);
    let date = command::read(
        Command::new("date")
            .env("LC_ALL", "C")
            .args(["-u", "-R", "-d", &seconds]),
    )?;
    let (name, version) = (build.product.name, &build.version);
    Ok(format!(
        "{name} ({version}) unstable; urgency=medium\n\n  * Release {version}.\n\n -- {MAINTAINER}  {date}"
    ))
}

/// Every file below `etc`.
fn conffiles(files: &[PathBuf], root: &Path) -> String {
    let own = files.iter().filter_map(|file| file.strip_prefix(root).ok());
    let own = own.filter(|file| file.starts_with("etc"));
    let lines = own.map(|file| format!("/{}\n", file.display()));
    lines.collect()
}

fn md5sums(files: &[PathBuf], root: &Path) -> Result<String, TaskError> {
    let own = files.iter().filter_map(|file| file.strip_prefix(root).ok());
    let own = own.filter(|file| !file.starts_with("etc"));
    command::read(Command::new("md5sum").current_dir(root).args(own))
}

/// Size of the files, each in whole KiB.
fn kib(files: &[PathBuf]) -> u64 {
    let sizes = files.iter().filter_map(|file| fs::metadata(file).ok());
    sizes.map(|file| file.len().div_ceil(1024)).sum()
}
