//! Tokens that an attacker could send, by class, and those that an issuer signs.
#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "tests may fail loudly"
)]

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, Ed25519KeyPair, KeyPair, RSA_PKCS1_SHA256,
    RSA_PSS_SHA256, RsaKeyPair,
};
use aws_lc_rs::{hmac, signature::RsaEncoding};
use base64::Engine;
use base64::engine::general_purpose::{URL_SAFE, URL_SAFE_NO_PAD};
use proxy_auth::{JwtAlgorithm, JwtKeys, KeyError, TokenError, TokenError as E, TokenRules};
use serde_json::{Value, json};

const NOW: i64 = 1_800_000_000;
const SECRET: &[u8] = b"0123456789abcdef0123456789abcdef";

/// An issuer with a key of each kind, and another one that is not trusted.
struct Issuer {
    rsa: RsaKeyPair,
    ec: EcdsaKeyPair,
    ed: Ed25519KeyPair,
}

impl Issuer {
    fn new() -> Self {
        Self {
            rsa: RsaKeyPair::generate(KeySize::Rsa2048).unwrap(),
            ec: EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap(),
            ed: Ed25519KeyPair::generate().unwrap(),
        }
    }

    /// The modulus, from the DER of a key of 2048 bits.
    fn modulus(&self) -> &[u8] {
        &self.rsa.public_key().as_ref()[9..265]
    }

    fn rsa_jwk(&self) -> Value {
        json!({"kty": "RSA", "kid": "rsa", "n": b64(self.modulus()), "e": "AQAB"})
    }

    fn ec_jwk(&self) -> Value {
        let point = self.ec.public_key().as_ref();
        json!({"kty": "EC", "crv": "P-256", "kid": "ec", "use": "sig",
               "x": b64(&point[1..33]), "y": b64(&point[33..])})
    }

    fn ed_jwk(&self) -> Value {
        let x = b64(self.ed.public_key().as_ref());
        json!({"kty": "OKP", "crv": "Ed25519", "kid": "ed", "x": x})
    }

    fn keys(&self) -> JwtKeys {
        keys(&[self.rsa_jwk(), self.ec_jwk(), self.ed_jwk()])
    }

    fn sign(&self, kid: &str, message: &[u8]) -> Vec<u8> {
        match kid {
            "rsa" => self.rsa_signature(&RSA_PKCS1_SHA256, message),
            "ec" => {
                let signature = self.ec.sign(&SystemRandom::new(), message);
                signature.unwrap().as_ref().to_vec()
            }
            _ => self.ed.sign(message).as_ref().to_vec(),
        }
    }

    fn rsa_signature(&self, encoding: &'static dyn RsaEncoding, message: &[u8]) -> Vec<u8> {
        let mut signature = vec![0; 256];
        let random = SystemRandom::new();
        let signed = self.rsa.sign(encoding, &random, message, &mut signature);
        signed.unwrap();
        signature
    }

    /// A token with this header and these claims, signed by the key `kid`.
    fn token(&self, kid: &str, header: &Value, claims: &Value) -> String {
        let message = message(header, claims);
        let signature = self.sign(kid, message.as_bytes());
        format!("{message}.{}", b64(&signature))
    }
}

fn b64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn message(header: &Value, claims: &Value) -> String {
    let encoded = |value: &Value| b64(value.to_string().as_bytes());
    format!("{}.{}", encoded(header), encoded(claims))
}

fn keys(list: &[Value]) -> JwtKeys {
    JwtKeys::from_jwks(json!({"keys": list}).to_string().as_bytes()).unwrap()
}

fn header(alg: &str, kid: &str) -> Value {
    json!({"typ": "JWT", "alg": alg, "kid": kid})
}

fn claims() -> Value {
    json!({"iss": "https://id.test", "aud": "api", "sub": "ann", "exp": NOW + 300})
}

fn with(name: &str, value: Value) -> Value {
    let mut claims = claims();
    claims[name] = value;
    claims
}

fn without(name: &str) -> Value {
    let mut claims = claims();
    claims.as_object_mut().unwrap().remove(name);
    claims
}

fn rules() -> TokenRules {
    TokenRules {
        issuer: "https://id.test".to_owned(),
        audiences: vec!["api".to_owned(), "web".to_owned()],
        algorithms: Vec::new(),
        clock_skew_secs: 60,
        max_bytes: 4_096,
    }
}

