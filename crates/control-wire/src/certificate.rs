//! A certificate for delivery to a node.

use crate::id::CertificateId;
use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// A certificate with its private key, for a node of its project. The node holds it in memory.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeCertificate {
    /// The certificate.
    pub id: CertificateId,
    /// The chain, leaf first.
    pub chain_pem: String,
    /// The private key of the leaf.
    pub private_key_pem: String,
}

impl fmt::Debug for NodeCertificate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "NodeCertificate({}, …)", self.id)
    }
}
