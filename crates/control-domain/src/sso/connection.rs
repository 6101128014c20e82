//! Connection of an organization to its identity provider.

use crate::access::actor::Actor;
use crate::access::refusal::Refusal;
use crate::access::{Access, Tenant};
use crate::sso::group_mapping::GroupMapping;
use control_sso::WebUrl;
use control_sso::saml::IdpKey;
use control_wire::{OrgId, SecretId};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

const MAX_TEXT_CHARS: usize = 1_000;
const MAX_SCOPES: usize = 20;
const MAX_CERTIFICATE_BYTES: usize = 64 * 1024;
const USUAL_SCOPES: [&str; 3] = ["openid", "email", "profile"];

/// Connection of an organization to its identity provider, at most one per organization.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SsoConnection {
    /// Organization with the users that sign in by it.
    pub org: OrgId,
    /// The settings of its protocol.
    pub settings: SsoSettings,
    /// Sealed client secret (OpenID Connect), or sealed key that signs requests (SAML).
    pub secret: SecretId,
    /// Time of creation.
    pub created_at: Timestamp,
}

/// Settings of the connection's protocol.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SsoSettings {
    /// OpenID Connect.
    Oidc(OidcSettings),
    /// SAML 2.0.
    Saml(SamlSettings),
}

/// Settings of OpenID Connect, without the client secret. URLs that are not set come from
/// discovery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct OidcSettings {
    /// Client identifier at the provider.
    pub client_id: String,
    /// Issuer; the discovery document must have exactly this text.
    pub issuer: String,
    /// Authorization endpoint; `None` takes the one of the discovery document.
    pub authorize_url: Option<String>,
    /// Token endpoint; `None` takes the one of the discovery document.
    pub token_url: Option<String>,
    /// User-info endpoint; `None` takes the one of the discovery document.
    pub userinfo_url: Option<String>,
    /// Requested scopes; empty for `openid email profile`.
    pub scopes: Vec<String>,
    /// Roles by group.
    pub group_mapping: GroupMapping,
}

/// Settings of SAML 2.0. The provider is described by its metadata, or by URL and certificates,
/// with or without its entity ID.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SamlSettings {
    /// URL of the provider's metadata.
    pub idp_metadata_url: Option<String>,
    /// Sign-in URL of the provider; overrides the metadata.
    pub idp_sso_url: Option<String>,
    /// Certificates of the provider, 1 to 8 in PEM; they override the metadata.
    pub idp_cert_pem: Option<String>,
    /// Entity ID of this service.
    pub sp_entity_id: String,
    /// URL for the provider's responses.
    pub assertion_consumer_service_url: String,
    /// Roles by group.
    pub group_mapping: GroupMapping,
    /// Entity ID of the provider; the metadata must have the same. With neither, the issuer of the
    /// first accepted response is used.
    pub idp_entity_id: Option<String>,
    /// Permits sign-ins that begin at the identity provider.
    pub allow_unsolicited: bool,
}

/// Whether configured URLs may have loopback, private or link-local addresses, or no TLS.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PrivateAddresses {
    /// Only public addresses with TLS.
    #[default]
    Refused,
    /// Private addresses and plain HTTP as well.
    Allowed,
}

impl SsoConnection {
    /// Creates a connection with validated settings.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad field.
    pub fn create(
        actor: &Actor,
        org: OrgId,
        settings: SsoSettings,
        secret: SecretId,
        addresses: PrivateAddresses,
        now: Timestamp,
    ) -> Result<Self, Refusal> {
        actor.require(Access::CONTROL, Tenant::org(org))?;
        Ok(Self {
            org,
            settings: settings.checked(addresses)?,
            secret,
            created_at: now,
        })
    }

    /// Replaces settings and secret.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission, or for a bad field.
    pub fn change(
        self,
        actor: &Actor,
        settings: SsoSettings,
        secret: SecretId,
        addresses: PrivateAddresses,
    ) -> Result<Self, Refusal> {
        actor.require(Access::CONTROL, self.tenant())?;
        let settings = settings.checked(addresses)?;
        Ok(Self {
            settings,
            secret,
            ..self
        })
    }

    /// Checks that the connection may be deleted.
    ///
    /// # Errors
    ///
    /// [`Refusal`] without the permission.
    pub fn check_delete(&self, actor: &Actor) -> Result<(), Refusal> {
        actor
            .holds(Access::System)
            .or_else(|_| actor.require(Access::CONTROL, self.tenant()))
    }

    /// The organization, as the tenant of its own resources.
    pub fn tenant(&self) -> Tenant {
        Tenant::org(self.org)
    }
}

