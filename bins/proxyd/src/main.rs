//! The proxy `proxyd`.

mod cli;
mod commands;
mod control_plane;
mod explain;
mod logging;
mod terminal;
mod traffic;
mod upgrade;

use std::process::ExitCode;
use tikv_jemallocator::Jemalloc;

/// Returns freed pages to the system within about a second, on its own thread, because the memory
/// limit is compared with resident memory. Options are in `.cargo/config.toml`.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

fn main() -> ExitCode {
    terminal::exit_code(match cli::parse() {
        Ok(cli) => commands::run(cli),
        Err(usage) => terminal::print_usage(&usage),
    })
}
