//! Actions that the driver executes.

use crate::bundle::Bundle;
use control_wire::{CertificateId, NodeStatus, Order, OrgId};
use std::sync::Arc;
use std::time::Duration;

/// An action for the driver.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Exchange the enrolment token for an identity.
    Enrol,
    /// Exchange the node key for a token of 12 hours.
    ExchangeToken,
    /// Fetch the published signing keys of the organization.
    FetchKeys(OrgId),
    /// Send a heartbeat with this status.
    Report(NodeStatus),
    /// Request a response with another `ETag` than `known`, and wait up to `wait` for it.
    Poll {
        /// `ETag` of the last processed response, unchanged; empty without one.
        known: String,
        /// Maximum time for which the control plane may delay the response.
        wait: Duration,
    },
    /// Fetch the archive of the order.
    Fetch(Order),
    /// Unpack the bundle to the disk.
    Stage(Arc<Bundle>),
    /// Fetch these certificates with their private keys.
    FetchCertificates(Vec<CertificateId>),
    /// Activate the bundle; on failure change nothing.
    Activate(Arc<Bundle>),
    /// Activate the bundle and run its live tests; if one fails, reactivate the previous bundle.
    TryOut(Arc<Bundle>),
    /// Activate the last good bundle in place of the one on trial, without a request to the control
    /// plane.
    Revert,
    /// Activate the fetched certificates; on failure change nothing.
    Renew,
    /// Wait. The driver may shorten the time to a half, so that a fleet does not reconnect
    /// simultaneously.
    Wait(Duration),
}

impl Action {
    /// Fault of a request whose credential is refused.
    pub(crate) fn unauthorized(&self) -> &'static str {
        if matches!(self, Self::Enrol) {
            "the control plane does not accept the enrolment token: it is wrong, used up or has ended; create another one"
        } else {
            "the control plane does not accept the node's credential"
        }
    }

    /// Returns true if the action is a request to the control plane.
    pub(crate) fn is_request(&self) -> bool {
        match self {
            Self::Enrol
            | Self::ExchangeToken
            | Self::FetchKeys(_)
            | Self::Report(_)
            | Self::Poll { .. }
            | Self::Fetch(_)
            | Self::FetchCertificates(_) => true,
            Self::Stage(_)
            | Self::Activate(_)
            | Self::TryOut(_)
            | Self::Revert
            | Self::Renew
            | Self::Wait(_) => false,
        }
    }
}
