//! Phases of the machine.

use crate::bundle::Bundle;
use control_wire::Order;
use std::sync::Arc;

/// The outcome that the machine waits for.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Phase {
    Enrolling,
    ExchangingToken,
    /// Keys are being fetched; the order, if any, is signed by a key that is not known yet.
    FetchingKeys(Option<Order>),
    Reporting,
    Polling,
    Fetching(Order),
    Staging(Arc<Bundle>),
    FetchingCertificates(Arc<Bundle>),
    Activating(Arc<Bundle>),
    Reverting,
    FetchingRenewal,
    Renewing,
    Waiting,
}

impl Phase {
    /// Name in the reference.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::Enrolling => "enrolling",
            Self::ExchangingToken => "exchanging token",
            Self::FetchingKeys(None) => "fetching keys",
            Self::FetchingKeys(Some(_)) => "fetching keys for an order",
            Self::Reporting => "reporting",
            Self::Polling => "polling",
            Self::Fetching(_) => "fetching",
            Self::Staging(_) => "staging",
            Self::FetchingCertificates(_) => "fetching certificates",
            Self::Activating(_) => "activating",
            Self::Reverting => "reverting",
            Self::FetchingRenewal => "fetching renewed certificates",
            Self::Renewing => "renewing certificates",
            Self::Waiting => "waiting",
        }
    }
}
