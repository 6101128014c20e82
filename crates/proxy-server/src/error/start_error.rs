//! The reason why the process could not start, or ended unexpectedly.

use crate::error::apply_error::ApplyError;
use proxy_config::{Diagnostic, Report};
use proxy_model::Model;
use std::io;

/// The reason why the process could not start, or ended unexpectedly.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The configuration is invalid.
    #[error("{0}")]
    Config(Report),
    /// The configuration is valid and cannot be applied.
    #[error(transparent)]
    Apply(#[from] ApplyError),
    /// Live tests of a bundle failed before it was applied, each with its reason.
    #[error("{}", .0.join("; "))]
    Rehearsal(Vec<String>),
    /// The predecessor did not pass its sockets.
    #[error("cannot take over: {0}")]
    TakeOver(io::Error),
    /// The worker with this number died while serving.
    #[error("worker {0} has died")]
    WorkerLost(usize),
    /// The task that accepts connections of the admin interface panicked.
    #[error("the admin interface has died")]
    AdminLost,
    /// An error of the operating system.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// Converts an error of applying; with a place in the configuration it becomes a
/// diagnostic.
pub(crate) fn into_start_error(fault: ApplyError, model: &Model) -> StartError {
    let faults = match fault {
        ApplyError::Bind(bind) => {
            let written = |address: &str| address == bind.address;
            let mut listeners = model.listeners.iter();
            let listener = listeners.find(|listener| written(&listener.address.to_string()));
            let Some(listener) = listener else {
                return StartError::Apply(ApplyError::Bind(bind));
            };
            let place = listener.address.place().unwrap_or(listener.place);
            vec![bind.diagnostic(place)]
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
    configuration_error(faults, model)
}

pub(crate) fn configuration_error(faults: Vec<Diagnostic>, model: &Model) -> StartError {
    StartError::Config(Report::new(model.sources.clone(), faults))
}
