//! The control plane.

mod admin;
mod audit;
mod cli;
mod ctl;
mod data_dir;
mod serve;
mod state;

use crate::cli::{AdminCommand, AuditCommand, Cli, Command};
use clap::{CommandFactory, FromArgMatches};
use std::error::Error;
use std::process::ExitCode;
use tracing_subscriber::EnvFilter;

#[tokio::main]
async fn main() -> ExitCode {
    let operations = ctl::operations();
    let mut whole = Cli::command().subcommand(ctl::command(&operations));
    let matches = whole.get_matches_mut();
    if let Some(("ctl", inner)) = matches.subcommand() {
        return ctl::run(&operations, inner, &mut whole).await;
    }
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .json()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .init();
    let cli = match Cli::from_arg_matches(&matches) {
        Ok(cli) => cli,
        Err(error) => error.exit(),
    };
    match run(cli).await {
        Ok(code) => code,
        Err(error) => {
            tracing::error!(error = told(&*error), "controld ends");
            ExitCode::FAILURE
        }
    }
}

async fn run(cli: Cli) -> Result<ExitCode, Box<dyn Error>> {
    match cli.command {
        None => serve::run(cli.serve).await,
        Some(Command::Admin(AdminCommand::Create(args))) => admin::create(args).await,
        Some(Command::Audit(AuditCommand::Verify(state))) => audit::verify(state).await,
    }
}

/// The error with what caused it.
fn told(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        text.push_str(": ");
        text.push_str(&error.to_string());
        cause = error.source();
    }
    text
}
