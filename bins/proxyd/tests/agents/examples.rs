//! The example agents with the real proxy.

use crate::support::{Setup, reason, refusal};
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proxy_testkit::{AgentProcess, Proxyd, Upstream, get, ok};
use serde_json::{Value, json};
use std::fs;
use std::time::SystemTime;

const CLOSED: &str = "failure-mode \"closed\"; timeout-ms 30000";

fn upstream() -> Upstream {
    Upstream::start(|served| {
        while served.request().is_some() {
            served.send(ok("served"));
        }
    })
}

/// Starts the firewall with `options` and a log of `events`, and a proxy that calls it.
fn firewall(options: &[&str], events: &str, upstream: &Upstream) -> (AgentProcess, Proxyd) {
    let agent = AgentProcess::example("waf/waf.py", options);
    let settings = format!("{CLOSED}; events {events}");
    let proxyd = Setup::to(upstream)
        .agent_at("waf", agent.socket().to_str().unwrap(), &settings)
        .start();
    (agent, proxyd)
}

#[test]
fn the_firewall_answers_attacks_403_and_only_logs_their_rules() {
    let upstream = upstream();
    let (_agent, proxyd) = firewall(&[], "\"request-body\"", &upstream);
    let mut client = proxyd.connect();
    let browser = [("user-agent", "Mozilla/5.0"), ("accept", "*/*")];

    let response = client.ask(get("/shop?page=2", &browser));
    assert_eq!(response.status, 200, "{}", response.text());
    for (target, rule) in [
        ("/?id=1%27%20or%20%271%27=%271", "942100"),
        ("/?q=%3Cscript%3Ealert(1)%3C/script%3E", "941110"),
        ("/?file=../../../../etc/passwd", "930100"),
    ] {
        let response = client.ask(get(target, &browser));
        let message = refusal(&response, 403, "WAF_BLOCKED");
        assert!(!message.contains(rule), "{message}");
        assert_eq!(reason(&proxyd, &response), "agent_blocked");
        let record = proxyd.error_record(&response.correlation_id());
        assert!(record.text("message").contains(rule), "{target}");
    }
    assert_eq!(upstream.requests().len(), 1);
}

#[test]
fn the_list_agent_passes_on_the_country_of_the_clients_that_it_admits() {
    let agent = AgentProcess::example_with_files(
        "lists/lists.py",
        &[("countries.csv", "127.0.0.0,127.255.255.255,CH\n")],
    );
    let upstream = upstream();
    let proxyd = Setup::to(&upstream)
        .agent_at("lists", agent.socket().to_str().unwrap(), CLOSED)
        .start();
    let mut client = proxyd.connect();

    let forged = [("x-client-country", "US")];
    assert_eq!(client.ask(get("/", &forged)).status, 200);
    let passed = &upstream.requests()[0];
    assert_eq!(passed.fields.all("x-client-country"), ["CH"]);
}

const FORM: &str = "application/x-www-form-urlencoded";

