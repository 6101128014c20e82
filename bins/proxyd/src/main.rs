//! The proxy daemon.

mod cli;
mod commands;
mod control_plane;
mod explain;
mod logging;
mod terminal;
mod traffic;
mod upgrade;

use std::process::ExitCode;

fn main() -> ExitCode {
    commands::run(cli::parse())
}
