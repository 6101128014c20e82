//! An OpenID provider over real sockets, honest or with the faults of a test.
#![expect(clippy::expect_used, reason = "a test may stop, and says why")]

use arc_swap::ArcSwap;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::{
    Engine,
    engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD},
};
use jiff::Timestamp;
use rcgen::KeyPair;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

const DEADLINE: Duration = Duration::from_mins(1);
const MAX_BODY_BYTES: usize = 64 * 1024;
/// The provider's registered client, and its secret.
const CLIENT: (&str, &str) = ("controld", "client-secret");

/// A running provider. It ends when it is dropped.
#[derive(Debug)]
pub struct OidcProvider {
    /// Its issuer, `http://127.0.0.1:PORT`.
    pub issuer: String,
    shared: Arc<Shared>,
}

/// The user that the provider confirms, and its false claims.
#[derive(Clone, Debug)]
pub struct OidcBehaviour {
    /// Claims of the ID token, over those that a good provider sends; null takes one away.
    pub claims: Value,
    /// Claims of the user info.
    pub user_info: Value,
    /// Overrides of a good provider's discovery document.
    pub discovery: Value,
    /// The key ID in the header of tokens.
    pub key_id: String,
    /// The key ID in the key set.
    pub published_key_id: String,
    /// The token endpoint answers with a redirect to this URL.
    pub token_redirect: Option<String>,
}

#[derive(Debug)]
struct Shared {
    issuer: String,
    key: EcdsaKeyPair,
    behaviour: ArcSwap<OidcBehaviour>,
    key_fetches: AtomicU32,
    stops: AtomicBool,
}

struct Request {
    method_and_path: String,
    authorization: String,
    body: String,
}

impl OidcBehaviour {
    /// An honest provider of `subject`.
    pub fn honest(subject: &str, groups: &[&str]) -> Self {
        let user = json!({
            "sub": subject, "email": format!("{subject}@example.test"), "name": subject, "groups": groups,
        });
        Self {
            claims: json!({}),
            user_info: user,
            discovery: json!({}),
            key_id: "k1".to_owned(),
            published_key_id: "k1".to_owned(),
            token_redirect: None,
        }
    }

    fn subject(&self) -> Value {
        self.user_info.get("sub").cloned().unwrap_or_default()
    }
}

impl OidcProvider {
    /// Starts a provider on a free port.
    ///
    /// # Panics
    ///
    /// If there is no port or no key.
    pub fn start(behaviour: OidcBehaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let issuer = format!(
            "http://{}",
            listener.local_addr().expect("the listener has an address")
        );
        let pkcs8 = KeyPair::generate()
            .expect("a key is generated")
            .serialize_der();
        let key = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &pkcs8);
        let shared = Arc::new(Shared {
            issuer: issuer.clone(),
            key: key.expect("the generated key is valid"),
            behaviour: ArcSwap::from_pointee(behaviour),
            key_fetches: AtomicU32::new(0),
            stops: AtomicBool::new(false),
        });
        let serving = Arc::clone(&shared);
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                if serving.stops.load(Ordering::Relaxed) {
                    break;
                }
                // A disconnected client is not a fault of the provider.
                drop(serving.answer(stream));
            }
        });
        Self { issuer, shared }
    }

    /// Behaves otherwise from now on.
    pub fn behave(&self, behaviour: OidcBehaviour) {
        self.shared.behaviour.store(Arc::new(behaviour));
    }

    /// Number of reads of the key set.
    pub fn key_fetches(&self) -> u32 {
        self.shared.key_fetches.load(Ordering::Relaxed)
    }

    /// The query of the callback after the user agreed at the authorization endpoint with this URL.
    ///
    /// # Panics
    ///
    /// If the request is not one of the code flow with PKCE.
    pub fn authorize(&self, location: &str) -> String {
        let (_, query) = location.split_once('?').expect("a query");
        let asked = form(query);
        let field = |name: &str| asked.get(name).map(String::as_str).unwrap_or_default();
        assert_eq!(field("response_type"), "code");
        assert_eq!(field("code_challenge_method"), "S256");
        let code = URL_SAFE_NO_PAD.encode(json!(asked).to_string());
        let issuer = self.issuer.replace(':', "%3A").replace('/', "%2F");
        format!("state={}&code={code}&iss={issuer}", field("state"))
    }
}

impl Drop for OidcProvider {
    fn drop(&mut self) {
        self.shared.stops.store(true, Ordering::Relaxed);
        let address = self.issuer.strip_prefix("http://").unwrap_or_default();
        // Wakes the thread, which then ends.
        drop(TcpStream::connect(address));
    }
}

impl Shared {
    fn answer(&self, mut stream: TcpStream) -> std::io::Result<()> {
        stream.set_read_timeout(Some(DEADLINE))?;
        let request = Request::read(&stream)?;
        let behaviour = self.behaviour.load();
        let (status, fields, body) = match request.method_and_path.as_str() {
            "GET /.well-known/openid-configuration" => {
                ("200 OK", String::new(), self.discovery(&behaviour))
            }
            "GET /keys" => {
                self.key_fetches.fetch_add(1, Ordering::Relaxed);
                ("200 OK", String::new(), self.keys(&behaviour))
            }
            "POST /token" => match &behaviour.token_redirect {
                Some(url) => (
                    "307 Temporary Redirect",
                    format!("location: {url}\r\n"),
                    Value::Null,
                ),
                None => match self.tokens(&behaviour, &request) {
                    Ok(tokens) => ("200 OK", String::new(), tokens),
                    Err(error) => ("400 Bad Request", String::new(), json!({ "error": error })),
                },
            },
            "GET /userinfo" if request.authorization == "Bearer access" => {
                ("200 OK", String::new(), behaviour.user_info.clone())
            }
            _ => ("404 Not Found", String::new(), Value::Null),
        };
        let body = body.to_string();
        let head = format!(
            "HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {}\r\n{fields}connection: close\r\n\r\n",
            body.len()
        );
        stream.write_all(head.as_bytes())?;
        stream.write_all(body.as_bytes())
    }

