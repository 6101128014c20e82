//! ID tokens: valid ones for each kind of key, and kinds of forged ones.

use crate::token_signer::TokenSigner;
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use control_sso::oidc::{ExpectedToken, IdToken, KeySet, OidcError, verify_id_token};
use jiff::Timestamp;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};

const NOW: i64 = 1_800_000_000;
/// Access token with its SHA-256 and SHA-512 in `at_hash`.
const ACCESS: &str = "access";

struct Battery {
    signer: TokenSigner,
    keys: KeySet,
}

fn key_set(keys: &[Value]) -> KeySet {
    KeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}

fn claims() -> Value {
    json!({
        "iss": "https://idp.test", "sub": "alice", "aud": "controld", "nonce": "n1",
        "iat": NOW, "exp": NOW + 300,
    })
}

fn verify(token: &str, keys: &KeySet) -> Result<IdToken, OidcError> {
    let expected = ExpectedToken {
        issuer: "https://idp.test",
        client_id: "controld",
        nonce: "n1",
        access_token: ACCESS,
    };
    verify_id_token(token, keys, &expected, Timestamp::from_second(NOW).unwrap())
}

impl Battery {
    fn new() -> Self {
        let signer = TokenSigner::new();
        let keys = key_set(&signer.keys);
        Self { signer, keys }
    }

    fn verify_with(&self, header: &Value, claims: &Value) -> Result<IdToken, OidcError> {
        verify(&self.signer.sign_with_header(header, claims), &self.keys)
    }
}

fn half_hash(algorithm: &'static aws_lc_rs::digest::Algorithm) -> String {
    let whole = aws_lc_rs::digest::digest(algorithm, ACCESS.as_bytes());
    URL_SAFE_NO_PAD.encode(&whole.as_ref()[..whole.as_ref().len() / 2])
}

#[test]
fn a_token_of_every_kind_of_key_is_accepted() {
    use Algorithm as A;
    let battery = Battery::new();
    let all = [
        A::RS256,
        A::RS384,
        A::RS512,
        A::PS256,
        A::PS384,
        A::PS512,
        A::ES256,
        A::ES384,
        A::EdDSA,
    ];
    for algorithm in all {
        let token = battery.signer.sign(algorithm, &claims());
        let found = verify(&token, &battery.keys);
        let found = found.unwrap_or_else(|error| panic!("{algorithm:?}: {error}"));
        assert_eq!(
            (found.subject.as_str(), found.issuer.as_str()),
            ("alice", "https://idp.test")
        );
    }
}

#[test]
fn every_claim_is_checked() {
    use OidcError::Claim;
    let battery = Battery::new();
    let cases = [
        ("iss", json!("https://evil.test"), Claim("iss")),
        ("iss", json!("https://idp.test/"), Claim("iss")),
        ("iss", Value::Null, Claim("iss")),
        ("aud", json!("other"), Claim("aud")),
        ("aud", json!([]), Claim("aud")),
        ("aud", json!(["other"]), Claim("aud")),
        ("aud", json!(["controld", "other"]), Claim("azp")),
        ("azp", json!("other"), Claim("azp")),
        ("azp", json!(7), Claim("azp")),
        ("nonce", json!("n2"), Claim("nonce")),
        ("nonce", Value::Null, Claim("nonce")),
        ("nonce", json!(["n1"]), Claim("nonce")),
        ("sub", json!(""), Claim("sub")),
        ("sub", json!(7), Claim("sub")),
        ("sub", json!("a".repeat(256)), Claim("sub")),
        ("sub", json!("a\n"), Claim("sub")),
        ("exp", json!(NOW - 60), OidcError::Expired),
        ("exp", json!(i64::MIN), OidcError::Expired),
        ("exp", json!("soon"), Claim("exp")),
        ("iat", json!(NOW + 61), OidcError::Early),
        ("iat", json!(u64::MAX), OidcError::Early),
        ("iat", Value::Null, Claim("iat")),
        ("nbf", json!(NOW + 61), OidcError::Early),
        ("at_hash", json!("AAAA"), Claim("at_hash")),
        ("at_hash", json!(7), Claim("at_hash")),
    ];
    for (name, value, expected) in cases {
        let mut changed = claims();
        changed[name] = value;
        let token = battery.signer.sign(Algorithm::RS256, &changed);
        assert_eq!(
            verify(&token, &battery.keys).err(),
            Some(expected),
            "{changed}"
        );
    }
    let mut absent = claims();
    absent.as_object_mut().unwrap().remove("exp");
    let token = battery.signer.sign(Algorithm::RS256, &absent);
    assert_eq!(verify(&token, &battery.keys).err(), Some(Claim("exp")));
}

