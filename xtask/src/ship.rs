//! `cargo xtask ship`: proxyd as it ships, optimised for what it does most.
//!
//! A compiler that knows which way branches go lays code out and inlines by that. It learns it from
//! [`KNOWN`], which `--train` makes anew from a run of the benchmarks: decision 0018.

use crate::bench;
use crate::command;
use crate::folder;
use crate::task_error::TaskError;
use crate::terminal::say;
use crate::workspace::Workspace;
use std::fs;
use std::path::{Path, PathBuf};

/// How often each branch is taken, as `llvm-profdata` merges it.
const KNOWN: &str = "bins/proxyd/proxyd.profdata";

/// Loops over bytes of names and values are known to turn 8 to 40 times. LLVM gives those up that turn
/// fewer than 16 times on average, and two vectors do most of them.
const SHORT_LOOPS_TOO: &str = "-Cllvm-args=-vectorizer-min-trip-count=4";

#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::Args)]
pub(crate) struct Options {
    /// First learn anew what proxyd does most; needs what `cargo xtask setup --bench` installs
    #[arg(long)]
    train: bool,
}

/// Builds the binary, and says where it lies.
pub(crate) fn run(workspace: &Workspace, options: Options) -> Result<(), TaskError> {
    if options.train {
        train(workspace)?;
    }
    let binary = build(workspace)?;
    say(format!("ship: built {}", binary.display()));
    Ok(())
}

/// Builds proxyd as it ships and returns where it lies: `target/ship/proxyd`.
pub(crate) fn build(workspace: &Workspace) -> Result<PathBuf, TaskError> {
    let target = workspace.target_dir()?;
    let known = format!("-Cprofile-use={}", workspace.root().join(KNOWN).display());
    say("ship: building proxyd");
    let built = compile(workspace, &target, &[&known, SHORT_LOOPS_TOO])?;
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

/// Runs the benchmarks with a binary that counts, and keeps what it counted.
fn train(workspace: &Workspace) -> Result<(), TaskError> {
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
    command::run(merge.arg(workspace.root().join(KNOWN)).arg(&counts))?;
    say(format!("ship: wrote {KNOWN}"));
    Ok(())
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