    fn discovery(&self, behaviour: &OidcBehaviour) -> Value {
        let issuer = &self.issuer;
        let document = json!({
            "issuer": issuer,
            "authorization_endpoint": format!("{issuer}/authorize"),
            "token_endpoint": format!("{issuer}/token"),
            "userinfo_endpoint": format!("{issuer}/userinfo"),
            "jwks_uri": format!("{issuer}/keys"),
            "authorization_response_iss_parameter_supported": true,
        });
        over(&document, &behaviour.discovery)
    }

    fn keys(&self, behaviour: &OidcBehaviour) -> Value {
        let point = self.key.public_key().as_ref();
        let half = |range| {
            point
                .get(range)
                .map(|half: &[u8]| URL_SAFE_NO_PAD.encode(half))
        };
        json!({"keys": [{
            "kty": "EC", "crv": "P-256", "use": "sig", "kid": behaviour.published_key_id,
            "x": half(1..33), "y": half(33..65),
        }]})
    }

    /// The tokens, or the error of RFC 6749.
    fn tokens(&self, behaviour: &OidcBehaviour, request: &Request) -> Result<Value, &'static str> {
        let (client, secret) = CLIENT;
        let basic = format!("Basic {}", STANDARD.encode(format!("{client}:{secret}")));
        if request.authorization != basic {
            return Err("invalid_client");
        }
        let sent = form(&request.body);
        let field = |name: &str| sent.get(name).map(String::as_str).unwrap_or_default();
        let code = URL_SAFE_NO_PAD.decode(field("code")).unwrap_or_default();
        let asked: BTreeMap<String, String> = serde_json::from_slice(&code).unwrap_or_default();
        let asked = |name: &str| asked.get(name).map(String::as_str).unwrap_or_default();
        let challenge = digest(&SHA256, field("code_verifier").as_bytes());
        let is_bound = asked("code_challenge") == URL_SAFE_NO_PAD.encode(challenge)
            && asked("redirect_uri") == field("redirect_uri");
        if !is_bound || field("grant_type") != "authorization_code" {
            return Err("invalid_grant");
        }
        let now = Timestamp::now().as_second();
        let claims = json!({
            "iss": self.issuer, "aud": client, "sub": behaviour.subject(), "nonce": asked("nonce"),
            "iat": now, "exp": now + 300, "auth_time": now,
        });
        let claims = over(&claims, &behaviour.claims);
        let token = self.sign(&json!({"alg": "ES256", "kid": behaviour.key_id}), &claims);
        Ok(json!({"id_token": token, "access_token": "access", "token_type": "Bearer"}))
    }

    fn sign(&self, header: &Value, claims: &Value) -> String {
        let parts = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part.to_string()));
        let message = parts.join(".");
        let signature = self.key.sign(&SystemRandom::new(), message.as_bytes());
        let signature = URL_SAFE_NO_PAD.encode(signature.expect("the signature is created"));
        format!("{message}.{signature}")
    }
}

impl Request {
    fn read(stream: &TcpStream) -> std::io::Result<Self> {
        let mut lines = BufReader::new(stream);
        let mut line = String::new();
        lines.read_line(&mut line)?;
        let mut words = line.split(' ').map(str::to_owned);
        let method = words.next().unwrap_or_default();
        let path = words.next().unwrap_or_default();
        let (mut length, mut authorization) = (0, String::new());
        loop {
            let mut line = String::new();
            lines.read_line(&mut line)?;
            let Some((name, value)) = line.trim_end().split_once(':') else {
                break;
            };
            match name.to_ascii_lowercase().as_str() {
                "content-length" => length = value.trim().parse().unwrap_or_default(),
                "authorization" => value.trim().clone_into(&mut authorization),
                _ => {}
            }
        }
        let mut body = vec![0; MAX_BODY_BYTES.min(length)];
        lines.read_exact(&mut body)?;
        Ok(Self {
            method_and_path: format!("{method} {path}"),
            authorization,
            body: String::from_utf8_lossy(&body).into_owned(),
        })
    }
}

/// The fields of a form or query.
fn form(text: &str) -> BTreeMap<String, String> {
    form_urlencoded::parse(text.as_bytes())
        .into_owned()
        .collect()
}

/// `value` with the fields of `other` in the place of its own; null takes one away.
fn over(value: &Value, other: &Value) -> Value {
    let mut fields: Map<String, Value> = value.as_object().cloned().unwrap_or_default();
    for (name, value) in other.as_object().into_iter().flatten() {
        if value.is_null() {
            fields.remove(name);
        } else {
            fields.insert(name.clone(), value.clone());
        }
    }
    Value::Object(fields)
}