#[test]
fn harmless_forms_of_claims_are_accepted() {
    let battery = Battery::new();
    let sha256 = half_hash(&aws_lc_rs::digest::SHA256);
    let cases = [
        ("aud", json!(["controld"])),
        ("azp", json!("controld")),
        ("exp", json!(NOW - 59)),
        ("exp", json!(1_800_000_300.5)),
        ("iat", json!(NOW + 60)),
        ("nbf", json!(NOW)),
        ("at_hash", json!(sha256)),
    ];
    for (name, value) in cases {
        let mut changed = claims();
        changed[name] = value;
        let token = battery.signer.sign(Algorithm::RS256, &changed);
        assert!(verify(&token, &battery.keys).is_ok(), "{changed}");
    }
    let mut several = claims();
    several["aud"] = json!(["controld", "other"]);
    several["azp"] = json!("controld");
    let token = battery.signer.sign(Algorithm::ES256, &several);
    assert!(verify(&token, &battery.keys).is_ok());
    let mut edwards = claims();
    edwards["at_hash"] = json!(half_hash(&aws_lc_rs::digest::SHA512));
    let token = battery.signer.sign(Algorithm::EdDSA, &edwards);
    assert!(verify(&token, &battery.keys).is_ok());
}

#[test]
fn no_header_chooses_the_key_or_the_algorithm() {
    let battery = Battery::new();
    let jwk = battery.signer.keys[0].clone();
    let cases = [
        (json!({"alg": "none", "kid": "rsa"}), OidcError::Token),
        (json!({"kid": "rsa"}), OidcError::Token),
        (json!({"alg": "HS256", "kid": "rsa"}), OidcError::UnknownKey),
        (json!({"alg": "ES256", "kid": "rsa"}), OidcError::UnknownKey),
        (json!({"alg": "PS256", "kid": "rsa"}), OidcError::Signature),
        (
            json!({"alg": "RS256", "kid": "p256"}),
            OidcError::UnknownKey,
        ),
        (
            json!({"alg": "RS256", "kid": "other"}),
            OidcError::UnknownKey,
        ),
        (
            json!({"alg": "RS256", "kid": "other", "jwk": jwk}),
            OidcError::UnknownKey,
        ),
        (
            json!({"alg": "RS256", "kid": "other", "jku": "https://evil.test"}),
            OidcError::UnknownKey,
        ),
        (
            json!({"alg": "RS256", "kid": "rsa", "crit": ["exp"], "exp": 1}),
            OidcError::Critical,
        ),
        (
            json!({"alg": "RS256", "kid": "rsa", "crit": []}),
            OidcError::Critical,
        ),
    ];
    for (header, expected) in cases {
        let refused = battery.verify_with(&header, &claims());
        assert_eq!(refused.err(), Some(expected), "{header}");
    }
    let good = json!({"alg": "RS256", "kid": "rsa", "jku": "https://evil.test", "typ": "JWT"});
    assert!(battery.verify_with(&good, &claims()).is_ok());
}

#[test]
fn public_values_are_not_symmetric_keys() {
    let battery = Battery::new();
    let modulus = battery.signer.keys[0]["n"].as_str().unwrap();
    for secret in [modulus.as_bytes(), b"", b"controld", b"secret"] {
        let mut header = Header::new(Algorithm::HS256);
        header.kid = Some("rsa".to_owned());
        let token = encode(&header, &claims(), &EncodingKey::from_secret(secret)).unwrap();
        assert_eq!(
            verify(&token, &battery.keys).err(),
            Some(OidcError::UnknownKey)
        );
    }
    let symmetric =
        json!({"kty": "oct", "kid": "rsa", "k": URL_SAFE_NO_PAD.encode("secret"), "alg": "HS256"});
    let keys = key_set(&[symmetric]);
    let mut header = Header::new(Algorithm::HS256);
    header.kid = Some("rsa".to_owned());
    let token = encode(&header, &claims(), &EncodingKey::from_secret(b"secret")).unwrap();
    assert_eq!(verify(&token, &keys).err(), Some(OidcError::UnknownKey));
}

