//! The command line.

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Args, CommandFactory, Parser, Subcommand};
use clap_complete::Shell;
use proxy_top::AdminAddress;
use std::path::PathBuf;

/// A reverse proxy with explained routing decisions.
///
/// Without a configuration it serves a welcome page on port 8080.
#[derive(Debug, Parser)]
#[command(
    name = "proxyd",
    disable_version_flag = true,
    args_conflicts_with_subcommands = true
)]
pub(crate) struct Cli {
    /// The configuration file.
    #[arg(short, long, value_name = "FILE", env = "PROXYD_CONFIG")]
    pub(crate) config: Option<PathBuf>,

    /// Check the configuration and exit: 0 if it is valid, 1 if not.
    #[arg(short, long, visible_alias = "validate")]
    pub(crate) test: bool,

    /// With --test, also print the effective settings with their origins.
    #[arg(short, long)]
    pub(crate) verbose: bool,

    /// Print the version and exit.
    #[arg(short = 'V', long)]
    pub(crate) version: bool,

    #[command(subcommand)]
    pub(crate) command: Option<Subcommands>,
}

/// Commands other than serving.
#[derive(Debug, Subcommand)]
pub(crate) enum Subcommands {
    /// Check and migrate configurations.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// Show which route a request takes, why other routes do not match, and the settings that
    /// apply.
    Explain(Explain),
    /// Show which requests two configurations answer differently, and what else differs.
    Diff(Diff),
    /// Show which recorded requests two configurations answer differently.
    Replay(Replay),
    /// Test external agents.
    #[command(subcommand)]
    Agent(AgentCommand),
    /// Write a first configuration with comments.
    Init(Init),
    /// Check limits, ports, names and targets of this machine against a configuration.
    Doctor(Doctor),
    /// Show routes, upstreams and limits of a running proxy, live in the terminal.
    Top(Top),
    /// Check that a running proxy is ready, for health checks of containers.
    Health(AdminInterface),
    /// Print a script that completes `proxyd` in a shell.
    Completions {
        /// The shell.
        shell: Shell,
    },
}

/// The configuration to check the machine against; it is not served. Exit code 0: no fault, maybe warnings;
/// 1: a fault.
#[derive(Args, Debug)]
pub(crate) struct Doctor {
    /// The configuration file; by default the built-in configuration.
    #[arg(short, long, value_name = "FILE", env = "PROXYD_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// Print the findings as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// The admin interface of a running proxy; 127.0.0.1:9090 if neither names it.
#[derive(Args, Debug)]
pub(crate) struct AdminInterface {
    /// The configuration of the running proxy: its block `admin` names the interface and the token's file.
    #[arg(short, long, value_name = "FILE", env = "PROXYD_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// The admin interface in place of the configuration's, as 127.0.0.1:9090 or unix:PATH.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) admin: Option<AdminAddress>,
}

/// The running proxy to show, by its admin interface. Without a terminal on standard input and output: one page of text.
#[derive(Args, Debug)]
pub(crate) struct Top {
    #[command(flatten)]
    pub(crate) interface: AdminInterface,
    /// The file with the token of the admin interface, in place of the configuration's.
    #[arg(long, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Print one page of text and exit: averages since the start of the proxy.
    #[arg(long)]
    pub(crate) once: bool,
}

/// A first configuration: one listener, one route, one upstream.
#[derive(Args, Debug)]
pub(crate) struct Init {
    /// The file to write; one that exists is not changed.
    #[arg(default_value = "proxyd.kdl")]
    pub(crate) file: PathBuf,
    /// A target, as 127.0.0.1:3000. May be repeated.
    #[arg(long = "target", value_name = "ADDRESS", required = true)]
    pub(crate) targets: Vec<String>,
    /// A host to serve, as www.example.com; by default every host. May be repeated.
    #[arg(long = "host", value_name = "NAME")]
    pub(crate) hosts: Vec<String>,
    /// The address to listen on; by default 0.0.0.0:8080, or 0.0.0.0:443 with a certificate.
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) listen: Option<String>,
    /// The certificate chain, in PEM.
    #[arg(long, value_name = "FILE", requires = "key")]
    pub(crate) cert: Option<String>,
    /// The private key of the certificate, in PEM.
    #[arg(long, value_name = "FILE", requires = "cert")]
    pub(crate) key: Option<String>,
    /// The path of a health check, as /healthz; by default targets are not checked.
    #[arg(long, value_name = "PATH")]
    pub(crate) health_path: Option<String>,
}

/// The configurations to compare; nothing is sent. Exit code 0: the same; 1: they differ; 2: one cannot
/// be read.
#[derive(Args, Debug)]
pub(crate) struct Diff {
    /// The configuration file before.
    pub(crate) old: PathBuf,
    /// The configuration file after.
    pub(crate) new: PathBuf,
    /// Print the difference as JSON.
    #[arg(long)]
    pub(crate) json: bool,
    /// Recorded requests, as lines of an access log: also show how many are answered differently.
    #[arg(long, value_name = "FILE")]
    pub(crate) traffic: Option<PathBuf>,
}

