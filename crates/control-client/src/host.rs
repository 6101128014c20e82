//! Interface between the client and the proxy that it controls.

use crate::bundle::{Bundle, Certificates};
use crate::event::RefusalReason;
use control_wire::{HttpChallenge, Traffic};
use jiff::Timestamp;
use std::path::PathBuf;
use std::sync::Arc;

/// The proxy that the client controls.
pub trait Host: Send {
    /// Activates the bundle. On failure returns the faults, and changes nothing.
    fn activate(
        &mut self,
        started: Started,
    ) -> impl Future<Output = Result<(), Vec<String>>> + Send;

    /// Activates the bundle and runs its live tests. If one fails, reactivates the previous
    /// configuration and returns the failure. Tests that fail under the previous configuration as
    /// well are returned together with success.
    ///
    /// The default implementation runs no tests.
    fn try_out(
        &mut self,
        started: Started,
    ) -> impl Future<Output = Result<Vec<String>, Vec<String>>> + Send {
        let activated = self.activate(started);
        async { activated.await.map(|()| Vec::new()) }
    }

    /// Activates renewed certificates of the active bundle. On failure returns the faults, and
    /// changes nothing.
    ///
    /// The default implementation does nothing, for hosts without TLS.
    fn renew(&mut self, renewed: Renewed) -> impl Future<Output = Result<(), Vec<String>>> + Send {
        drop(renewed);
        std::future::ready(Ok(()))
    }

    /// From now on answers exactly these challenges of certificate authorities, on every listener
    /// without TLS.
    ///
    /// The default implementation does nothing, for hosts without listeners.
    fn answer_challenges(&mut self, _challenges: &[HttpChallenge]) {}

    /// Receives the state of the client's connection to its control plane, after each action.
    ///
    /// The default implementation does nothing, for hosts without metrics.
    fn observe(&mut self, seen: Observation) {
        drop(seen);
    }

    /// Measures CPU use, and traffic since the last activation.
    fn measure(&mut self) -> Measured;
}

/// Measurements for a heartbeat.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// CPU use in percent of one core.
    pub cpu_percent: f64,
    /// Counters since the activation of the bundle.
    pub traffic: Option<Traffic>,
}

/// A bundle that is ready for activation.
#[derive(Clone, Debug)]
pub struct Started {
    /// The bundle.
    pub bundle: Arc<Bundle>,
    /// Folder with its files; empty without a disk.
    pub folder: PathBuf,
    /// Certificates that the bundle needs.
    pub certificates: Certificates,
}

/// Certificates renewed since the activation of their bundle.
#[derive(Clone, Debug)]
pub struct Renewed {
    /// Folder with the bundle's files; empty without a disk.
    pub folder: PathBuf,
    /// All certificates that the bundle needs.
    pub certificates: Certificates,
}

/// State of the connection to the control plane, for metrics.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// Whether the last request got a response and the credential was accepted.
    pub connected: bool,
    /// Time of the last response of any kind; `None` before the first.
    pub last_contact: Option<Timestamp>,
    /// Counter of the active bundle's order; 0 without one.
    pub order: u64,
    /// Refusals since the previous observation.
    pub refusals: Vec<RefusalReason>,
}