#[test]
fn tokens_of_the_issuer_are_taken() {
    let issuer = Issuer::new();
    let keys = issuer.keys();
    let signed = |alg: &str, kid: &str| issuer.token(kid, &header(alg, kid), &claims());
    let pss = message(&header("PS256", "rsa"), &claims());
    let pss_signature = issuer.rsa_signature(&RSA_PSS_SHA256, pss.as_bytes());
    let unnamed = json!({"alg": "EdDSA"});

    for (class, token) in [
        ("RS256", signed("RS256", "rsa")),
        ("PS256", format!("{pss}.{}", b64(&pss_signature))),
        ("ES256", signed("ES256", "ec")),
        ("EdDSA", signed("EdDSA", "ed")),
        (
            "without kid, one key fits",
            issuer.token("ed", &unnamed, &claims()),
        ),
        (
            "a list of audiences",
            issuer.token(
                "ed",
                &header("EdDSA", "ed"),
                &with("aud", json!(["x", "web"])),
            ),
        ),
        (
            "within the skew",
            issuer.token("ed", &header("EdDSA", "ed"), &with("exp", json!(NOW - 59))),
        ),
        (
            "a fraction",
            issuer.token(
                "ed",
                &header("EdDSA", "ed"),
                &with("nbf", json!(1_799_999_999.5)),
            ),
        ),
    ] {
        let verified = rules().verify(token.as_bytes(), &keys, NOW);
        let verified = verified.unwrap_or_else(|error| panic!("{class}: {error}"));
        assert_eq!(verified.text("sub"), Some("ann"), "{class}");
    }
}

