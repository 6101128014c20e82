//! Metadata and certificates of identity providers.

use crate::fixture::Fixture;
use control_sso::saml::{IdpKey, IdpMetadata, SamlError, SpKey, SpMetadata};
use control_testkit::SamlProvider;

#[test]
fn the_providers_metadata_names_endpoint_keys_and_wish_for_signatures() {
    let one = Fixture::load("keycloak").metadata;
    let two = Fixture::load("keycloak-rollover").metadata;
    assert_eq!(one.entity_id, "https://keycloak.test/realms/acme");
    assert_eq!(one.sso_url.as_str(), "https://idp.test/redirect");
    assert_eq!((one.certificates.len(), two.certificates.len()), (1, 2));
    assert!(!one.wants_signed_requests && two.wants_signed_requests);
}

#[test]
fn incomplete_metadata_is_refused_with_the_missing_part() {
    let whole = SamlProvider::new("https://idp.test").metadata("https://idp.test/sso");
    assert!(IdpMetadata::parse(whole.as_bytes()).is_ok());
    let cases = [
        ("entityID", "other", "an entityID"),
        (
            "IDPSSODescriptor",
            "SPSSODescriptor",
            "one IDPSSODescriptor",
        ),
        (
            "HTTP-Redirect",
            "HTTP-POST",
            "a SingleSignOnService with HTTP-Redirect",
        ),
        (
            "https://idp.test/sso",
            "javascript:alert(1)",
            "a SingleSignOnService with HTTP-Redirect",
        ),
        ("X509Certificate", "X509Other", "a signing certificate"),
        (
            "<md:KeyDescriptor>",
            "<md:KeyDescriptor use=\"encryption\">",
            "a signing certificate",
        ),
        (
            "EntityDescriptor",
            "EntitiesDescriptor",
            "one EntityDescriptor as its root",
        ),
    ];
    for (part, other, lacks) in cases {
        let text = whole.replace(part, other);
        let refused = IdpMetadata::parse(text.as_bytes());
        assert_eq!(refused, Err(SamlError::Metadata(lacks)), "{part}");
    }
    let doctype = format!("<!DOCTYPE x>{whole}");
    assert_eq!(IdpMetadata::parse(doctype.as_bytes()), Err(SamlError::Xml));
}

#[test]
fn the_services_metadata_is_well_formed_and_its_key_is_usable() {
    let (_, pkcs8) = SpKey::generate().unwrap();
    assert!(SpKey::from_pkcs8(&pkcs8).is_ok());
    let certificate = SpKey::certificate(&pkcs8, "controld").unwrap();
    assert!(IdpKey::from_base64(&certificate).is_ok());
    let xml = SpMetadata {
        entity_id: "https://controld.test/?a=1&b=\"2\"",
        acs_url: "https://controld.test/acs",
        certificate: &certificate,
        signs_requests: true,
    }
    .xml();
    let document = roxmltree::Document::parse(&xml).unwrap();
    let root = document.root_element();
    assert_eq!(
        root.attribute("entityID"),
        Some("https://controld.test/?a=1&b=\"2\"")
    );
    let mut all = document.descendants();
    let acs = all.find(|node| node.tag_name().name() == "AssertionConsumerService");
    assert_eq!(
        acs.unwrap().attribute("Location"),
        Some("https://controld.test/acs")
    );
}

#[test]
fn pem_holds_one_or_more_certificates() {
    let (one, two) = (SamlProvider::new("a"), SamlProvider::new("b"));
    let count = |text: &str| IdpKey::from_pem(text).map(|keys| keys.len());
    assert_eq!(count(&one.certificate_pem()), Ok(1));
    assert_eq!(count(&one.certificate), Ok(1));
    assert_eq!(
        count(&(one.certificate_pem() + &two.certificate_pem())),
        Ok(2)
    );
    assert_eq!(
        count(&one.certificate_pem().repeat(9)),
        Err(SamlError::Certificate)
    );
    let bad = [
        String::new(),
        "hello".to_owned(),
        one.certificate_pem().replace("CERTIFICATE", "PRIVATE KEY"),
        one.certificate_pem().replace("-----END", "-----BEGIN"),
        format!("{}AAAA", one.certificate),
    ];
    for text in bad {
        assert_eq!(count(&text), Err(SamlError::Certificate), "{text}");
    }
}