impl SsoSettings {
    /// Name of the protocol in the interface, in sessions and in the database.
    pub fn protocol(&self) -> &'static str {
        match self {
            Self::Oidc(_) => "oidc",
            Self::Saml(_) => "saml",
        }
    }

    /// Roles by group.
    pub fn group_mapping(&self) -> &GroupMapping {
        match self {
            Self::Oidc(settings) => &settings.group_mapping,
            Self::Saml(settings) => &settings.group_mapping,
        }
    }

    /// Returns true if the stored secret of `before` may be kept: client and endpoints are
    /// unchanged, and so are the scopes of the access tokens that the secret obtains.
    pub fn keeps_secret_of(&self, before: &Self) -> bool {
        match (self, before) {
            (Self::Oidc(own), Self::Oidc(before)) => {
                own.client_id == before.client_id
                    && own.issuer == before.issuer
                    && own.token_url == before.token_url
                    && own.userinfo_url == before.userinfo_url
                    && own.scopes_in_force() == before.scopes_in_force()
            }
            (Self::Saml(_), Self::Saml(_)) => true,
            (Self::Oidc(_), Self::Saml(_)) | (Self::Saml(_), Self::Oidc(_)) => false,
        }
    }

    /// Returns true if both settings refer to the same provider and its users.
    pub fn is_same_provider(&self, before: &Self) -> bool {
        match (self, before) {
            (Self::Oidc(own), Self::Oidc(before)) => own.issuer == before.issuer,
            (Self::Saml(own), Self::Saml(before)) => {
                let is_named = own.idp_entity_id.is_some() || own.idp_metadata_url.is_some();
                own.idp_entity_id == before.idp_entity_id
                    && own.idp_metadata_url == before.idp_metadata_url
                    && (is_named || own.idp_sso_url == before.idp_sso_url)
            }
            (Self::Oidc(_), Self::Saml(_)) | (Self::Saml(_), Self::Oidc(_)) => false,
        }
    }

    fn checked(self, addresses: PrivateAddresses) -> Result<Self, Refusal> {
        match self {
            Self::Oidc(settings) => settings.checked(addresses).map(Self::Oidc),
            Self::Saml(settings) => settings.checked(addresses).map(Self::Saml),
        }
    }
}

impl OidcSettings {
    /// Scopes to request; the defaults if none are set.
    fn scopes_in_force(&self) -> Vec<String> {
        if self.scopes.is_empty() {
            return USUAL_SCOPES.map(str::to_owned).to_vec();
        }
        self.scopes.clone()
    }

    fn checked(self, addresses: PrivateAddresses) -> Result<Self, Refusal> {
        check_text("client_id", &self.client_id)?;
        check_url("issuer", &self.issuer, addresses)?;
        for (field, url) in [
            ("authorize_url", &self.authorize_url),
            ("token_url", &self.token_url),
            ("userinfo_url", &self.userinfo_url),
        ] {
            check_optional_url(field, url.as_deref(), addresses)?;
        }
        let scopes = self.scopes_in_force();
        let is_scope = |scope: &String| {
            // RFC 6749, section 3.3: NQCHAR.
            let is_allowed = |byte| matches!(byte, 0x21 | 0x23..=0x5b | 0x5d..=0x7e);
            (1..=100).contains(&scope.len()) && scope.bytes().all(is_allowed)
        };
        if MAX_SCOPES < scopes.len() || !scopes.iter().all(is_scope) {
            let reason = "needs at most 20 scopes of 1 to 100 characters without spaces";
            return Err(Refusal::invalid("scopes", reason));
        }
        Ok(Self { scopes, ..self })
    }
}

impl SamlSettings {
    fn checked(self, addresses: PrivateAddresses) -> Result<Self, Refusal> {
        let url = self.idp_metadata_url.as_deref();
        check_optional_url("idp_metadata_url", url, addresses)?;
        check_optional_url("idp_sso_url", self.idp_sso_url.as_deref(), addresses)?;
        check_text("sp_entity_id", &self.sp_entity_id)?;
        let acs = &self.assertion_consumer_service_url;
        check_url("assertion_consumer_service_url", acs, addresses)?;
        if let Some(text) = &self.idp_entity_id {
            check_text("idp_entity_id", text)?;
        }
        if let Some(text) = &self.idp_cert_pem {
            let is_good = text.len() <= MAX_CERTIFICATE_BYTES && IdpKey::from_pem(text).is_ok();
            if !is_good {
                let reason = "needs 1 to 8 certificates in PEM with keys of RSA from 2048 bits, P-256 or P-384";
                return Err(Refusal::invalid("idp_cert_pem", reason));
            }
        }
        if self.idp_metadata_url.is_none() {
            let without = "is needed where there is no idp_metadata_url";
            for (field, value) in [
                ("idp_sso_url", &self.idp_sso_url),
                ("idp_cert_pem", &self.idp_cert_pem),
            ] {
                if value.is_none() {
                    return Err(Refusal::invalid(field, without));
                }
            }
        }
        Ok(self)
    }
}

fn check_text(field: &'static str, text: &str) -> Result<(), Refusal> {
    let length = text.chars().count();
    let is_good = (1..=MAX_TEXT_CHARS).contains(&length)
        && text.trim() == text
        && !text.chars().any(char::is_control);
    let reason = "needs 1 to 1000 characters, without control characters and spaces at an end";
    is_good.then_some(()).ok_or(Refusal::invalid(field, reason))
}

