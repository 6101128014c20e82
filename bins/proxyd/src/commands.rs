//! Commands of `proxyd`, other than serving.

mod admin_interface;
mod agent;
mod config_test;
mod diff;
mod doctor;
mod file_replacement;
mod fmt;
mod health;
mod init;
mod migrate;
mod plan_file;
mod replay;
mod top;

use crate::cli::{AgentCommand, Cli, ConfigCommand, Subcommands};
use crate::control_plane;
use crate::logging;
use crate::terminal::{print_error, print_line, print_report};
use crate::upgrade;
use proxy_config::Loaded;
use proxy_plan::render;
use proxy_server::{Build, Options, Source, StartError};
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const BUILD_INFO: Build = Build {
    version: env!("CARGO_PKG_VERSION"),
    commit: env!("PROXYD_COMMIT"),
    built_at: env!("PROXYD_BUILT_AT"),
    rustc: env!("PROXYD_RUSTC"),
};

const EXIT_FAULTS: u8 = 1;
const EXIT_USAGE: u8 = 2;

/// Runs a command. Exit code 0: done; 1: errors were found; 2: invalid use.
///
/// # Errors
///
/// Writing to standard output failed, other than because it was closed.
pub(crate) fn run(cli: Cli) -> io::Result<ExitCode> {
    let Cli {
        config,
        test,
        verbose,
        version,
        command,
    } = cli;
    match command {
        Some(Subcommands::Config(ConfigCommand::Check { file, strict, json })) => {
            check(&file, strict, json)
        }
        Some(Subcommands::Config(ConfigCommand::Test {
            file,
            new: true,
            from,
            json: _,
        })) => config_test::draft(&file, from.as_deref()),
        Some(Subcommands::Config(ConfigCommand::Test { file, json, .. })) => {
            config_test::run(&file, json)
        }
        Some(Subcommands::Config(ConfigCommand::Migrate { file, from, output })) => match from {
            Some(from) => migrate::migrate_foreign(from, &file, &output),
            None => migrate::migrate_proxyd(&file, &output),
        },
        Some(Subcommands::Config(ConfigCommand::Fmt { files, check })) => fmt::run(&files, check),
        Some(Subcommands::Explain(explain)) => crate::explain::run(explain),
        Some(Subcommands::Diff(arguments)) => diff::run(&arguments),
        Some(Subcommands::Replay(arguments)) => replay::run(&arguments),
        Some(Subcommands::Agent(AgentCommand::Check(arguments))) => agent::check(arguments),
        Some(Subcommands::Doctor(arguments)) => doctor::run(&arguments),
        Some(Subcommands::Init(arguments)) => init::run(&arguments),
        Some(Subcommands::Top(arguments)) => top::run(&arguments),
        Some(Subcommands::Health(interface)) => health::run(&interface),
        Some(Subcommands::Completions { shell }) => {
            print_line(crate::cli::completions(shell).trim_end())?;
            Ok(ExitCode::SUCCESS)
        }
        None if version => {
            print_line(format_args!(
                "proxyd {} ({})",
                BUILD_INFO.version, BUILD_INFO.commit
            ))?;
            Ok(ExitCode::SUCCESS)
        }
        None if test => self::test(config, verbose),
        None if verbose => {
            print_error("--verbose requires --test");
            Ok(ExitCode::from(EXIT_USAGE))
        }
        None => Ok(serve(config)),
    }
}

fn serve(config: Option<PathBuf>) -> ExitCode {
    let events = match logging::start() {
        Ok(events) => events,
        Err(error) => {
            print_error(format_args!("proxyd: cannot log: {error}"));
            return ExitCode::from(EXIT_FAULTS);
        }
    };
    if config.is_none() {
        tracing::info!(
            "no configuration file: a welcome page is served; `proxyd init` writes a file, and `proxyd --config FILE` \
             serves it"
        );
    }
    let options = Options {
        config: source(config),
        build: BUILD_INFO,
        program: upgrade::program(),
        events: Some(events.clone()),
        follow: Some(control_plane::follow),
    };
    let code = match proxy_server::run(&options) {
        Ok(()) => ExitCode::SUCCESS,
        Err(fault) => {
            events.text(&match &fault {
                StartError::Config(report) => report.to_string(),
                StartError::Apply(_)
                | StartError::TakeOver(_)
                | StartError::WorkerLost(_)
                | StartError::Rehearsal(_)
                | StartError::AdminLost
                | StartError::Io(_) => {
                    format!("proxyd: {fault}")
                }
            });
            ExitCode::from(EXIT_FAULTS)
        }
    };
    events.close();
    code
}

fn test(config: Option<PathBuf>, verbose: bool) -> io::Result<ExitCode> {
    let name = config.as_ref().map(|path| path.display().to_string());
    let name = name.unwrap_or_else(|| "(embedded)".to_owned());
    match proxy_server::load(&source(config)) {
        Ok(loaded) => {
            show_warnings(&loaded);
            if verbose {
                show_effective(&loaded)?;
            }
            print_line(format_args!("configuration file {name} test is successful"))?;
            Ok(ExitCode::SUCCESS)
        }
        Err(report) => {
            print_report(&report);
            print_error(format_args!("configuration file {name} test failed"));
            Ok(ExitCode::from(EXIT_FAULTS))
        }
    }
}

fn check(file: &Path, strict: bool, json: bool) -> io::Result<ExitCode> {
    let (report, usable) = match proxy_server::load(&Source::File(file.to_path_buf())) {
        Ok(loaded) => (loaded.warnings, true),
        Err(report) => (report, false),
    };
    let clean = report.is_empty();
    if json {
        print_line(report.to_json())?;
    } else if !clean {
        print_report(&report);
    }
    let passed = usable && (clean || !strict);
    if usable && !passed && !json {
        print_error(format_args!(
            "{}: usable, but --strict takes warnings for faults",
            file.display()
        ));
    }
    if !json && passed {
        let found = if clean {
            "no issues"
        } else {
            "usable, see the warnings"
        };
        print_line(format_args!("{}: {found}", file.display()))?;
    }
    if passed {
        Ok(ExitCode::SUCCESS)
    } else {
        Ok(ExitCode::from(EXIT_FAULTS))
    }
}

fn source(config: Option<PathBuf>) -> Source {
    config.map_or(Source::Embedded, Source::File)
}

fn show_warnings(loaded: &Loaded) {
    if !loaded.warnings.is_empty() {
        print_report(&loaded.warnings);
    }
}

fn show_effective(loaded: &Loaded) -> io::Result<()> {
    print_line(render::in_force(&loaded.model).trim_end())?;
    print_line(proxy_server::worst_case(&loaded.model))
}
