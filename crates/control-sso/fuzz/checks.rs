//! Properties that hold for any input; run by the fuzz targets and by the replay of their corpora.

use control_sso::saml::{Expected, IdpKey, IdpMetadata, Solicited, accept};
use std::sync::LazyLock;

const METADATA: &[u8] = include_bytes!("../../../fixtures/saml/pysaml2-both.metadata.xml");
const GENUINE: &[u8] = include_bytes!("../../../fixtures/saml/pysaml2-both.xml");

static PROVIDER: LazyLock<(IdpMetadata, Vec<IdpKey>)> = LazyLock::new(|| {
    let metadata = IdpMetadata::parse(METADATA).unwrap();
    let certificates = metadata.certificates.iter();
    let keys = certificates.map(|text| IdpKey::from_base64(text).unwrap());
    let keys = keys.collect();
    (metadata, keys)
});

/// Property: an accepted response has exactly the claims that the provider signed.
pub(crate) fn saml_response(xml: &[u8]) {
    let (metadata, keys) = &*PROVIDER;
    let expected = Expected {
        idp_entity_id: Some(&metadata.entity_id),
        sp_entity_id: "https://controld.test/sso/acme/saml/metadata",
        acs_url: "https://controld.test/sso/acme/saml/acs",
        solicited: Solicited::Request("_request-1"),
    };
    let now = "2026-11-25T14:06:30Z".parse().unwrap();
    // Metadata is untrusted too, so parsing it must not panic.
    drop(IdpMetadata::parse(xml));
    if let Ok(claims) = accept(xml, keys, &expected, now) {
        let genuine = accept(GENUINE, keys, &expected, now).unwrap();
        assert_eq!(claims, genuine);
    }
}
