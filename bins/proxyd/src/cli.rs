//! The command line, as `--help` shows it.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand};
use std::path::PathBuf;

/// A reverse proxy that says what it will do before, and why after.
///
/// Without a configuration it serves a welcome page on port 8080.
#[derive(Debug, Parser)]
#[command(
    name = "proxyd",
    disable_version_flag = true,
    args_conflicts_with_subcommands = true
)]
pub(crate) struct Cli {
    /// The configuration to use.
    #[arg(short, long, value_name = "FILE", env = "PROXYD_CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// Check the configuration and exit: 0 when it can be used, 1 when not.
    #[arg(short, long, visible_alias = "validate")]
    pub(crate) test: bool,

    /// With --test, also print the effective settings and where each comes from.
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// Print the version and exit.
    #[arg(short = 'V', long)]
    pub(crate) version: bool,

    #[command(subcommand)]
    pub(crate) command: Option<Subcommands>,
}

/// What can be done instead of serving.
#[derive(Debug, Subcommand)]
pub(crate) enum Subcommands {
    /// Check and migrate configurations.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Say which route a request takes, why the others lose, and under which settings.
    Explain(Explain),
}

/// What can be done with a configuration.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check a configuration for faults and doubtful settings.
    Check {
        /// The configuration.
        file: PathBuf,
        /// Take warnings for faults.
        #[arg(long)]
        strict: bool,
        /// Print what was found as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write configurations in the usual layout; comments and the spelling of values stay.
    Fmt {
        /// The configurations, each written in its place.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Write nothing; name the files that are laid out differently and exit with 1 if there is one.
        #[arg(long)]
        check: bool,
    },
    /// Write a configuration as this version wants it, comments and layout kept.
    Migrate {
        /// The configuration.
        file: PathBuf,
        /// Where to write to.
        #[arg(short, long, value_name = "OUT")]
        output: PathBuf,
    },
}

/// A request that nobody sends.
#[derive(Args, Debug)]
pub(crate) struct Explain {
    /// The configuration; none is the embedded one.
    #[arg(short, long, value_name = "FILE", env = "PROXYD_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// The method.
    pub(crate) method: String,
    /// A path, or a URL with a host.
    pub(crate) url: String,
    /// A header field, as "Name: value". May be repeated.
    #[arg(short = 'H', long = "header", value_name = "FIELD")]
    pub(crate) headers: Vec<String>,
    /// The listener it comes in by; the first one if not said.
    #[arg(long, value_name = "NAME")]
    pub(crate) listener: Option<String>,
    /// The client's address.
    #[arg(long, value_name = "IP")]
    pub(crate) client_ip: Option<std::net::IpAddr>,
    /// Print the explanation as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Reads the command line, or ends the process: with 0 behind `--help`, with 2 when it is wrong.
pub(crate) fn parse() -> Cli {
    Cli::try_parse().unwrap_or_else(|error| hinted(error).exit())
}

/// The error of a configuration's name without its flag says how it is written; others stay.
fn hinted(error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    if !name.contains(['.', '/']) {
        return error;
    }
    let message = format!("`{name}` is no command; a configuration is named by `--config {name}`");
    Cli::command().error(ErrorKind::InvalidSubcommand, message)
}
