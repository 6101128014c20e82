//! The control plane `controld`.

mod background;
mod cli;
mod commands;
mod config;
mod connections;
mod ctl;
mod data_dir;
mod error_text;
mod key_file;
mod serve;
mod standard_output;
mod state;
mod tls;
mod trust;

use crate::cli::{AdminCommand, AuditCommand, Cli, Command, KeyCommand};
use crate::commands::{admin, audit, backup, check, key};
use crate::config::ConfigFile;
use crate::error_text::error_text;
use crate::standard_output::print_usage;
use clap::{ArgMatches, CommandFactory, FromArgMatches};
use std::env;
use std::error::Error;
use std::process::ExitCode;
use tikv_jemallocator::Jemalloc;
use tracing_subscriber::EnvFilter;

/// Returns freed pages to the system within about a second. The C library's allocator has a heap
/// per thread: after bundles and reports were parsed on many threads, most of its resident memory
/// was free.
#[global_allocator]
static ALLOCATOR: Jemalloc = Jemalloc;

#[tokio::main]
#[expect(clippy::print_stderr, reason = "the operator reads it")]
async fn main() -> ExitCode {
    let operations = ctl::operations();
    let mut whole = Cli::command().subcommand(ctl::command(&operations));
    let matches = match whole.try_get_matches_from_mut(env::args_os()) {
        Ok(matches) => matches,
        Err(usage) => return print_usage(&usage),
    };
    if let Some(("ctl", inner)) = matches.subcommand() {
        return ctl::run(&operations, inner, &mut whole).await;
    }
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info"));
    tracing_subscriber::fmt()
        .json()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        // Otherwise, a failed write to a full disk would panic.
        .log_internal_errors(false)
        .init();
    let read = match ConfigFile::named_by(&matches, &Cli::command()) {
        Ok(read) => read,
        Err(error) => {
            check::show(&error);
            return ExitCode::FAILURE;
        }
    };
    let matches = match &read {
        // Settings become defaults of the flags, so the command line is parsed again.
        Some(file) => match file.apply(Cli::command()).try_get_matches() {
            Ok(matches) => matches,
            Err(usage) => return print_usage(&usage),
        },
        None => matches,
    };
    match run(&matches, read.as_ref()).await {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {}", error_text(&*error));
            ExitCode::FAILURE
        }
    }
}

async fn run(matches: &ArgMatches, file: Option<&ConfigFile>) -> Result<ExitCode, Box<dyn Error>> {
    let cli = Cli::from_arg_matches(matches).unwrap_or_else(|error| error.exit());
    match cli.command {
        None => serve::run(cli.serve, file).await,
        Some(Command::Admin(AdminCommand::Create(args))) => admin::create(args).await,
        Some(Command::Admin(AdminCommand::SetPassword(args))) => admin::set_password(args).await,
        Some(Command::Admin(AdminCommand::ResetSecondFactor(args))) => {
            admin::reset_second_factor(args).await
        }
        Some(Command::Admin(AdminCommand::DeleteSso(args))) => admin::delete_sso(args).await,
        Some(Command::Admin(AdminCommand::EndSessions(state))) => admin::end_sessions(state).await,
        Some(Command::Admin(AdminCommand::EndCredentials(state))) => {
            admin::end_credentials(state).await
        }
        Some(Command::Audit(AuditCommand::Verify(args))) => audit::verify(args).await,
        Some(Command::Backup(args)) => backup::run(args).await,
        Some(Command::Check(args)) => Ok(check::run(&args, file, state::now()).await?),
        Some(Command::Key(KeyCommand::Rotate(state))) => key::rotate(state).await,
        Some(Command::Key(KeyCommand::Prune(state))) => key::prune(state).await,
    }
}