/// The requests to replay; nothing is sent. Exit code 0: all are answered the same; 1: some are not; 2: a
/// file cannot be read.
#[derive(Args, Debug)]
pub(crate) struct Replay {
    /// Recorded requests, as lines of an access log.
    pub(crate) file: PathBuf,
    /// The configuration file before.
    #[arg(long, value_name = "FILE")]
    pub(crate) old: PathBuf,
    /// The configuration file after.
    #[arg(long, value_name = "FILE")]
    pub(crate) new: PathBuf,
    /// Print the result as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Commands on agents.
#[derive(Debug, Subcommand)]
pub(crate) enum AgentCommand {
    /// Run the conformance cases of the agent protocol against an agent.
    Check(AgentCheck),
}

/// The agent to check.
#[derive(Args, Debug)]
pub(crate) struct AgentCheck {
    /// The agent's Unix socket.
    pub(crate) socket: PathBuf,
    /// A header field of the sample requests, as "Name: value". May be repeated.
    #[arg(short = 'H', long = "header", value_name = "FIELD")]
    pub(crate) headers: Vec<String>,
    /// Time for each answer, in milliseconds.
    #[arg(long, value_name = "MS", default_value_t = 1000, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    pub(crate) timeout_ms: u64,
    /// Print the results as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Commands on configurations.
#[derive(Debug, Subcommand)]
pub(crate) enum ConfigCommand {
    /// Check a configuration for errors and warnings.
    Check {
        /// The configuration file.
        file: PathBuf,
        /// Treat warnings as errors.
        #[arg(long)]
        strict: bool,
        /// Print the diagnostics as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run the tests in a configuration; nothing is sent.
    Test {
        /// The configuration file.
        file: PathBuf,
        /// Draft a test for each route instead, to be kept in the configuration.
        #[arg(long, conflicts_with = "json")]
        new: bool,
        /// Draft them from these recorded requests: one for each route and method.
        #[arg(long, value_name = "RECORDING", requires = "new")]
        from: Option<PathBuf>,
        /// Print the results as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Write configurations in the usual layout; comments and the spelling of values stay.
    Fmt {
        /// The configurations, each written in its place.
        #[arg(required = true)]
        files: Vec<PathBuf>,
        /// Write nothing; list the files with another layout and exit with 1 if there is one.
        #[arg(long)]
        check: bool,
    },
    /// Convert a configuration to the current version of the language, keeping comments and layout; with `--from`
    /// write one from the configuration of another server.
    Migrate {
        /// The configuration file.
        file: PathBuf,
        /// The server that the file is for.
        #[arg(long, value_enum, value_name = "SERVER")]
        from: Option<ForeignServer>,
        /// The file to write.
        #[arg(short, long, value_name = "OUT")]
        output: PathBuf,
    },
}

/// A server with configurations that can be migrated.
#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum ForeignServer {
    Nginx,
    Caddy,
    Haproxy,
    Traefik,
}

/// The request to explain; it is not sent.
#[derive(Args, Debug)]
pub(crate) struct Explain {
    /// The configuration file; by default the built-in configuration.
    #[arg(short, long, value_name = "FILE", env = "PROXYD_CONFIG")]
    pub(crate) config: Option<PathBuf>,
    /// The method.
    pub(crate) method: String,
    /// A path, or a URL with a host; of a relayed connection `tcp://address:port` or `tls://name:port`.
    pub(crate) url: String,
    /// A header field, as "Name: value". May be repeated.
    #[arg(short = 'H', long = "header", value_name = "FIELD")]
    pub(crate) headers: Vec<String>,
    /// The listener; by default the first one.
    #[arg(long, value_name = "NAME")]
    pub(crate) listener: Option<String>,
    /// The client's address.
    #[arg(long, value_name = "IP")]
    pub(crate) client_ip: Option<std::net::IpAddr>,
    /// Print the explanation as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Parses the command line.
///
/// # Errors
///
/// Help, if it was requested, or the error of an invalid command line.
pub(crate) fn parse() -> Result<Cli, clap::Error> {
    Cli::try_parse().map_err(hinted)
}

/// Generates the completion script for a shell.
pub(crate) fn completions(shell: Shell) -> String {
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut Cli::command(), "proxyd", &mut script);
    String::from_utf8_lossy(&script).into_owned()
}

/// Adds a hint to the error for a configuration file given without its flag. Returns any other
/// error unchanged.
fn hinted(error: clap::Error) -> clap::Error {
    let Some(ContextValue::String(name)) = error.get(ContextKind::InvalidSubcommand) else {
        return error;
    };
    if !name.contains(['.', '/']) {
        return error;
    }
    let message =
        format!("`{name}` is not a command; a configuration is named by `--config {name}`");
    Cli::command().error(ErrorKind::InvalidSubcommand, message)
}