#[test]
fn keys_of_other_use_kind_or_size_verify_nothing() {
    let battery = Battery::new();
    let token = battery.signer.sign(Algorithm::RS256, &claims());
    let rsa = || battery.signer.keys[0].clone();
    let with = |name: &str, value: Value| {
        let mut key = rsa();
        key[name] = value;
        key_set(&[key])
    };
    assert!(verify(&token, &key_set(&[rsa()])).is_ok());
    assert!(verify(&token, &with("alg", json!("RS256"))).is_ok());
    let cases = [
        with("use", json!("enc")),
        with("key_ops", json!(["encrypt"])),
        with("alg", json!("RS512")),
        with("alg", json!("RSA-OAEP")),
        with("kty", json!("UNKNOWN")),
        with("n", json!(URL_SAFE_NO_PAD.encode([0xff; 128]))),
        with("kid", json!("other")),
        key_set(&[]),
    ];
    for keys in cases {
        assert_eq!(
            verify(&token, &keys).err(),
            Some(OidcError::UnknownKey),
            "{keys:?}"
        );
    }
}

#[test]
fn without_a_key_id_exactly_one_key_must_fit() {
    let battery = Battery::new();
    let header = json!({"alg": "RS256"});
    assert!(battery.verify_with(&header, &claims()).is_ok());
    let token = battery.signer.sign_with_header(&header, &claims());
    let mut second = TokenSigner::new().keys[0].clone();
    second["kid"] = json!("second");
    let both = key_set(&[battery.signer.keys[0].clone(), second]);
    assert_eq!(verify(&token, &both).err(), Some(OidcError::UnknownKey));
}

#[test]
fn broken_and_foreign_tokens_are_refused() {
    let battery = Battery::new();
    let token = battery.signer.sign(Algorithm::RS256, &claims());
    let foreign = TokenSigner::new().sign(Algorithm::RS256, &claims());
    let (message, signature) = token.rsplit_once('.').unwrap();
    let zero = URL_SAFE_NO_PAD.encode([0; 64]);
    let curve = battery.signer.sign(Algorithm::ES256, &claims());
    let (curve, _) = curve.rsplit_once('.').unwrap();
    let mut other = claims();
    other["sub"] = json!("admin");
    let other = battery.signer.sign(Algorithm::RS256, &other);
    let (other, _) = other.rsplit_once('.').unwrap();
    let cases = [
        (foreign, OidcError::Signature),
        (format!("{message}."), OidcError::Signature),
        (message.to_owned(), OidcError::Token),
        (format!("{other}.{signature}"), OidcError::Signature),
        // CVE-2022-21449: r and s are zero.
        (format!("{curve}.{zero}"), OidcError::Signature),
        ("a.b.c.d.e".to_owned(), OidcError::Encrypted),
        (String::new(), OidcError::Token),
        ("a".repeat(70_000), OidcError::Token),
    ];
    for (token, expected) in cases {
        assert_eq!(
            verify(&token, &battery.keys).err(),
            Some(expected),
            "{token}"
        );
    }
}

#[test]
fn a_key_set_is_bounded_and_keeps_the_keys_that_it_can_read() {
    let battery = Battery::new();
    let rsa = battery.signer.keys[0].clone();
    let mixed = key_set(&[json!({"kty": "EC"}), json!(7), rsa.clone()]);
    let token = battery.signer.sign(Algorithm::RS256, &claims());
    assert!(verify(&token, &mixed).is_ok());
    let many = json!({ "keys": vec![rsa; 101] }).to_string();
    assert!(KeySet::parse(many.as_bytes()).is_err());
    assert!(KeySet::parse(b"<html>").is_err());
}
