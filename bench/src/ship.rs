//! `cargo xtask ship`: builds `proxyd` with profile-guided optimization.
//!
//! The compiler arranges and inlines code by the frequencies in a profile. An instrumented build
//! creates the profile: it runs every benchmark case briefly, without peers. If that fails, the
//! result is an ordinary release build. `controld` is built as well, without a profile. See
//! decision 0018.

use crate::measure::rehearsal::rehearse;
use proxy_load::clock::Stopwatch;
use std::fs;
use std::path::{Path, PathBuf};
use xtask_kit::command;
use xtask_kit::folder;
use xtask_kit::llvm_profdata;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::say;
use xtask_kit::workspace::{OPTIMISED, Workspace};

/// Vectorizes short loops. Loops over the bytes of names and values have 8 to 40 iterations; LLVM
/// would not vectorize those with fewer than 16 on average, although two vectors suffice for most.
const VECTORISE_SHORT_LOOPS: &str = "-Cllvm-args=-vectorizer-min-trip-count=4";

/// Builds both programs, and prints their paths.
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

/// Builds `proxyd` with the profile, which is created first if it is missing. Returns the path
/// `target/ship/proxyd`.
pub(crate) fn build(workspace: &Workspace) -> Result<PathBuf, TaskError> {
    let profile = profile_path(workspace)?;
    if !profile.is_file() {
        train(workspace, &profile)?;
    }
    build_with(workspace, &profile)
}

/// Builds `proxyd` in the build profile `guard`; returns its path.
pub(crate) fn build_guarded(workspace: &Workspace) -> Result<PathBuf, TaskError> {
    say("guard: building proxyd");
    let arguments = ["build", "--locked", "--quiet", "--package", "proxyd"];
    command::run(workspace.cargo(&arguments).args(OPTIMISED))?;
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

/// Builds a program in the release profile; returns the path `target/ship/NAME`.
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

/// Copies a program into `target/ship`; returns its path there.
fn install(target: &Path, built: &Path, name: &str) -> Result<PathBuf, TaskError> {
    let folder = target.join("ship");
    let (binary, fresh) = (folder.join(name), folder.join(format!("{name}.new")));
    // Renamed into place, because the old program may be running.
    fs::create_dir_all(&folder)
        .and_then(|()| fs::copy(built, &fresh))
        .and_then(|_| fs::rename(&fresh, &binary))
        .map_err(|source| TaskError::File {
            path: binary.clone(),
            source,
        })?;
    Ok(binary)
}

/// Runs the benchmarks with an instrumented build, and merges its counts into `profile`.
fn train(workspace: &Workspace, profile: &Path) -> Result<(), TaskError> {
    let merger = llvm_profdata::installed(workspace)?;
    let training = workspace.target_dir()?.join("training");
    let counts = training.join("counts");
    folder::empty(&counts)?;
    say("ship: building proxyd with counters");
    let count = format!("-Cprofile-generate={}", counts.display());
    // Counters belong to each crate before linking, so link-time optimization is off.
    let counting = compile(workspace, &training, &[&count], "off")?;
    rehearse(workspace, counting)?;
    let mut merge = workspace.command(&merger.to_string_lossy());
    // With `--sparse`, functions without calls are optimized as if there were no profile, instead
    // of as rare ones.
    merge.args(["merge", "--sparse", "--output"]);
    command::run(merge.arg(profile).arg(&counts))
}

/// Returns the path of the merged profile.
fn profile_path(workspace: &Workspace) -> Result<PathBuf, TaskError> {
    Ok(workspace.target_dir()?.join("training/proxyd.profdata"))
}

/// Builds `proxyd` in the release profile with additional flags. `lto` is the kind of link-time
/// optimization.
fn compile(
    workspace: &Workspace,
    target: &Path,
    flags: &[&str],
    lto: &str,
) -> Result<PathBuf, TaskError> {
    let host = workspace.host()?;
    // An explicit `--target` keeps the flags from build scripts.
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
