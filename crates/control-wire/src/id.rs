//! Identifiers: `UUIDv7`, one type for each noun.

use jiff::Timestamp;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::str::FromStr;
use utoipa::ToSchema;
use uuid::fmt::Hyphenated;
use uuid::{Builder, Uuid};

macro_rules! id {
    ($($(#[$doc:meta])* $name:ident,)*) => {$(
        $(#[$doc])*
        ///
        /// The first 48 bits are the time of creation, so identifiers sort by age.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(Serialize, ToSchema)]
        #[serde(transparent)]
        pub struct $name(pub Uuid);

        impl $name {
            /// A new identifier, given the time and ten random bytes.
            pub fn new(now: Timestamp, random: [u8; 10]) -> Self {
                let millis = u64::try_from(now.as_millisecond()).unwrap_or(0);
                Self(Builder::from_unix_timestamp_millis(millis, &random).into_uuid())
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                hyphenated(deserializer).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl FromStr for $name {
            type Err = uuid::Error;

            fn from_str(text: &str) -> Result<Self, uuid::Error> {
                text.parse().map(Self)
            }
        }

        impl From<Uuid> for $name {
            fn from(id: Uuid) -> Self {
                Self(id)
            }
        }
    )*};
}

/// Reads a UUID with its hyphens. Other spellings would give one resource several names.
fn hyphenated<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Uuid, D::Error> {
    let text = String::deserialize(deserializer)?;
    let parsed = (text.len() == Hyphenated::LENGTH).then(|| Uuid::try_parse(&text).ok());
    let parsed = parsed.flatten();
    parsed.ok_or_else(|| D::Error::custom("is not a UUID with its hyphens"))
}

id! {
    /// Names an API key.
    ApiKeyId,
    /// Names a bundle.
    BundleId,
    /// Names a certificate.
    CertificateId,
    /// Names a drift event.
    DriftId,
    /// Names an enrolment token.
    EnrolmentTokenId,
    /// Names a running process of a node.
    InstanceId,
    /// Names a certificate that is obtained and renewed by ACME.
    ManagedCertificateId,
    /// Names an event of a node.
    NodeEventId,
    /// Names a user at an identity provider.
    IdentityId,
    /// Names an invitation.
    InvitationId,
    /// Names a node.
    NodeId,
    /// Names an organization.
    OrgId,
    /// Names a project.
    ProjectId,
    /// Names a rollout.
    RolloutId,
    /// Names a sealed secret.
    SecretId,
    /// Names a service.
    ServiceId,
    /// Names a session.
    SessionId,
    /// Names a signing key.
    SigningKeyId,
    /// Names an upstream.
    UpstreamId,
    /// Names a user.
    UserId,
    /// Names a delivery of a webhook.
    WebhookDeliveryId,
    /// Names a webhook.
    WebhookId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_identifier_is_read_in_one_spelling() {
        let id = "01900000-0000-7000-8000-00000000abcd";
        let read = |text: &str| serde_json::from_str::<OrgId>(&format!("\"{text}\""));
        assert_eq!(read(id).unwrap().to_string(), id);
        for other in [
            &id.replace('-', ""),
            &format!("{{{id}}}"),
            &format!("urn:uuid:{id}"),
            "",
        ] {
            assert!(read(other).is_err(), "{other}");
        }
    }

    #[test]
    fn identifiers_sort_by_age_and_are_version_7() {
        let old = OrgId::new(Timestamp::from_millisecond(1_000).unwrap(), [255; 10]);
        let new = OrgId::new(Timestamp::from_millisecond(1_001).unwrap(), [0; 10]);
        assert!(old < new);
        assert_eq!(new.0.get_version_num(), 7);
        assert_eq!(new.to_string().parse::<OrgId>().unwrap(), new);
    }
}
