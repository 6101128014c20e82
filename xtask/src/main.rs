//! Developer tasks: `cargo xtask <task>`.

mod chaos;
mod fleet;
mod fuzz;
mod fuzz_api;
mod identity;
mod pages;
mod program;
mod reference;
mod setup;
mod site;
mod soak;
mod test_all;
mod tidy;

use clap::{Parser, Subcommand};
use std::process::ExitCode;
use xtask_kit::task_error::TaskError;
use xtask_kit::terminal;
use xtask_kit::workspace::Workspace;

/// Developer tasks of the proxy.
#[derive(Debug, Parser)]
#[command(bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Run all that a change must pass, stopping at the first fault
    TestAll {
        /// Leave out the slow steps: documentation, dependency policy and cost of a request
        #[arg(long)]
        fast: bool,
    },
    /// Install what the tests need and this machine lacks
    Setup {
        /// Also install the peers and tools that the benchmarks need
        #[arg(long)]
        bench: bool,
        /// Also install what `package --check` needs
        #[arg(long)]
        package: bool,
    },
    /// Check layers, sizes and noise, and print figures
    Tidy,
    /// Write the generated pages under docs/reference
    Reference {
        /// Write nothing; fail if a page is out of date
        #[arg(long)]
        check: bool,
    },
    /// Make web pages of the documentation, into target/site, and fail on a broken link
    Site,
    /// Measure the web pages of a project with 2 000 nodes, and fail when one takes 100 ms
    Pages,
    /// Make the pictures of the tutorial again, with Chromium
    Screenshots,
    /// Start proxyd, controld and a fleet, until Ctrl-C; `--help` lists the options
    #[command(disable_help_flag = true)]
    Demo {
        /// Options of the program `demo`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// Feed every parser what a coverage-guided fuzzer invents
    Fuzz(fuzz::Options),
    /// Ask the control plane what its description allows and what it forbids, on both databases
    FuzzApi(fuzz_api::Options),
    /// Compare canonical XML of random documents with that of libxml2; `--help` lists the options
    #[command(disable_help_flag = true)]
    Canonical {
        /// Options of the program `canonical`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// Sign in by other projects' identity providers in Chromium, honest and lying ones, on both databases
    Identity(identity::Options),
    /// Reload and upgrade proxyd under load, and fail when any client notices
    Soak(soak::Options),
    /// Disturb all that proxyd depends on, under load, and fail on any wrong answer or lost permit
    Chaos(chaos::Options),
    /// Roll bundles out to a simulated fleet, and fail when a harmful one is not stopped in its first batch
    Fleet(fleet::Options),
    /// Build proxyd and controld as they ship, into target/ship
    Ship,
    /// Make Debian packages, tarballs and images; `--help` lists the options
    #[command(disable_help_flag = true)]
    Package {
        /// Options of the program `package`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
    /// Measure proxyd and its peers; `--help` lists the options
    #[command(disable_help_flag = true)]
    Bench {
        /// Options of the program `bench`
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        options: Vec<String>,
    },
}

fn main() -> ExitCode {
    match perform(&Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(TaskError::AlreadyReported) => ExitCode::FAILURE,
        Err(error) => {
            terminal::print_error(error.message());
            ExitCode::FAILURE
        }
    }
}

fn perform(task: &Task) -> Result<(), TaskError> {
    let workspace = Workspace::find()?;
    match *task {
        Task::TestAll { fast } => test_all::run(&workspace, fast),
        Task::Setup { bench, package } => setup::run(&workspace, setup::Extra { bench, package }),
        Task::Tidy => tidy::run(&workspace),
        Task::Reference { check } => reference::run(&workspace, check),
        Task::Site => site::run(&workspace),
        Task::Pages => pages::measure(&workspace),
        Task::Screenshots => pages::take_screenshots(&workspace),
        Task::Demo { ref options } => program::run(&workspace, "demo", options),
        Task::Fuzz(ref options) => fuzz::run(&workspace, options),
        Task::FuzzApi(ref options) => fuzz_api::run(&workspace, options),
        Task::Canonical { ref options } => program::run(&workspace, "canonical", options),
        Task::Identity(ref options) => identity::run(&workspace, options),
        Task::Soak(options) => soak::run(&workspace, options),
        Task::Chaos(ref options) => chaos::run(&workspace, options),
        Task::Fleet(ref options) => fleet::run(&workspace, options),
        Task::Ship => program::run(&workspace, "bench", &["ship"]),
        Task::Package { ref options } => program::run(&workspace, "package", options),
        Task::Bench { ref options } => program::run(&workspace, "bench", options),
    }
}
