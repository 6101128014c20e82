//! `cargo xtask ship`: builds proxyd with profile-guided optimization.
//!
//! The compiler lays out and inlines code by the frequencies in a profile. The profile is made on
//! the spot: an instrumented build runs every case of the benchmarks briefly, without peers. If that
//! fails, the build is a plain release build. `controld` is built with it, without a profile.
//! Decision 0018.

use crate::measure::rehearsal::rehearse;
use proxy_load::clock::Stopwatch;
use std::fs;
use std::path::{Path, PathBuf};
use xtask_kit::command;
use xtask_kit::folder;
use xtask_kit::llvm_profdata;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::say;
use xtask_kit::workspace::Workspace;

/// Loops over bytes of names and values have 8 to 40 iterations. LLVM does not vectorize loops with
/// fewer than 16 iterations on average, although two vectors cover most of these.
const VECTORISE_SHORT_LOOPS: &str = "-Cllvm-args=-vectorizer-min-trip-count=4";

/// Trains, builds both programs, and prints their paths.
pub(crate) fn run(workspace: &Workspace) -> Result<(), TaskError> {
    let watch = Stopwatch::start();
    let profile = profile_path(workspace)?;
    let trained = train(workspace, &profile);
    let proxyd = match &trained {
        Ok(()) => build_with(workspace, &profile)?,
        Err(error) => {
            say(format!(
                "ship: training failed, the build has no profile: {error}"
            ));
            build_plain(workspace, "proxyd")?
        }
    };
    let controld = build_plain(workspace, "controld")?;
    let minutes = watch.elapsed().as_secs_f64() / 60.0;
    let optimised = if trained.is_ok() {
        "with a profile"
    } else {
        "without a profile"
    };
    say(format!(
        "ship: built {} ({optimised}) and {} in {minutes:.1} min",
        proxyd.display(),
        controld.display()
    ));
    Ok(())
}

/// Builds proxyd with the profile, training first if there is none, and returns its path:
/// `target/ship/proxyd`.
pub(crate) fn build(workspace: &Workspace) -> Result<PathBuf, TaskError> {
    let profile = profile_path(workspace)?;
    if !profile.is_file() {
        train(workspace, &profile)?;
    }
    build_with(workspace, &profile)
}

/// Builds proxyd in the profile `guard`, and returns its path.
pub(crate) fn build_guarded(workspace: &Workspace) -> Result<PathBuf, TaskError> {
    say("guard: building proxyd");
    let arguments = [
        "build",
        "--profile",
        "guard",
        "--locked",
        "--quiet",
        "--package",
        "proxyd",
    ];
    command::run(&mut workspace.cargo(&arguments))?;
    Ok(workspace.target_dir()?.join("guard/proxyd"))
}

fn build_with(workspace: &Workspace, profile: &Path) -> Result<PathBuf, TaskError> {
    let target = workspace.target_dir()?;
    say("ship: building proxyd");
    let use_profile = format!("-Cprofile-use={}", profile.display());
    let flags = [use_profile.as_str(), VECTORISE_SHORT_LOOPS];
    let built = compile(workspace, &target, &flags, "fat")?;
    install(&target, &built, "proxyd")
}

/// Builds a program in the release profile, and returns its path: `target/ship/NAME`.
fn build_plain(workspace: &Workspace, name: &str) -> Result<PathBuf, TaskError> {
    say(format!("ship: building {name}"));
    let arguments = [
        "build",
        "--release",
        "--locked",
        "--quiet",
        "--package",
        name,
    ];
    command::run(&mut workspace.cargo(&arguments))?;
    let target = workspace.target_dir()?;
    install(&target, &target.join("release").join(name), name)
}

/// Copies a program into `target/ship`, and returns its path there.
fn install(target: &Path, built: &Path, name: &str) -> Result<PathBuf, TaskError> {
    let folder = target.join("ship");
    let (binary, fresh) = (folder.join(name), folder.join(format!("{name}.new")));
    // Renamed into place, because the old file may be running.
    fs::create_dir_all(&folder)
        .and_then(|()| fs::copy(built, &fresh))
        .and_then(|_| fs::rename(&fresh, &binary))
        .map_err(|source| TaskError::File {
            path: binary.clone(),
            source,
        })?;
    Ok(binary)
}

/// Runs the benchmarks with an instrumented binary, and merges its counts into `profile`.
fn train(workspace: &Workspace, profile: &Path) -> Result<(), TaskError> {
    let merger = llvm_profdata::installed(workspace)?;
    let training = workspace.target_dir()?.join("training");
    let counts = training.join("counts");
    folder::empty(&counts)?;
    say("ship: building proxyd with counters");
    let count = format!("-Cprofile-generate={}", counts.display());
    // The counters are placed in each crate before crates are linked.
    let counting = compile(workspace, &training, &[&count], "off")?;
    rehearse(workspace, counting)?;
    let mut merge = workspace.command(&merger.to_string_lossy());
    // Sparse: functions that were never called are optimized without a profile, not as rare.
    merge.args(["merge", "--sparse", "--output"]);
    command::run(merge.arg(profile).arg(&counts))
}

/// Path of the merged profile.
fn profile_path(workspace: &Workspace) -> Result<PathBuf, TaskError> {
    Ok(workspace.target_dir()?.join("training/proxyd.profdata"))
}

/// Builds proxyd in the release profile with additional flags, and with link-time optimization by
/// `lto`.
fn compile(
    workspace: &Workspace,
    target: &Path,
    flags: &[&str],
    lto: &str,
) -> Result<PathBuf, TaskError> {
    let host = workspace.host()?;
    // With an explicit target the flags do not apply to build scripts.
    let arguments = ["build", "--release", "--locked", "--quiet", "--target"];
    let mut cargo = workspace.cargo(&arguments);
    cargo
        .args([&host, "--package", "proxyd"])
        .env("CARGO_TARGET_DIR", target)
        .env("CARGO_PROFILE_RELEASE_LTO", lto)
        .env("CARGO_ENCODED_RUSTFLAGS", flags.join("\u{1f}"));
    command::run(&mut cargo)?;
    Ok(target.join(host).join("release").join("proxyd"))
}
