//! What a process is started with, and why it may not start.

use crate::admin;
use crate::control_loop;
use crate::events::Events;
use crate::handover::Program;
use crate::inherited_sockets::InheritedSockets;
use crate::listen::BindError;
use crate::server::{ApplyError, now};
use crate::tls;
use proxy_config::{Diagnostic, DiagnosticCode, Loaded, Report};
use proxy_model::{Model, Place};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
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
    /// What takes the process's events, to be counted and summed up; none leaves that to the program.
    pub events: Option<Events>,
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

/// Why the process could not start, or ended though it was not told to.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration has faults.
    #[error("{0}")]
    Config(Report),
    /// The configuration is right and cannot be put in force.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The process that this one was to take over from passes no sockets.
    #[error("cannot take over: {0}")]
    TakeOver(#[source] io::Error),
    /// The worker of this number has died while it served.
    #[error("worker {0} has died")]
    WorkerLost(usize),
    /// The operating system refused something.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Reads the configuration, serves until told to stop, and ends in good order.
///
/// # Errors
/// [`StartError`] when nothing could be served, or a worker has died.
pub fn run(options: &Options) -> Result<(), StartError> {
    let inherited = InheritedSockets::of_the_manager();
    claim_files();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let lived = runtime.block_on(control_loop::run(options, inherited));
    // A name server that does not answer must not keep the process alive.
    runtime.shutdown_background();
    lived
}

/// The configuration that `config` names, checked as far as that is possible without serving it:
/// certificates and the admin interface's token are read, too.
///
/// # Errors
/// Every fault that was found.
pub fn load(config: &Source) -> Result<Loaded, Report> {
    let mut loaded = read(config)?;
    let token = admin::check(&loaded.model.admin).err();
    let mut faults: Vec<Diagnostic> = token.into_iter().collect();
    match tls::check(&loaded.model, now()) {
        Ok(doubtful) => {
            for fault in doubtful {
                loaded.warnings.push(fault);
            }
        }
        Err(bad) => faults.extend(bad),
    }
    if !faults.is_empty() {
        return Err(Report::new(loaded.model.sources.clone(), faults));
    }
    loaded.expect_to_serve();
    let files = getrlimit(Resource::Nofile).maximum;
    loaded.compare_with_descriptors(files.unwrap_or(u64::MAX));
    Ok(loaded)
}

/// Lets this process open as many files as the system grants it: what programs may have by default
/// is meant for small ones.
fn claim_files() {
    let limit = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: limit.maximum,
        maximum: limit.maximum,
    };
    if let Err(error) = setrlimit(Resource::Nofile, most) {
        tracing::warn!(%error, "the limit on open files stays as it was");
    }
}

fn read(config: &Source) -> Result<Loaded, Report> {
    match config {
        Source::File(path) => proxy_config::load(path),
        Source::Text(text) => proxy_config::parse(text, "(text)"),
        Source::Embedded => proxy_config::embedded(),
    }
}

/// What cannot be put in force is told like any other fault of the configuration, where it has a
/// place in it.
pub(crate) fn at_its_place(fault: ApplyError, model: &Model) -> StartError {
    let faults = match fault {
        ApplyError::Bind(bind) => {
            let written = |address: &str| address == bind.address;
            let mut listeners = model.listeners.iter();
            let listener = listeners.find(|listener| written(&listener.address.to_string()));
            let Some(listener) = listener else {
                return StartError::Apply(ApplyError::Bind(bind));
            };
            let place = listener.address.place().unwrap_or(listener.place);
            vec![cannot_listen(&bind, place)]
        }
        ApplyError::Tls(faults) => faults,
        ApplyError::Log(fault) => vec![fault],
        ApplyError::Thread(_) | ApplyError::Disk(_) | ApplyError::Unresponsive => {
            return StartError::Apply(fault);
        }
    };
    of_configuration(faults, model)
}

pub(crate) fn of_configuration(faults: Vec<Diagnostic>, model: &Model) -> StartError {
    StartError::Config(Report::new(model.sources.clone(), faults))
}

/// `bind`, at the place of its address.
pub(crate) fn cannot_listen(bind: &BindError, place: Place) -> Diagnostic {
    let code = if bind.source.kind() == io::ErrorKind::AddrInUse {
        DiagnosticCode::AddressInUse
    } else {
        DiagnosticCode::CannotListen
    };
    let message = format!("cannot listen on {}", bind.address);
    Diagnostic::new(code, place, message).label(bind.why.clone())
}