fn post(body: &str) -> String {
    format!(
        "POST /form HTTP/1.1\r\nHost: a.test\r\nUser-Agent: Mozilla/5.0\r\nAccept: */*\r\n\
         Content-Type: {FORM}\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

#[test]
fn the_firewall_finds_attacks_in_bodies_before_the_target_gets_a_byte() {
    let upstream = upstream();
    let (_agent, proxyd) = firewall(&[], "\"request-body\"", &upstream);
    let mut client = proxyd.connect();

    assert_eq!(client.ask(post("name=ann&page=2")).status, 200);
    for (body, rule) in [
        ("name=<script>alert(document.cookie)</script>", "941110"),
        ("id=1' or '1'='1", "942100"),
    ] {
        let response = client.ask(post(body));
        refusal(&response, 403, "WAF_BLOCKED");
        assert_eq!(reason(&proxyd, &response), "agent_blocked");
        let record = proxyd.error_record(&response.correlation_id());
        assert!(record.text("message").contains(rule), "{body}");
    }
    assert_eq!(upstream.requests().len(), 1);
}

#[test]
fn the_firewall_blocks_leaking_responses_if_it_inspects_them() {
    let upstream = Upstream::start(|served| {
        while let Some(request) = served.request() {
            if request.target == "/broken" {
                let length = LEAK.len();
                served.send(format!(
                    "HTTP/1.1 500 Internal Server Error\r\nContent-Type: text/html\r\n\
                     Content-Length: {length}\r\n\r\n{LEAK}"
                ));
            } else {
                served.send(ok("served"));
            }
        }
    });
    let events = "\"request-body\" \"response-headers\" \"response-body\"";
    let (_agent, proxyd) = firewall(&["--responses"], events, &upstream);
    let mut client = proxyd.connect();
    let browser = [("user-agent", "Mozilla/5.0"), ("accept", "*/*")];

    let whole = client.ask(get("/whole", &browser));
    assert_eq!((whole.status, whole.text().as_str()), (200, "served"));
    let response = client.ask(get("/broken", &browser));

    refusal(&response, 403, "WAF_BLOCKED");
    assert!(!response.text().contains("SQL"));
    assert_eq!(upstream.requests().len(), 2);
    let record = proxyd.error_record(&response.correlation_id());
    assert!(record.text("message").contains("951230"));
}

/// A database error that the rule set recognizes.
const LEAK: &str = "You have an error in your SQL syntax; check the manual that corresponds to your \
    MySQL server version for the right syntax to use near 'x' at line 1";

/// Issuer of tokens with Ed25519 signatures.
struct Issuer(Ed25519KeyPair);

impl Issuer {
    fn key_set(&self) -> String {
        let x = URL_SAFE_NO_PAD.encode(self.0.public_key().as_ref());
        let key = json!({"kty": "OKP", "crv": "Ed25519", "kid": "one", "x": x});
        json!({ "keys": [key] }).to_string()
    }

    fn token(&self, claims: &Value) -> String {
        let head = json!({"alg": "EdDSA", "kid": "one"}).to_string();
        let [head, claims] = [head, claims.to_string()].map(|part| URL_SAFE_NO_PAD.encode(part));
        let signed = format!("{head}.{claims}");
        let signature = self.0.sign(signed.as_bytes());
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature.as_ref()))
    }
}

#[expect(clippy::disallowed_methods, reason = "tokens name the time of day")]
fn claims(expires_in: i64) -> Value {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    let now = i64::try_from(since.unwrap().as_secs()).unwrap();
    json!({
        "iss": "https://issuer.example",
        "aud": "shop",
        "sub": "ann",
        "exp": now + expires_in,
    })
}

#[test]
fn the_token_agent_admits_users_of_its_issuer_and_names_them() {
    let issuer = Issuer(Ed25519KeyPair::generate().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let jwks = folder.path().join("jwks.json");
    fs::write(&jwks, issuer.key_set()).unwrap();
    let arguments = [
        "--jwks",
        jwks.to_str().unwrap(),
        "--alg=EdDSA",
        "--issuer=https://issuer.example",
        "--audience=shop",
        "--claim=sub=x-user",
    ];
    let Some(agent) = AgentProcess::built("jwt-agent", &arguments) else {
        return;
    };
    let upstream = upstream();
    let proxyd = Setup::to(&upstream)
        .agent_at("auth", agent.socket().to_str().unwrap(), CLOSED)
        .start();
    let mut client = proxyd.connect();
    let mut ask = |token: &str| {
        let bearer = format!("Bearer {token}");
        let fields = [("authorization", bearer.as_str()), ("x-user", "mallory")];
        client.ask(get("/", &fields))
    };
    let good = issuer.token(&claims(300));
    let stranger = Issuer(Ed25519KeyPair::generate().unwrap()).token(&claims(300));
    let expired = issuer.token(&claims(-300));

    let response = ask(&good);

    assert_eq!(response.status, 200, "{}", response.text());
    assert_eq!(upstream.last_request().fields.all("x-user"), ["ann"]);
    for token in [&stranger, &expired, "none"] {
        let response = ask(token);
        refusal(&response, 401, "AUTHENTICATION_FAILED");
        assert_eq!(reason(&proxyd, &response), "agent_challenge");
        let challenge = response.fields.get("www-authenticate").unwrap();
        assert!(challenge.starts_with("Bearer"), "{challenge}");
    }
    assert_eq!(upstream.requests().len(), 1);
}
