//! `cargo xtask ship`: proxyd as it ships, optimised for what it does most.
//!
//! A compiler that knows which way branches go lays code out and inlines by that. It learns it from a
//! profile, which is made on the spot: a build that counts does every case of the benchmarks for a short
//! time, with no peer beside it. Decision 0018.

use crate::bench;
use crate::command;
use crate::folder;
use crate::setup;
use crate::task_error::TaskError;
use crate::terminal::say;
use crate::workspace::Workspace;
use proxy_load::clock::Stopwatch;
use std::fs;
use std::path::{Path, PathBuf};

/// Loops over bytes of names and values are known to turn 8 to 40 times. LLVM gives those up that turn
/// fewer than 16 times on average, and two vectors do most of them.
const VECTORISE_SHORT_LOOPS: &str = "-Cllvm-args=-vectorizer-min-trip-count=4";

/// Trains, builds the binary, and says where it lies.
pub(crate) fn run(workspace: &Workspace) -> Result<(), TaskError> {
    let watch = Stopwatch::start();
    let profile = profile_path(workspace)?;
    train(workspace, &profile)?;
    let binary = build_with(workspace, &profile)?;
    let minutes = watch.elapsed().as_secs_f64() / 60.0;
    say(format!(
        "ship: built {} in {minutes:.1} min",
        binary.display()
    ));
    Ok(())
}

/// Builds proxyd as it ships, trained if no run has done so yet, and returns where it lies:
/// `target/ship/proxyd`.
pub(crate) fn build(workspace: &Workspace) -> Result<PathBuf, TaskError> {
    let profile = profile_path(workspace)?;
    if !profile.is_file() {
        train(workspace, &profile)?;
    }
    build_with(workspace, &profile)
}

/// Builds proxyd with `cargo build --release` alone: what the guard measures.
pub(crate) fn build_release(workspace: &Workspace) -> Result<PathBuf, TaskError> {
    say("guard: building proxyd");
    let arguments = [
        "build",
        "--release",
        "--locked",
        "--quiet",
        "--package",
        "proxyd",
    ];
    command::run(&mut workspace.cargo(&arguments))?;
    Ok(workspace.target_dir()?.join("release/proxyd"))
}

fn build_with(workspace: &Workspace, profile: &Path) -> Result<PathBuf, TaskError> {
    let target = workspace.target_dir()?;
    say("ship: building proxyd");
    let use_profile = format!("-Cprofile-use={}", profile.display());
    let built = compile(workspace, &target, &[&use_profile, VECTORISE_SHORT_LOOPS])?;
    let folder = target.join("ship");
    let (binary, fresh) = (folder.join("proxyd"), folder.join("proxyd.new"));
    // In place of what is there, not over it: that may be running.
    fs::create_dir_all(&folder)
        .and_then(|()| fs::copy(&built, &fresh))
        .and_then(|_| fs::rename(&fresh, &binary))
        .map_err(|source| TaskError::File {
            path: binary.clone(),
            source,
        })?;
    Ok(binary)
}

/// Runs the benchmarks with a binary that counts, and merges what it counted into `profile`.
fn train(workspace: &Workspace, profile: &Path) -> Result<(), TaskError> {
    setup::for_training(workspace)?;
    let merger = merger(workspace)?;
    let training = workspace.target_dir()?.join("training");
    let counts = training.join("counts");
    folder::empty(&counts)?;
    say("ship: building proxyd with counters");
    let count = format!("-Cprofile-generate={}", counts.display());
    let counting = compile(workspace, &training, &[&count])?;
    bench::rehearse(workspace, counting)?;
    let mut merge = workspace.command(&merger.to_string_lossy());
    // Sparse: what was never called is optimised as if nothing were known, not as if it were rare.
    merge.args(["merge", "--sparse", "--output"]);
    command::run(merge.arg(profile).arg(&counts))
}

/// How often each branch is taken, as `llvm-profdata` merges it.
fn profile_path(workspace: &Workspace) -> Result<PathBuf, TaskError> {
    Ok(workspace.target_dir()?.join("training/proxyd.profdata"))
}

/// Builds proxyd in the release profile with more flags for all that goes into it.
fn compile(workspace: &Workspace, target: &Path, flags: &[&str]) -> Result<PathBuf, TaskError> {
    let host = workspace.host()?;
    // A named target keeps the flags away from build scripts.
    let arguments = ["build", "--release", "--locked", "--quiet", "--target"];
    let mut cargo = workspace.cargo(&arguments);
    cargo
        .args([&host, "--package", "proxyd"])
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    command::run(&mut cargo)?;
    Ok(target.join(host).join("release").join("proxyd"))
}

/// The `llvm-profdata` of the compiler in use: another's may not know its format.
pub(crate) fn merger(workspace: &Workspace) -> Result<PathBuf, TaskError> {
    let sysroot = command::read(workspace.command("rustc").args(["--print", "sysroot"]))?;
    let library = Path::new(sysroot.trim()).join("lib/rustlib");
    let program = library.join(workspace.host()?).join("bin/llvm-profdata");
    if program.is_file() {
        return Ok(program);
    }
    let advice = "llvm-profdata is missing; `rustup component add llvm-tools` installs it";
    Err(TaskError::Failed(advice.to_owned()))
}