#[test]
fn claims_that_do_not_fit_are_refused_though_they_are_signed() {
    let issuer = Issuer::new();
    let keys = issuer.keys();

    for (claims, expected) in [
        (with("exp", json!(NOW - 60)), TokenError::Expired),
        (with("exp", json!(-1)), TokenError::Expired),
        (with("exp", json!(-1e300)), TokenError::Expired),
        (with("exp", json!("1900000000")), TokenError::Time),
        (with("exp", json!(null)), TokenError::Time),
        (without("exp"), TokenError::Time),
        (with("nbf", json!(NOW + 61)), TokenError::NotYetValid),
        (with("nbf", json!("soon")), TokenError::Time),
        (with("iss", json!("https://id.test/")), TokenError::Issuer),
        (with("iss", json!("HTTPS://id.test")), TokenError::Issuer),
        (with("iss", json!(["https://id.test"])), TokenError::Issuer),
        (without("iss"), TokenError::Issuer),
        (with("aud", json!("other")), TokenError::Audience),
        (with("aud", json!("api ")), TokenError::Audience),
        (with("aud", json!([])), TokenError::Audience),
        (with("aud", json!([["api"]])), TokenError::Audience),
        (with("aud", json!({"api": true})), TokenError::Audience),
        (without("aud"), TokenError::Audience),
    ] {
        let token = issuer.token("ed", &header("EdDSA", "ed"), &claims);
        let verified = rules().verify(token.as_bytes(), &keys, NOW);
        assert_eq!(verified, Err(expected), "{claims}");
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of one row for each class")]
fn forged_signatures_are_refused() {
    let (issuer, attacker) = (Issuer::new(), Issuer::new());
    let keys = issuer.keys();
    let ed = header("EdDSA", "ed");
    let valid = issuer.token("ed", &ed, &claims());
    let (signed, signature) = valid.rsplit_once('.').unwrap();
    let es = header("ES256", "ec");
    let hmac_with = |secret: &[u8], header: &Value| {
        let message = message(header, &claims());
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let tag = hmac::sign(&key, message.as_bytes());
        format!("{message}.{}", b64(tag.as_ref()))
    };
    let unsigned = |header: &Value| format!("{}.", message(header, &claims()));
    let root = with("sub", json!("root"));
    let mut embedded = ed.clone();
    embedded["jwk"] = attacker.ed_jwk();
    let mut linked = ed.clone();
    linked["jku"] = json!("https://attacker.test/keys");
    linked["x5u"] = json!("https://attacker.test/cert");
    let mut critical = ed.clone();
    critical["crit"] = json!(["exp"]);
    let mut detached = ed.clone();
    detached["b64"] = json!(false);
    detached["crit"] = json!(["b64"]);
    let twice = format!(
        "{}.{}",
        b64(br#"{"alg":"EdDSA","kid":"ed","alg":"none"}"#),
        b64(claims().to_string().as_bytes())
    );
    let mut zeros = es.clone();
    zeros["typ"] = json!("at+jwt");

    for (class, token, expected) in [
        ("alg none", unsigned(&header("none", "ed")), E::Malformed),
        ("alg NONE", unsigned(&header("NONE", "ed")), E::Malformed),
        (
            "alg nOnE without kid",
            unsigned(&json!({"alg": "nOnE"})),
            E::Malformed,
        ),
        (
            "empty alg",
            unsigned(&json!({"alg": "", "kid": "ed"})),
            E::Malformed,
        ),
        ("no alg", unsigned(&json!({"kid": "ed"})), E::Malformed),
        ("alg twice", format!("{twice}."), E::Malformed),
        (
            "HMAC with the public key",
            hmac_with(issuer.ed.public_key().as_ref(), &header("HS256", "ed")),
            E::Algorithm,
        ),
        (
            "HMAC with the modulus",
            hmac_with(issuer.modulus(), &header("HS256", "rsa")),
            E::Algorithm,
        ),
        (
            "HMAC with the DER",
            hmac_with(issuer.rsa.public_key().as_ref(), &json!({"alg": "HS256"})),
            E::Algorithm,
        ),
        (
            "HMAC with nothing",
            hmac_with(b"", &header("HS256", "ed")),
            E::Algorithm,
        ),
        (
            "kid of another kind of key",
            issuer.token("rsa", &header("RS256", "ec"), &claims()),
            E::Algorithm,
        ),
        (
            "another curve",
            issuer.token("ec", &header("ES384", "ec"), &claims()),
            E::Algorithm,
        ),
        (
            "unknown kid",
            issuer.token("ed", &header("EdDSA", "new"), &claims()),
            E::UnknownKey,
        ),
        (
            "kid as a path",
            issuer.token("ed", &header("EdDSA", "../../dev/null"), &claims()),
            E::UnknownKey,
        ),
        (
            "empty kid",
            issuer.token("ed", &header("EdDSA", ""), &claims()),
            E::UnknownKey,
        ),
        (
            "another issuer's key",
            attacker.token("ed", &ed, &claims()),
            E::Signature,
        ),
        (
            "another issuer's RSA key",
            attacker.token("rsa", &header("RS256", "rsa"), &claims()),
            E::Signature,
        ),
        (
            "key in the header",
            attacker.token("ed", &embedded, &claims()),
            E::Signature,
        ),
        (
            "link to a key",
            attacker.token("ed", &linked, &claims()),
            E::Signature,
        ),
        (
            "critical extension",
            issuer.token("ed", &critical, &claims()),
            E::Critical,
        ),
        (
            "unencoded payload",
            issuer.token("ed", &detached, &claims()),
            E::Critical,
        ),
        ("no signature", format!("{signed}."), E::Signature),
        (
            "half a signature",
            format!("{signed}.{}", &signature[..40]),
            E::Signature,
        ),
        (
            "signature of other claims",
            format!("{}.{signature}", message(&ed, &root)),
            E::Signature,
        ),
        (
            "signature of another header",
            format!(
                "{}.{signature}",
                message(&json!({"alg": "EdDSA"}), &claims())
            ),
            E::Signature,
        ),
        (
            "zeros on P-256",
            format!("{}.{}", message(&zeros, &claims()), b64(&[0; 64])),
            E::Signature,
        ),
        (
            "padding",
            format!(
                "{signed}.{}",
                URL_SAFE.encode(issuer.sign("ed", signed.as_bytes()))
            ),
            E::Signature,
        ),
        ("a space behind it", format!("{valid} "), E::Signature),
        (
            "PKCS#1 as PSS",
            issuer.token("rsa", &header("PS256", "rsa"), &claims()),
            E::Signature,
        ),
        ("two parts", signed.to_owned(), E::Malformed),
        ("four parts", format!("{valid}.x"), E::Malformed),
        ("five parts", format!("{valid}.x.y"), E::Malformed),
        ("nothing", String::new(), E::Malformed),
        ("dots", "..".to_owned(), E::Malformed),
        ("no JSON", format!("{}.e30.x", b64(b"hello")), E::Malformed),
        (
            "too long",
            format!("{valid}{}", "A".repeat(5_000)),
            E::TooLong,
        ),
    ] {
        let verified = rules().verify(token.as_bytes(), &keys, NOW);
        assert_eq!(verified, Err(expected), "{class}: {token}");
    }
    assert!(rules().verify(valid.as_bytes(), &keys, NOW).is_ok());
}

#[test]
fn only_listed_algorithms_are_taken() {
    let issuer = Issuer::new();
    let keys = issuer.keys();
    let rules = TokenRules {
        algorithms: vec![JwtAlgorithm::Es256],
        ..rules()
    };
    let token = |alg: &str, kid: &str| issuer.token(kid, &header(alg, kid), &claims());

    let es = rules.verify(token("ES256", "ec").as_bytes(), &keys, NOW);
    let rs = rules.verify(token("RS256", "rsa").as_bytes(), &keys, NOW);

    assert!(es.is_ok());
    assert_eq!(rs, Err(TokenError::Algorithm));
}

#[test]
fn a_secret_verifies_hmac_alone() {
    let keys = JwtKeys::from_secret(SECRET).unwrap();
    let signed = |secret: &[u8], alg: &str| {
        let message = message(&header(alg, "any"), &claims());
        let tag = hmac::sign(
            &hmac::Key::new(hmac::HMAC_SHA256, secret),
            message.as_bytes(),
        );
        format!("{message}.{}", b64(tag.as_ref()))
    };
    let verify = |token: &str| rules().verify(token.as_bytes(), &keys, NOW).map(|_| ());
    let issuer = Issuer::new();

    assert_eq!(verify(&signed(SECRET, "HS256")), Ok(()));
    assert_eq!(
        verify(&signed(b"another", "HS256")),
        Err(TokenError::Signature)
    );
    assert_eq!(
        verify(&signed(SECRET, "HS512")),
        Err(TokenError::Algorithm),
        "the secret is too short for it"
    );
    let ed = issuer.token("ed", &header("EdDSA", "any"), &claims());
    assert_eq!(verify(&ed), Err(TokenError::Algorithm));
    assert_eq!(
        JwtKeys::from_secret(&SECRET[1..]).err(),
        Some(KeyError::ShortSecret)
    );
}

#[test]
fn keys_that_verify_no_signatures_are_left_out() {
    let issuer = Issuer::new();
    let mut encrypts = issuer.ec_jwk();
    encrypts["use"] = json!("enc");
    let mut signs_only = issuer.ec_jwk();
    signs_only["key_ops"] = json!(["sign"]);
    let short = json!({"kty": "RSA", "n": b64(&[0xC3; 128]), "e": "AQAB"});
    let long = json!({"kty": "RSA", "n": b64(&[0xC3; 2_048]), "e": "AQAB"});
    let secret = json!({"kty": "oct", "k": b64(SECRET), "kid": "s", "alg": "HS256"});
    let unknown = json!({"kty": "AKP", "alg": "ML-DSA-44", "pub": "AA"});
    let curve = json!({"kty": "EC", "crv": "secp256k1", "x": "AA", "y": "AA"});

    for key in [
        encrypts,
        signs_only,
        short,
        long,
        secret,
        unknown,
        curve,
        json!("text"),
    ] {
        let alone = json!({"keys": [key]}).to_string();
        let alone = JwtKeys::from_jwks(alone.as_bytes());
        assert_eq!(alone.err(), Some(KeyError::NoUsableKey), "{key}");
        assert_eq!(keys(&[key.clone(), issuer.ed_jwk()]).len(), 1, "{key}");
    }
    for no_set in ["", "{}", "[]", r#"{"keys": 1}"#, "<html>"] {
        assert_eq!(
            JwtKeys::from_jwks(no_set.as_bytes()).err(),
            Some(KeyError::NotAKeySet),
            "{no_set}"
        );
    }
    let many = vec![issuer.ed_jwk(); 101];
    let many = JwtKeys::from_jwks(json!({"keys": many}).to_string().as_bytes());
    assert_eq!(many.err(), Some(KeyError::TooManyKeys));
    let same = keys(&[issuer.ed_jwk(), issuer.ed_jwk()]);
    let token = issuer.token("ed", &header("EdDSA", "ed"), &claims());
    let twice = rules().verify(token.as_bytes(), &same, NOW);
    assert_eq!(twice, Err(TokenError::AmbiguousKey));
}
