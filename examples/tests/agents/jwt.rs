//! The agent that verifies bearer tokens.

use crate::asking::{Asked, Asking, edits};
use crate::process::AgentProcess;
use agent_protocol::Decision;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode};
use serde_json::{Value, json};
use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;
use tempfile::TempDir;

/// An issuer of tokens, and the file of its public key.
pub(crate) struct Issuer {
    kid: &'static str,
    private: Vec<u8>,
    public: Vec<u8>,
    folder: TempDir,
}

impl Issuer {
    pub(crate) fn new(kid: &'static str) -> Self {
        let pair = Ed25519KeyPair::generate().unwrap();
        let issuer = Self {
            kid,
            private: pair.to_pkcs8().unwrap().as_ref().to_vec(),
            public: pair.public_key().as_ref().to_vec(),
            folder: tempfile::tempdir().unwrap(),
        };
        fs::write(issuer.jwks(), issuer.key_set()).unwrap();
        issuer
    }

    fn jwks(&self) -> PathBuf {
        self.folder.path().join("jwks.json")
    }

    fn key_set(&self) -> String {
        let x = URL_SAFE_NO_PAD.encode(&self.public);
        let key = json!({"kty": "OKP", "crv": "Ed25519", "kid": self.kid, "x": x});
        json!({ "keys": [key] }).to_string()
    }

    pub(crate) fn agent(&self) -> AgentProcess {
        let jwks = self.jwks();
        let arguments = [
            "--jwks",
            jwks.to_str().unwrap(),
            "--alg=EdDSA",
            "--issuer=https://issuer.example",
            "--audience=shop",
            "--claim=sub=x-user",
            "--claim=role=x-role",
        ];
        AgentProcess::program(env!("CARGO_BIN_EXE_jwt-agent"), &arguments)
    }

    pub(crate) fn claims() -> Value {
        let now = now_seconds();
        json!({
            "iss": "https://issuer.example",
            "aud": "shop",
            "exp": now + 300,
            "nbf": now - 10,
            "sub": "ann",
        })
    }

    pub(crate) fn token(&self, claims: &Value) -> String {
        let mut header = Header::new(Algorithm::EdDSA);
        header.kid = Some(self.kid.to_owned());
        encode(&header, claims, &EncodingKey::from_ed_der(&self.private)).unwrap()
    }
}

#[expect(clippy::disallowed_methods, reason = "tokens name the time of day")]
fn now_seconds() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    since.unwrap().as_secs()
}

fn asked(token: &str) -> Asked<'static> {
    Asked::get("/").header("authorization", format!("Bearer {token}"))
}

fn is_challenged(decision: &Decision) -> bool {
    matches!(decision, Decision::Challenge(challenge) if !challenge.challenges.is_empty())
}

#[test]
fn the_claims_of_a_good_token_become_headers_and_those_of_the_client_go() {
    let issuer = Issuer::new("key-1");
    let agent = issuer.agent();
    let mut asking = Asking::connect(&agent.socket());
    let token = issuer.token(&Issuer::claims());
    let decision = asking.ask(&asked(&token).header("x-role", "admin"));
    assert_eq!(edits(&decision), ["set x-user=ann", "remove x-role"]);
}

#[test]
fn a_token_with_anything_wrong_is_challenged() {
    let issuer = Issuer::new("key-1");
    let agent = issuer.agent();
    let mut asking = Asking::connect(&agent.socket());
    let now = now_seconds();
    let with = |name: &str, value: Value| {
        let mut claims = Issuer::claims();
        claims[name] = value;
        issuer.token(&claims)
    };
    let good = issuer.token(&Issuer::claims());
    let (signed, signature) = good.rsplit_once('.').unwrap();
    let (head, body) = signed.split_once('.').unwrap();
    let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none","kid":"key-1"}"#);
    let mut confused = Header::new(Algorithm::HS256);
    confused.kid = Some("key-1".to_owned());
    let secret = EncodingKey::from_secret(&issuer.public);
    let cases = [
        ("expired", with("exp", json!(now - 60))),
        ("without expiry", with("exp", Value::Null)),
        ("not yet valid", with("nbf", json!(now + 120))),
        (
            "another issuer",
            with("iss", json!("https://other.example")),
        ),
        ("another audience", with("aud", json!("bank"))),
        ("no audience", with("aud", Value::Null)),
        ("no signature", format!("{signed}.")),
        ("no algorithm", format!("{none}.{body}.")),
        ("no algorithm, signed", format!("{none}.{body}.{signature}")),
        (
            "the public key as a secret",
            encode(&confused, &Issuer::claims(), &secret).unwrap(),
        ),
        ("another key", Issuer::new("key-1").token(&Issuer::claims())),
        (
            "an unknown key",
            Issuer::new("key-2").token(&Issuer::claims()),
        ),
        (
            "changed claims",
            format!("{head}.{}.{signature}", URL_SAFE_NO_PAD.encode("{}")),
        ),
        ("no token", "x".to_owned()),
    ];
    for (what, token) in cases {
        assert!(is_challenged(&asking.ask(&asked(&token))), "{what}");
    }
    let without = asking.ask(&Asked::get("/"));
    assert!(is_challenged(&without));
    let twice = asked(&good).header("authorization", format!("Bearer {good}"));
    assert!(is_challenged(&asking.ask(&twice)));
    let basic = Asked::get("/").header("authorization", "Basic YTpi");
    assert!(is_challenged(&asking.ask(&basic)));
    assert!(!is_challenged(&asking.ask(&asked(&good))));
}

#[test]
fn keys_are_rotated_without_a_restart() {
    let (old, new) = (Issuer::new("key-1"), Issuer::new("key-2"));
    let agent = old.agent();
    let mut asking = Asking::connect(&agent.socket());
    let (before, after) = (old.token(&Issuer::claims()), new.token(&Issuer::claims()));
    assert!(!is_challenged(&asking.ask(&asked(&before))));
    assert!(is_challenged(&asking.ask(&asked(&after))));

    let next = old.folder.path().join("next.json");
    fs::write(&next, new.key_set()).unwrap();
    fs::rename(&next, old.jwks()).unwrap();
    assert!(!is_challenged(&asking.ask(&asked(&after))));
    assert!(is_challenged(&asking.ask(&asked(&before))));

    fs::write(&next, "half a file").unwrap();
    fs::rename(&next, old.jwks()).unwrap();
    assert!(!is_challenged(&asking.ask(&asked(&after))));
}
