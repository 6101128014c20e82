//! Authentication requests.

use aws_lc_rs::signature::{RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey};
use base64::{Engine, engine::general_purpose::STANDARD};
use control_sso::WebUrl;
use control_sso::saml::{AuthnRequest, SpKey, request_id};
use flate2::read::DeflateDecoder;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::io::Read;
use x509_parser::prelude::{FromDer, X509Certificate};

const SSO: &str = "https://idp.test/sso?tenant=a";

fn redirect(key: Option<&SpKey>) -> String {
    redirect_with(key, false)
}

fn redirect_with(key: Option<&SpKey>, force_authn: bool) -> String {
    let sso_url = WebUrl::parse(SSO).unwrap();
    let request = AuthnRequest {
        id: &request_id([7; 32]),
        sp_entity_id: "https://sp.test/?a=1&b=<2>",
        acs_url: "https://sp.test/acs",
        sso_url: &sso_url,
        now: Timestamp::UNIX_EPOCH,
        force_authn,
    };
    request.redirect("relay", key).unwrap()
}

fn parameters(url: &str) -> BTreeMap<String, String> {
    let (_, query) = url.split_once('?').unwrap();
    form_urlencoded::parse(query.as_bytes())
        .into_owned()
        .collect()
}

fn inflated(sent: &BTreeMap<String, String>) -> String {
    let deflated = STANDARD.decode(&sent["SAMLRequest"]).unwrap();
    let mut xml = String::new();
    DeflateDecoder::new(&*deflated)
        .read_to_string(&mut xml)
        .unwrap();
    xml
}

#[test]
fn a_request_for_a_proof_asks_for_the_authentication_anew() {
    for forced in [false, true] {
        let xml = inflated(&parameters(&redirect_with(None, forced)));
        let document = roxmltree::Document::parse(&xml).unwrap();
        let named = document.root_element().attribute("ForceAuthn");
        assert_eq!(named, forced.then_some("true"), "{xml}");
    }
}

#[test]
fn a_request_names_both_sides_and_begins_its_id_with_an_underscore() {
    let sent = parameters(&redirect(None));
    assert_eq!(
        (sent["tenant"].as_str(), sent["RelayState"].as_str()),
        ("a", "relay")
    );
    let xml = inflated(&sent);
    let document = roxmltree::Document::parse(&xml).unwrap();
    let root = document.root_element();
    assert!(root.attribute("ID").unwrap().starts_with('_'));
    assert_eq!(root.attribute("Destination"), Some(SSO));
    assert_eq!(
        root.attribute("AssertionConsumerServiceURL"),
        Some("https://sp.test/acs")
    );
    assert_eq!(root.attribute("IssueInstant"), Some("1970-01-01T00:00:00Z"));
    let issuer = root.first_element_child().unwrap();
    assert_eq!(issuer.text(), Some("https://sp.test/?a=1&b=<2>"));
}

#[test]
fn a_signature_covers_the_encoded_parameters_in_their_order() {
    let (key, pkcs8) = SpKey::generate().unwrap();
    let url = redirect(Some(&key));
    let (_, query) = url.split_once("tenant=a&").unwrap();
    let (message, _) = query.split_once("&Signature=").unwrap();
    assert!(message.starts_with("SAMLRequest=") && message.contains("&RelayState=relay&SigAlg="));
    let signature = STANDARD.decode(&parameters(&url)["Signature"]).unwrap();
    let certificate = STANDARD
        .decode(SpKey::certificate(&pkcs8, "sp").unwrap())
        .unwrap();
    let (_, certificate) = X509Certificate::from_der(&certificate).unwrap();
    let public = &certificate.public_key().subject_public_key.data;
    let public = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, public.as_ref());
    assert!(public.verify(message.as_bytes(), &signature).is_ok());
}