fn check_optional_url(
    field: &'static str,
    text: Option<&str>,
    addresses: PrivateAddresses,
) -> Result<(), Refusal> {
    text.map_or(Ok(()), |text| check_url(field, text, addresses))
}

pub(crate) fn check_url(
    field: &'static str,
    text: &str,
    addresses: PrivateAddresses,
) -> Result<(), Refusal> {
    let url = WebUrl::parse(text);
    let is_good = url.is_some_and(|url| url.is_https() || addresses == PrivateAddresses::Allowed);
    let reason = "is not an https URL without credentials and fragment";
    is_good.then_some(()).ok_or(Refusal::invalid(field, reason))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn mapping() -> GroupMapping {
        let entries = BTreeMap::from([("default".to_owned(), "reader".to_owned())]);
        GroupMapping::parse(entries).unwrap()
    }

    fn oidc() -> OidcSettings {
        OidcSettings {
            client_id: "controld".to_owned(),
            issuer: "https://idp.test".to_owned(),
            authorize_url: None,
            token_url: None,
            userinfo_url: None,
            scopes: Vec::new(),
            group_mapping: mapping(),
        }
    }

    fn saml() -> SamlSettings {
        SamlSettings {
            idp_metadata_url: Some("https://idp.test/metadata".to_owned()),
            idp_sso_url: None,
            idp_cert_pem: None,
            sp_entity_id: "urn:controld".to_owned(),
            assertion_consumer_service_url: "https://sp.test/acs".to_owned(),
            group_mapping: mapping(),
            idp_entity_id: None,
            allow_unsolicited: false,
        }
    }

    fn field(settings: SsoSettings) -> Option<&'static str> {
        match settings.checked(PrivateAddresses::Refused) {
            Err(Refusal::Invalid { field, .. }) => Some(field),
            _ => None,
        }
    }

    #[test]
    fn a_wrong_field_of_openid_connect_is_named() {
        let some = |text: &str| Some(text.to_owned());
        let oidc_cases = [
            (
                OidcSettings {
                    client_id: String::new(),
                    ..oidc()
                },
                "client_id",
            ),
            (
                OidcSettings {
                    issuer: "http://idp.test".to_owned(),
                    ..oidc()
                },
                "issuer",
            ),
            (
                OidcSettings {
                    issuer: "idp.test".to_owned(),
                    ..oidc()
                },
                "issuer",
            ),
            (
                OidcSettings {
                    token_url: some("ftp://idp.test"),
                    ..oidc()
                },
                "token_url",
            ),
            (
                OidcSettings {
                    scopes: vec!["a b".to_owned()],
                    ..oidc()
                },
                "scopes",
            ),
        ];
        for (settings, expected) in oidc_cases {
            assert_eq!(field(SsoSettings::Oidc(settings)), Some(expected));
        }
        let whole = oidc().checked(PrivateAddresses::Refused).unwrap();
        assert_eq!(whole.scopes, USUAL_SCOPES);
    }

    #[test]
    fn a_wrong_field_of_saml_is_named() {
        let some = |text: &str| Some(text.to_owned());
        let saml_cases = [
            (
                SamlSettings {
                    sp_entity_id: " a".to_owned(),
                    ..saml()
                },
                "sp_entity_id",
            ),
            (
                SamlSettings {
                    idp_metadata_url: None,
                    ..saml()
                },
                "idp_sso_url",
            ),
            (
                SamlSettings {
                    idp_metadata_url: None,
                    idp_sso_url: some("https://idp.test/sso"),
                    ..saml()
                },
                "idp_cert_pem",
            ),
            (
                SamlSettings {
                    idp_cert_pem: some("x"),
                    ..saml()
                },
                "idp_cert_pem",
            ),
            (
                SamlSettings {
                    idp_sso_url: some("https://u:p@idp.test"),
                    ..saml()
                },
                "idp_sso_url",
            ),
        ];
        for (settings, expected) in saml_cases {
            assert_eq!(field(SsoSettings::Saml(settings)), Some(expected));
        }
        assert_eq!(field(SsoSettings::Saml(saml())), None);
    }

    #[test]
    fn a_secret_is_kept_for_the_same_endpoints_and_scopes_only() {
        let before = SsoSettings::Oidc(oidc());
        let keeps = |settings| SsoSettings::Oidc(settings).keeps_secret_of(&before);
        assert!(keeps(OidcSettings {
            scopes: USUAL_SCOPES.map(str::to_owned).to_vec(),
            ..oidc()
        }));
        assert!(!keeps(OidcSettings {
            scopes: vec!["openid".to_owned(), "files".to_owned()],
            ..oidc()
        }));
        assert!(!keeps(OidcSettings {
            userinfo_url: Some("https://evil.test".to_owned()),
            ..oidc()
        }));
        assert!(!keeps(OidcSettings {
            token_url: Some("https://evil.test".to_owned()),
            ..oidc()
        }));
        assert!(!keeps(OidcSettings {
            issuer: "https://evil.test".to_owned(),
            ..oidc()
        }));
        assert!(!SsoSettings::Saml(saml()).keeps_secret_of(&before));
    }
}
