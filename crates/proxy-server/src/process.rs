//! What a process is started with, and why it may not start.

use crate::handover::Program;
use crate::heritage::Heritage;
use crate::life;
use crate::server::{ApplyFault, now};
use crate::tls;
use proxy_config::{FaultCode, Loaded, Report};
use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

/// What the process is started with.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where the configuration comes from, at the start and at each reload.
    pub config: Source,
    /// What was built.
    pub build: Build,
    /// What SIGUSR2 starts, to take over; none refuses to be replaced.
    pub program: Option<Program>,
}

/// Where a configuration comes from.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file, and what it includes.
    File(PathBuf),
    /// A text, for those who embed the proxy.
    Text(Cow<'static, str>),
    /// None: a welcome page on port 8080.
    Embedded,
}

/// What was built, for `--version`, `/status` and `/admin/version`.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// Semantic version.
    pub version: &'static str,
    /// The commit it was built from.
    pub commit: &'static str,
    /// When it was built, RFC 3339.
    pub built_at: &'static str,
    /// The compiler.
    pub rustc: &'static str,
}

/// Why the process could not start.
#[derive(Debug, thiserror::Error)]
pub enum StartFault {
    /// The configuration has faults.
    #[error("{0}")]
    Config(Report),
    /// The configuration is right and cannot be put in force.
    #[error(transparent)]
    Apply(#[from] ApplyFault),
    /// The admin interface cannot be opened.
    #[error("cannot open the admin interface: {0}")]
    Admin(String),
    /// The process that this one was to take over from passes no sockets.
    #[error("cannot take over: {0}")]
    TakeOver(#[source] io::Error),
    /// The operating system refused something.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Reads the configuration, serves until told to stop, and ends in good order.
///
/// # Errors
/// [`StartFault`] when nothing could be served.
pub fn run(options: &Options) -> Result<(), StartFault> {
    let heritage = Heritage::of_the_manager();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let lived = runtime.block_on(life::live(options, heritage));
    // A name server that does not answer must not keep the process alive.
    runtime.shutdown_background();
    lived
}

/// The configuration that `options` name, checked as far as that is possible without serving it:
/// certificates are read, too.
///
/// # Errors
/// Every fault that was found.
pub fn load(config: &Source) -> Result<Loaded, Report> {
    let mut loaded = read(config)?;
    match tls::check(&loaded.model, now()) {
        Ok(doubtful) => {
            for fault in doubtful {
                loaded.warnings.push(fault);
            }
            Ok(loaded)
        }
        Err(faults) => Err(Report::new(loaded.model.sources.clone(), faults)),
    }
}

fn read(config: &Source) -> Result<Loaded, Report> {
    match config {
        Source::File(path) => proxy_config::load(path),
        Source::Text(text) => proxy_config::parse(text, "(text)"),
        Source::Embedded => proxy_config::embedded(),
    }
}

/// A listener that cannot be bound is told like any other fault of the configuration: with its place.
pub(crate) fn at_its_place(fault: ApplyFault, model: &proxy_model::Model) -> StartFault {
    let bind = match &fault {
        ApplyFault::Bind(bind) => bind,
        ApplyFault::Tls(faults) => {
            return StartFault::Config(Report::new(model.sources.clone(), faults.clone()));
        }
        ApplyFault::Log(_) | ApplyFault::Thread(_) | ApplyFault::Stuck => {
            return StartFault::Apply(fault);
        }
    };
    let listener = model
        .listeners
        .iter()
        .find(|listener| listener.address.to_string() == bind.address);
    let Some(listener) = listener else {
        return StartFault::Apply(fault);
    };
    let place = listener.address.place().unwrap_or(listener.place);
    let fault = proxy_config::Fault::new(FaultCode::AddressInUse, place, bind.to_string())
        .label(bind.why.clone());
    StartFault::Config(Report::new(model.sources.clone(), vec![fault]))
}
