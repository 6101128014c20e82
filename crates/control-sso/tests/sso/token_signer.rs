//! A provider of ID tokens, with a key of each kind.

use aws_lc_rs::encoding::AsDer;
use aws_lc_rs::rsa::KeySize;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _, RsaKeyPair};
use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use rcgen::{KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ECDSA_P384_SHA384, PublicKeyData};
use serde_json::{Value, json};

pub(crate) struct TokenSigner {
    rsa: EncodingKey,
    p256: EncodingKey,
    p384: EncodingKey,
    ed25519: EncodingKey,
    /// Public keys: `rsa`, `p256`, `p384`, `ed25519`, in this order.
    pub(crate) keys: Vec<Value>,
}

fn base64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn curve_key(pair: &KeyPair, name: &str, kid: &str) -> Value {
    let point = pair.der_bytes();
    let (x, y) = point[1..].split_at((point.len() - 1) / 2);
    json!({"kty": "EC", "crv": name, "kid": kid, "use": "sig", "x": base64(x), "y": base64(y)})
}

impl TokenSigner {
    pub(crate) fn new() -> Self {
        let rsa = RsaKeyPair::generate(KeySize::Rsa2048).unwrap();
        let public = rsa.public_key();
        let rsa_key = json!({
            "kty": "RSA", "kid": "rsa", "use": "sig",
            "n": base64(public.modulus().big_endian_without_leading_zero()),
            "e": base64(public.exponent().big_endian_without_leading_zero()),
        });
        let pkcs8 = rsa.as_der().unwrap();
        // Skips the PKCS#8 header around a 2048-bit RSA key in PKCS#1.
        let pkcs1 = &pkcs8.as_ref()[26..];
        let p256 = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).unwrap();
        let p384 = KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384).unwrap();
        let ed25519 = Ed25519KeyPair::generate().unwrap();
        let ed25519_key = json!({
            "kty": "OKP", "crv": "Ed25519", "kid": "ed25519",
            "x": base64(ed25519.public_key().as_ref()),
        });
        Self {
            keys: vec![
                rsa_key,
                curve_key(&p256, "P-256", "p256"),
                curve_key(&p384, "P-384", "p384"),
                ed25519_key,
            ],
            rsa: EncodingKey::from_rsa_der(pkcs1),
            p256: EncodingKey::from_ec_der(&p256.serialize_der()),
            p384: EncodingKey::from_ec_der(&p384.serialize_der()),
            ed25519: EncodingKey::from_ed_der(ed25519.to_pkcs8v1().unwrap().as_ref()),
        }
    }

    /// Signs `claims` with the key for the algorithm.
    pub(crate) fn sign(&self, algorithm: Algorithm, claims: &Value) -> String {
        let (kid, key) = match algorithm {
            Algorithm::ES256 => ("p256", &self.p256),
            Algorithm::ES384 => ("p384", &self.p384),
            Algorithm::EdDSA => ("ed25519", &self.ed25519),
            Algorithm::HS256
            | Algorithm::HS384
            | Algorithm::HS512
            | Algorithm::RS256
            | Algorithm::RS384
            | Algorithm::RS512
            | Algorithm::PS256
            | Algorithm::PS384
            | Algorithm::PS512
            | _ => ("rsa", &self.rsa),
        };
        let mut header = Header::new(algorithm);
        header.kid = Some(kid.to_owned());
        encode(&header, claims, key).unwrap()
    }

    /// Signs a token with any header, by RS256.
    pub(crate) fn sign_with_header(&self, header: &Value, claims: &Value) -> String {
        let message = [header, claims]
            .map(|part| base64(part.to_string().as_bytes()))
            .join(".");
        let signature = jsonwebtoken::crypto::sign(message.as_bytes(), &self.rsa, Algorithm::RS256);
        format!("{message}.{}", signature.unwrap())
    }
}
