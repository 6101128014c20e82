//! Responses of pysaml2 (xmlsec1), samlify (xml-crypto) and signxml, in the forms of well-known providers.

use crate::fixture::{Fixture, now};
use control_sso::saml::{IdpKey, SamlError, accept};
use control_sso::{AssertedUser, Groups};
use control_testkit::SamlProvider;
use jiff::SignedDuration;

/// Name of the fixture, and the user, e-mail address and groups in it.
const ACCEPTED: &[(&str, &str, Option<&str>, &[&str])] = &[
    (
        "pysaml2-assertion",
        "p-alice",
        Some("alice@example.test"),
        &["admins", "readers"],
    ),
    (
        "pysaml2-response",
        "p-alice",
        Some("alice@example.test"),
        &["admins", "readers"],
    ),
    (
        "pysaml2-both",
        "p-alice",
        Some("alice@example.test"),
        &["admins", "readers"],
    ),
    (
        "samlify-assertion",
        "bob@example.test",
        Some("bob@example.test"),
        &["admins"],
    ),
    (
        "samlify-response",
        "bob@example.test",
        Some("bob@example.test"),
        &["admins"],
    ),
    (
        "samlify-both",
        "bob@example.test",
        Some("bob@example.test"),
        &["admins"],
    ),
    (
        "keycloak",
        "G-7b0b6b1c-6f1e-4c3a-9d2e-0a1b2c3d4e5f",
        Some("alice@example.test"),
        &["/admins", "/staff"],
    ),
    (
        "keycloak-rollover",
        "G-7b0b6b1c-6f1e-4c3a-9d2e-0a1b2c3d4e5f",
        Some("alice@example.test"),
        &["/admins", "/staff"],
    ),
    (
        "entra",
        "alice@example.test",
        Some("alice@example.test"),
        &[
            "0d3f1c9e-1111-4111-8111-111111111111",
            "9a8b7c6d-2222-4222-8222-222222222222",
        ],
    ),
    (
        "okta",
        "alice@example.test",
        Some("alice@example.test"),
        &["Everyone", "Proxy Admins"],
    ),
    (
        "adfs",
        "EXAMPLE\\alice",
        Some("alice@example.test"),
        &["Domain Users", "Proxy Operators"],
    ),
    (
        "simplesamlphp",
        "student",
        Some("alice@example.test"),
        &["admins", "r&d <b>"],
    ),
    (
        "ecdsa-p256",
        "G-7b0b6b1c-6f1e-4c3a-9d2e-0a1b2c3d4e5f",
        Some("alice@example.test"),
        &["/admins", "/staff"],
    ),
    (
        "ecdsa-p384",
        "G-7b0b6b1c-6f1e-4c3a-9d2e-0a1b2c3d4e5f",
        Some("alice@example.test"),
        &["/admins", "/staff"],
    ),
];

#[test]
fn genuine_responses_are_accepted_with_their_attributes_and_groups() {
    for (name, subject, email, groups) in ACCEPTED {
        let fixture = Fixture::load(name);
        let claims = fixture.accept(fixture.response.as_bytes());
        let user = AssertedUser::from(claims.unwrap_or_else(|error| panic!("{name}: {error}")));
        let groups = groups.iter().map(|group| (*group).to_owned()).collect();
        assert_eq!(user.subject, *subject, "{name}");
        assert_eq!(user.email.as_deref(), *email, "{name}");
        assert_eq!(user.groups, Groups::Listed(groups), "{name}");
        assert_eq!(user.issuer, fixture.metadata.entity_id, "{name}");
    }
}

#[test]
fn a_link_in_the_place_of_groups_is_seen() {
    let fixture = Fixture::load("entra-groups-link");
    let claims = fixture.accept(fixture.response.as_bytes()).unwrap();
    assert_eq!(AssertedUser::from(claims).groups, Groups::Link);
}

#[test]
fn an_encrypted_assertion_is_refused_with_the_switch_to_turn() {
    let fixture = Fixture::load("keycloak-encrypted");
    let refused = fixture.accept(fixture.response.as_bytes());
    assert_eq!(refused, Err(SamlError::Encrypted));
    assert!(
        SamlError::Encrypted
            .to_string()
            .contains("Keycloak: Encrypt assertions")
    );
}

#[test]
fn the_response_is_refused_without_the_certificate_that_signed_it() {
    let foreign = IdpKey::from_base64(&SamlProvider::new("other").certificate).unwrap();
    for (name, ..) in ACCEPTED {
        let fixture = Fixture::load(name);
        let with = |keys: &[IdpKey]| {
            accept(
                fixture.response.as_bytes(),
                keys,
                &fixture.expected(),
                now(),
            )
        };
        assert_eq!(
            with(std::slice::from_ref(&foreign)),
            Err(SamlError::Signature),
            "{name}"
        );
        assert_eq!(with(&[]), Err(SamlError::Signature), "{name}");
    }
}

#[test]
fn a_response_is_refused_before_and_after_its_time() {
    for (name, ..) in ACCEPTED {
        let fixture = Fixture::load(name);
        let at = |offset| {
            let time = now() + SignedDuration::from_mins(offset);
            accept(
                fixture.response.as_bytes(),
                &fixture.keys,
                &fixture.expected(),
                time,
            )
        };
        assert_eq!(at(-10), Err(SamlError::Early), "{name}");
        assert_eq!(at(10), Err(SamlError::Expired), "{name}");
    }
}
