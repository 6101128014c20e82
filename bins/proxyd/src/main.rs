//! The proxy daemon.

mod cli;
mod commands;
mod explain;
mod logging;
mod terminal;
mod upgrade;

use clap::Parser;
use cli::Cli;
use std::process::ExitCode;

fn main() -> ExitCode {
    commands::run(Cli::parse())
}
