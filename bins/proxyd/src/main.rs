//! The proxy daemon.

mod cli;
mod commands;
mod explain;
mod logging;
mod terminal;
mod upgrade;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::run(cli::parse())
}
