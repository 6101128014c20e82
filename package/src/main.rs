//! `cargo xtask package`: Debian packages, tarballs and OCI images of `proxyd` and `controld`, from existing
//! builds. Equal programs and an equal commit result in equal bytes.

mod control;
mod deb;
mod image;
mod image_trial;
mod machine;
mod manifests;
mod manual;
mod product;
mod sbom;
mod tarball;
mod tree;
mod trial;
mod wait;

use crate::product::{Build, PRODUCTS};
use clap::Parser;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use xtask_kit::command;
use xtask_kit::folder;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::{print_error, say};
use xtask_kit::workspace::Workspace;

/// Make packages of the programs that `cargo xtask ship` built
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask package")]
struct Arguments {
    /// The program proxyd, instead of target/ship/proxyd
    #[arg(long, value_name = "FILE")]
    proxyd: Option<PathBuf>,
    /// The program controld, instead of target/ship/controld
    #[arg(long, value_name = "FILE")]
    controld: Option<PathBuf>,
    /// The folder of the packages, which is emptied; instead of target/package
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Make everything twice and compare the bytes, run lintian, and install, upgrade, remove and purge the
    /// packages in a fresh Debian, and run the images (as root)
    #[arg(long)]
    check: bool,
}

fn main() -> ExitCode {
    match perform(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(TaskError::AlreadyReported) => ExitCode::FAILURE,
        Err(error) => {
            print_error(error.message());
            ExitCode::FAILURE
        }
    }
}

fn perform(arguments: &Arguments) -> Result<(), TaskError> {
    let workspace = Workspace::find()?;
    let target = workspace.target_dir()?;
    let programs = [
        ("proxyd", &arguments.proxyd),
        ("controld", &arguments.controld),
    ]
    .map(|(name, given)| {
        given
            .clone()
            .unwrap_or_else(|| target.join("ship").join(name))
    });
    if let Some(missing) = programs.iter().find(|program| !program.is_file()) {
        let missing = missing.display();
        return Err(TaskError::Failed(format!(
            "{missing} does not exist: run `cargo xtask ship`, or name the program"
        )));
    }
    // Their paths are relative to the folder of the caller.
    let programs = programs.map(|program| program.canonicalize().unwrap_or(program));
    let out = arguments.out.clone();
    let out = out.unwrap_or_else(|| target.join("package"));
    let files = make(&workspace, &programs, &out)?;
    if arguments.check {
        check(&workspace, &programs, &out, &files)?;
    }
    Ok(())
}

/// Makes all files in `out`, and returns their names in order.
fn make(
    workspace: &Workspace,
    programs: &[PathBuf; 2],
    out: &Path,
) -> Result<Vec<String>, TaskError> {
    folder::empty(out)?;
    let epoch = epoch(workspace)?;
    let mut files = Vec::new();
    for (product, program) in PRODUCTS.iter().zip(programs) {
        let build = Build::new(workspace, product, program, &epoch)?;
        files.push(deb::make(&build, out)?);
        files.push(tarball::make(&build, out)?);
        files.push(sbom::make(&build, out)?);
        if command::find("buildah").is_some() {
            files.push(image::make(&build, out)?);
        } else {
            trial::skip(workspace, "no image: buildah is not installed")?;
        }
    }
    files.sort();
    let sums = command::read(workspace.command("sha256sum").current_dir(out).args(&files))?;
    tree::write(&out.join("SHA256SUMS"), &sums)?;
    files.push("SHA256SUMS".to_owned());
    for file in &files {
        say(format!("package: {}", out.join(file).display()));
    }
    Ok(files)
}

/// Builds everything a second time, compares it, and tests the packages.
fn check(
    workspace: &Workspace,
    programs: &[PathBuf; 2],
    out: &Path,
    files: &[String],
) -> Result<(), TaskError> {
    let second = out.join("again");
    make(workspace, programs, &second)?;
    for file in files {
        if tree::read(&out.join(file))? != tree::read(&second.join(file))? {
            return Err(TaskError::Failed(format!("{file}: two builds differ")));
        }
    }
    fs::remove_dir_all(&second).map_err(|source| TaskError::File {
        path: second,
        source,
    })?;
    say("package: two builds have the same bytes");
    let packages: Vec<PathBuf> = files
        .iter()
        .filter(|file| Path::new(file).extension().is_some_and(|end| end == "deb"))
        .map(|file| out.join(file))
        .collect();
    manifests::check(workspace)?;
    trial::lint(workspace, &packages)?;
    trial::install(workspace, &packages)?;
    image_trial::run(workspace, out, files)
}

/// The modification time of every file: the commit's, in seconds since 1970.
fn epoch(workspace: &Workspace) -> Result<String, TaskError> {
    if let Ok(given) = std::env::var("SOURCE_DATE_EPOCH") {
        return Ok(given);
    }
    let log = command::read(workspace.command("git").args(["log", "-1", "--format=%ct"]))?;
    Ok(log.trim().to_owned())
}
