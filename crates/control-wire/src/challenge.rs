//! Validations of hosts by certificate authorities, which nodes answer.

use serde::{Deserialize, Serialize};
use std::fmt;
use utoipa::ToSchema;

/// A validation by HTTP-01 (RFC 8555, 8.3). While it is in its desired state, a node answers
/// `GET /.well-known/acme-challenge/TOKEN` on its listeners without TLS.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct HttpChallenge {
    /// The host that is validated.
    pub host: String,
    /// Last segment of the path.
    pub token: String,
    /// Body of the answer.
    pub key_authorization: String,
}

/// The challenges that a node answers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct ChallengesRequest {
    /// The tokens of all of them, at most 1000.
    #[schema(max_items = 1000)]
    pub tokens: Vec<String>,
}

impl fmt::Debug for HttpChallenge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "HttpChallenge({}, …)", self.host)
    }
}
