//! Interface of the client to the node's proxy and machine.

use crate::bundle::{Bundle, Certificates};
use crate::event::RefusalReason;
use control_wire::{HttpChallenge, Traffic};
use jiff::Timestamp;
use std::path::PathBuf;
use std::sync::Arc;

/// Abilities of the node itself.
pub trait Host: Send {
    /// Activates the bundle, or returns the faults and changes nothing.
    fn activate(
        &mut self,
        started: Started,
    ) -> impl Future<Output = Result<(), Vec<String>>> + Send;

    /// Activates the bundle and sends its live tests. If one fails, reactivates the previous
    /// configuration, and returns the failure. Failures that the previous configuration has as well
    /// are returned with success.
    ///
    /// The default implementation sends nothing.
    fn try_out(
        &mut self,
        started: Started,
    ) -> impl Future<Output = Result<Vec<String>, Vec<String>>> + Send {
        let activated = self.activate(started);
        async { activated.await.map(|()| Vec::new()) }
    }

    /// Activates renewed certificates of the active bundle, or returns the faults and changes
    /// nothing.
    ///
    /// The default implementation does nothing, for hosts without TLS.
    fn renew(&mut self, renewed: Renewed) -> impl Future<Output = Result<(), Vec<String>>> + Send {
        drop(renewed);
        std::future::ready(Ok(()))
    }

    /// Answers exactly these validations by certificate authorities from now on, on every listener without TLS.
    ///
    /// The default implementation does nothing, for hosts without listeners.
    fn answer_challenges(&mut self, _challenges: &[HttpChallenge]) {}

    /// Receives the state of the client's connection to its control plane, after each action.
    ///
    /// The default implementation does nothing, for hosts without metrics.
    fn observe(&mut self, seen: Observation) {
        drop(seen);
    }

    /// Load of the machine, and its traffic since the last activation.
    fn measure(&mut self) -> Measured;
}

/// Measurements for a heartbeat.
#[derive(Clone, Debug, Default)]
pub struct Measured {
    /// 100 for one core.
    pub cpu_percent: f64,
    /// Counters since the bundle's activation.
    pub traffic: Option<Traffic>,
}

/// A bundle ready for activation.
#[derive(Clone, Debug)]
pub struct Started {
    /// Bundle that the process began with.
    pub bundle: Arc<Bundle>,
    /// The folder with its files; empty without a disk.
    pub folder: PathBuf,
    /// The certificates that it needs.
    pub certificates: Certificates,
}

/// Certificates renewed since their bundle's activation.
#[derive(Clone, Debug)]
pub struct Renewed {
    /// The folder with the bundle's files; empty without a disk.
    pub folder: PathBuf,
    /// All certificates that the bundle needs.
    pub certificates: Certificates,
}

/// State of the connection to the control plane.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observation {
    /// True if the last request was answered, and the credential accepted.
    pub connected: bool,
    /// Time of the last answer of any kind; `None` before the first.
    pub last_contact: Option<Timestamp>,
    /// The counter of the order of the active bundle; 0 without one.
    pub order: u64,
    /// Refusals of the node since the last observation.
    pub refusals: Vec<RefusalReason>,
}
