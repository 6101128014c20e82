//! Start of the process: its options, and its errors.

use crate::admin;
use crate::control_loop;
use crate::delivery::{Delivery, Follow, PrivateKeys};
use crate::events::Events;
use crate::handover::Program;
use crate::inherited_sockets::InheritedSockets;
use crate::listen::BindError;
use crate::server::{ApplyError, now, worker_count};
use crate::system_memory;
use crate::tls;
use crate::worst_case::WorstCase;
use proxy_config::{Diagnostic, DiagnosticCode, Files, Loaded, Report};
use proxy_model::{Model, Place};
use proxy_plan::failed_tests;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::borrow::Cow;
use std::io;
use std::path::PathBuf;

/// Options of the process.
#[derive(Clone, Debug)]
pub struct Options {
    /// Source of the configuration, at the start and at each reload.
    pub config: Source,
    /// Build information of the program.
    pub build: Build,
    /// The program that SIGUSR2 starts to take over; `None` refuses upgrades.
    pub program: Option<Program>,
    /// The log of the process's events, for its metrics and summaries; `None` leaves events to the
    /// program.
    pub events: Option<Events>,
    /// Starts the client of the control plane, if the configuration names one; `None` for a program
    /// without such a client, which then follows none.
    pub follow: Option<Follow>,
}

/// The source of a configuration.
#[derive(Clone, Debug)]
pub enum Source {
    /// A file, with its includes.
    File(PathBuf),
    /// A text, for embedding programs.
    Text(Cow<'static, str>),
    /// Built in: a welcome page on port 8080.
    Embedded,
}

/// Build information, for `--version`, `/status` and `/admin/version`.
#[derive(Clone, Copy, Debug)]
pub struct Build {
    /// Semantic version.
    pub version: &'static str,
    /// Commit hash.
    pub commit: &'static str,
    /// Time of the build, RFC 3339.
    pub built_at: &'static str,
    /// Version of the compiler.
    pub rustc: &'static str,
}

/// The reason why the process could not start, or ended unexpectedly.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is invalid.
    #[error("{0}")]
    Config(Report),
    /// The configuration is valid and cannot be applied.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// The predecessor did not pass its sockets.
    #[error("cannot take over: {0}")]
    TakeOver(#[source] io::Error),
    /// The worker with this number died while serving.
    #[error("worker {0} has died")]
    WorkerLost(usize),
    /// The task that accepts connections of the admin interface panicked.
    #[error("the admin interface has died")]
    AdminLost,
    /// An error of the operating system.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// Loads the configuration, serves until told to stop, and exits gracefully.
///
/// # Errors
/// [`StartError`] if serving could not begin, or a worker died.
pub fn run(options: &Options) -> Result<(), StartError> {
    let inherited = InheritedSockets::of_the_manager();
    claim_files();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let lived = runtime.block_on(control_loop::run(options, inherited));
    // A slow name server must not keep the process alive.
    runtime.shutdown_background();
    lived
}

/// Loads the configuration of `config`, and checks it as far as possible without serving:
/// certificates and the admin interface's token are read, too.
///
/// # Errors
/// All diagnostics.
pub fn load(config: &Source) -> Result<Loaded, Report> {
    check(read(config)?, &PrivateKeys::default())
}

/// Loads a bundle over the node's own configuration, and checks it like [`load`].
pub(crate) fn load_over(config: &Source, delivery: &Delivery) -> Result<Loaded, Report> {
    let Source::File(own) = config else {
        // Only a file can name a control plane.
        return load(config);
    };
    let files = Files::DiskAnd(delivery.keys.files());
    let bundle = delivery.entry_file.to_string_lossy();
    let loaded = proxy_config::load_over(files, &bundle, &own.to_string_lossy())?;
    check(loaded, &delivery.keys)
}

fn check(loaded: Loaded, keys: &PrivateKeys) -> Result<Loaded, Report> {
    let failed = failed_tests(&loaded.model);
    let mut loaded = loaded.unless_failed(failed)?;
    let token = admin::check(&loaded.model.admin).err();
    let mut faults: Vec<Diagnostic> = token.into_iter().collect();
    match tls::check(&loaded.model, keys, now()) {
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
    let worst = worst_case(&loaded.model);
    if let Some(limit_bytes) = worst.exceeded_limit() {
        loaded.compare_with_memory(worst.total_bytes(), limit_bytes);
    }
    Ok(loaded)
}

/// The most memory that `model` can take on this machine.
#[must_use]
pub fn worst_case(model: &Model) -> WorstCase {
    let workers = worker_count(model) as u64;
    let total_bytes = system_memory::total_bytes().unwrap_or(u64::MAX);
    WorstCase::of(model, workers, total_bytes)
}

/// Raises the limit of open files to the maximum that the system grants; the default is meant for
/// small programs.
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

/// Turns an error of applying into a diagnostic, if it has a place in the configuration.
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
        ApplyError::Thread(_)
        | ApplyError::Random(_)
        | ApplyError::Disk(_)
        | ApplyError::Unresponsive => {
            return StartError::Apply(fault);
        }
    };
    of_configuration(faults, model)
}

pub(crate) fn of_configuration(faults: Vec<Diagnostic>, model: &Model) -> StartError {
    StartError::Config(Report::new(model.sources.clone(), faults))
}

/// `bind` as a diagnostic, at the place of its address.
pub(crate) fn cannot_listen(bind: &BindError, place: Place) -> Diagnostic {
    let code = if bind.source.kind() == io::ErrorKind::AddrInUse {
        DiagnosticCode::AddressInUse
    } else {
        DiagnosticCode::CannotListen
    };
    let message = format!("cannot listen on {}", bind.address);
    Diagnostic::new(code, place, message).label(bind.why.clone())
}
