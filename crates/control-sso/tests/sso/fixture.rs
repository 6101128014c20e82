//! Responses of real providers, or in the form that providers document, with their metadata.

use control_sso::saml::{Claims, Expected, IdpKey, IdpMetadata, SamlError, Solicited, accept};
use jiff::Timestamp;
use std::path::{Path, PathBuf};

pub(crate) const SP: &str = "https://controld.test/sso/acme/saml/metadata";
pub(crate) const ACS: &str = "https://controld.test/sso/acme/saml/acs";
pub(crate) const REQUEST: &str = "_request-1";

pub(crate) struct Fixture {
    pub(crate) response: String,
    pub(crate) metadata: IdpMetadata,
    pub(crate) keys: Vec<IdpKey>,
}

pub(crate) fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/saml")
}

impl Fixture {
    pub(crate) fn load(name: &str) -> Self {
        let read = |end: &str| std::fs::read(folder().join(format!("{name}{end}"))).unwrap();
        let metadata = IdpMetadata::parse(&read(".metadata.xml")).unwrap();
        let certificates = metadata.certificates.iter();
        let keys = certificates.map(|text| IdpKey::from_base64(text).unwrap());
        Self {
            response: String::from_utf8(read(".xml")).unwrap(),
            keys: keys.collect(),
            metadata,
        }
    }

    pub(crate) fn expected(&self) -> Expected<'_> {
        Expected {
            idp_entity_id: Some(&self.metadata.entity_id),
            sp_entity_id: SP,
            acs_url: ACS,
            solicited: Solicited::Request(REQUEST),
        }
    }

    pub(crate) fn accept(&self, xml: &[u8]) -> Result<Claims, SamlError> {
        accept(xml, &self.keys, &self.expected(), now())
    }
}

/// Returns a time at most four minutes after the creation of all fixtures.
pub(crate) fn now() -> Timestamp {
    "2026-11-25T14:06:30Z".parse().unwrap()
}
