//! `cargo xtask bench` and `cargo xtask ship`: compares `proxyd` with Debian's nginx and `HAProxy`
//! on one core each, and builds the programs for release.

mod benchmark;
mod cases;
mod cores;
mod effort;
mod figure;
mod grid;
mod guard;
mod machine;
mod measure;
mod options;
mod report;
mod servers;
mod ship;
mod statistics;
mod storm;

use crate::options::Options;
use clap::{Parser, Subcommand};
use std::process::ExitCode;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal::print_error;
use xtask_kit::workspace::Workspace;

/// Measure proxyd and its peers
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask bench", args_conflicts_with_subcommands = true)]
struct Arguments {
    #[command(flatten)]
    options: Options,
    #[command(subcommand)]
    task: Option<Task>,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Build the programs as they ship, into target/ship
    Ship,
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
    let options = &arguments.options;
    match arguments.task {
        Some(Task::Ship) => ship::run(&workspace),
        None if options.guard => guard::compare(&workspace),
        None if options.storm => storm::run(&workspace),
        None => benchmark::run(&workspace, options),
    }
}
