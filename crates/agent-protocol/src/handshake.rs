//! The first frame of each side: the proxy's offer, and the agent's choice.

use crate::bounded::list;
use crate::encoding::Encoding;
use crate::id::RequestId;
use crate::object::object;
use serde::{Deserialize, Serialize};
use thiserror::Error;

/// The version of this protocol.
pub const PROTOCOL_VERSION: u32 = 1;
/// Maximum of a frame of the handshake.
pub const MAX_HANDSHAKE_BYTES: usize = 16_384;

/// The feature that buffered bodies of more than [`MAX_PART_BYTES`] are sent in several frames.
pub const BODY_PARTS: &str = "body_parts";
/// Maximum of body bytes in one frame where [`BODY_PARTS`] was agreed on.
pub const MAX_PART_BYTES: usize = 64 << 10;

const MAX_VERSIONS: usize = 16;
const MAX_ENCODINGS: usize = 16;
const MAX_FEATURES: usize = 64;

/// The proxy's offer, its first frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// [`RequestId::CONNECTION`].
    pub id: RequestId,
    /// Versions of the protocol supported by the proxy.
    #[serde(deserialize_with = "list::<_, _, MAX_VERSIONS>")]
    pub versions: Vec<u32>,
    /// Names of the encodings that it accepts, the preferred one first.
    #[serde(deserialize_with = "list::<_, _, MAX_ENCODINGS>")]
    pub encodings: Vec<String>,
    /// Its name and version, for the agent's log.
    pub proxy: String,
    /// The agent's name in the proxy's configuration.
    pub agent: String,
    /// Longest frame that the proxy sends after the handshake.
    pub max_event_bytes: usize,
    /// Longest frame that it accepts after the handshake.
    pub max_decision_bytes: usize,
    /// Additions to this version that it understands, such as [`BODY_PARTS`].
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "list::<_, _, MAX_FEATURES>"
    )]
    pub features: Vec<String>,
}

impl Hello {
    /// Returns true if the proxy accepts this encoding.
    pub fn offers(&self, encoding: Encoding) -> bool {
        self.encodings.iter().any(|name| name == encoding.name())
    }
}

/// The agent's answer, its first frame.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Welcome {
    /// [`RequestId::CONNECTION`].
    pub id: RequestId,
    /// One of the offered versions.
    pub version: u32,
    /// One of the offered encodings.
    #[serde(default)]
    pub encoding: Encoding,
    /// Its name and version, for the proxy's log.
    pub agent: String,
    /// The events that the agent subscribes to.
    #[serde(default, deserialize_with = "object")]
    pub wants: Wants,
    /// The offered additions that it uses.
    #[serde(
        default,
        skip_serializing_if = "Vec::is_empty",
        deserialize_with = "list::<_, _, MAX_FEATURES>"
    )]
    pub features: Vec<String>,
}

/// The events that an agent subscribes to in addition to request heads, which it always gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Wants {
    /// Bodies of requests.
    pub request_body: BodyMode,
    /// Heads of responses.
    pub response_headers: bool,
    /// Bodies of responses; needs their heads.
    pub response_body: BodyMode,
    /// The end of each request.
    pub completion: bool,
}

/// Delivery of bodies to an agent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BodyMode {
    /// Not at all.
    #[default]
    None,
    /// In one event, before any of it is forwarded.
    Buffered,
    /// In pieces as they arrive; each is forwarded once its event was allowed.
    Chunks,
}

/// Mismatch between an agent's answer and the offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Error)]
pub enum WelcomeError {
    /// The id is not 0.
    #[error("a handshake with an id other than 0")]
    Id,
    /// The version was not offered.
    #[error("a version that was not offered")]
    Version,
    /// The encoding was not offered.
    #[error("an encoding that was not offered")]
    Encoding,
    /// A feature was not offered.
    #[error("a feature that was not offered")]
    Feature,
    /// A subscription to response bodies without their heads.
    #[error("response bodies without response headers")]
    Wants,
}

impl Welcome {
    /// Checks that the answer fits the offer.
    ///
    /// # Errors
    /// The first field that does not.
    pub fn check(&self, hello: &Hello) -> Result<(), WelcomeError> {
        let Self {
            id,
            version,
            encoding,
            agent: _,
            wants,
            features,
        } = self;
        let is_offered = |feature| hello.features.contains(feature);
        if *id != RequestId::CONNECTION {
            Err(WelcomeError::Id)
        } else if !hello.versions.contains(version) {
            Err(WelcomeError::Version)
        } else if !hello.offers(*encoding) {
            Err(WelcomeError::Encoding)
        } else if !features.iter().all(is_offered) {
            Err(WelcomeError::Feature)
        } else if wants.response_body != BodyMode::None && !wants.response_headers {
            Err(WelcomeError::Wants)
        } else {
            Ok(())
        }
    }
}
