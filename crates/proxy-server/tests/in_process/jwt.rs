//! Tokens that routes require.
#![expect(
    clippy::disallowed_types,
    clippy::disallowed_methods,
    reason = "tokens have the time of day, and a test waits"
)]

use crate::support::{Config, METRICS, Proxy, metric, reason, refusal};
use aws_lc_rs::hmac;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use proxy_testkit::{EVENT_TIMEOUT, Reload, Response, Upstream, get, ok};
use std::fs;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{Instant, SystemTime, UNIX_EPOCH};
use tempfile::TempDir;

/// An issuer of tokens with one key.
struct Issuer {
    kid: &'static str,
    key: Ed25519KeyPair,
}

impl Issuer {
    fn new(kid: &'static str) -> Self {
        let key = Ed25519KeyPair::generate().unwrap();
        Self { kid, key }
    }

    fn jwks(&self) -> String {
        let x = b64(self.key.public_key().as_ref());
        let kid = self.kid;
        format!(r#"{{"keys":[{{"kty":"OKP","crv":"Ed25519","kid":"{kid}","x":"{x}"}}]}}"#)
    }

    /// A token with these further claims, such as `,"role":"admin"`.
    fn token(&self, further: &str) -> String {
        let claims = format!(
            r#"{{"iss":"https://id.test","aud":"api","sub":"ann","exp":{}{further}}}"#,
            now() + 300
        );
        self.sign(&claims)
    }

    fn sign(&self, claims: &str) -> String {
        let header = format!(r#"{{"alg":"EdDSA","kid":"{}"}}"#, self.kid);
        let message = format!("{}.{}", b64(header.as_bytes()), b64(claims.as_bytes()));
        let signature = self.key.sign(message.as_bytes());
        format!("{message}.{}", b64(signature.as_ref()))
    }
}

fn b64(bytes: &[u8]) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.unwrap().as_secs()
}

/// A file with the keys of `issuer`, and a `jwt` block with it.
fn key_file(issuer: &Issuer, settings: &str) -> (TempDir, PathBuf, String) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.json");
    fs::write(&file, issuer.jwks()).unwrap();
    let block = jwt(&format!("jwks-file \"{}\"; {settings}", file.display()));
    (folder, file, block)
}

fn jwt(settings: &str) -> String {
    format!(r#"jwt {{ issuer "https://id.test"; audience "api"; {settings} }}"#)
}

fn ask(proxyd: &Proxy, token: &str) -> Response {
    let value = format!("Bearer {token}");
    proxyd.connect().ask(get("/", &[("Authorization", &value)]))
}

/// Sends tokens until one gets `status`. Each answer is awaited, so that nothing sleeps.
#[track_caller]
fn until(proxyd: &Proxy, token: &str, status: u16) {
    let end = Instant::now() + EVENT_TIMEOUT;
    while ask(proxyd, token).status != status {
        assert!(Instant::now() < end, "never {status}");
    }
}

/// Waits until a fetch that began after this call has ended: the fetches of a set are sequential.
fn fetched(server: &Upstream) {
    let begun = server.requests().len();
    server.wait_for_requests(begun + 2);
}

#[test]
fn requests_with_a_valid_token_are_admitted() {
    let (issuer, other) = (Issuer::new("one"), Issuer::new("one"));
    let (_folder, _, block) = key_file(&issuer, "");
    let proxyd = Config::new()
        .route("api", &format!("respond 200 \"in\"; {block}"))
        .start();

    assert_eq!(ask(&proxyd, &issuer.token("")).text(), "in");
    let lower = format!("bearer  {}", issuer.token(""));
    let lower = proxyd.connect().ask(get("/", &[("Authorization", &lower)]));
    assert_eq!(lower.status, 200, "the scheme has no case");
    for (class, token) in [
        ("another key", other.token("")),
        ("broken parts", issuer.token("").replace('.', "x.")),
        ("no token", "abc".to_owned()),
        ("nothing", String::new()),
        (
            "another audience",
            issuer.sign(r#"{"iss":"https://id.test","aud":"web","exp":4000000000}"#),
        ),
        (
            "expired",
            issuer.sign(r#"{"iss":"https://id.test","aud":"api","exp":1700000000}"#),
        ),
    ] {
        let refused = ask(&proxyd, &token);
        refusal(&refused, 401, "AUTHENTICATION_FAILED");
        assert_eq!(reason(&proxyd, &refused), "credentials_invalid", "{class}");
    }
}

#[test]
fn refusals_have_a_challenge_of_their_class() {
    let issuer = Issuer::new("one");
    let settings = r#"realm "Orders"; require-scope "orders:read" "mail""#;
    let (_folder, _, block) = key_file(&issuer, settings);
    let proxyd = Config::new()
        .route("api", &format!("respond 200 \"in\"; {block}"))
        .start();
    let mut client = proxyd.connect();
    let valid = format!("Bearer {}", issuer.token(r#","scope":"mail orders:read""#));

    let none = client.ask(get("/", &[]));
    let basic = client.ask(get("/", &[("Authorization", "Basic YTpi")]));
    let twice = client.ask(get(
        "/",
        &[("Authorization", &valid), ("Authorization", &valid)],
    ));
    let short = ask(&proxyd, &issuer.token(r#","scope":"mail""#));

    let invalid = "Bearer realm=\"Orders\", error=\"invalid_token\"";
    for (response, status, expected, challenge) in [
        (none, 401, "credentials_missing", "Bearer realm=\"Orders\""),
        (basic, 401, "credentials_invalid", invalid),
        (twice, 401, "credentials_invalid", invalid),
        (
            short,
            403,
            "token_claim_missing",
            "Bearer realm=\"Orders\", error=\"insufficient_scope\", scope=\"orders:read mail\"",
        ),
    ] {
        assert_eq!(response.status, status);
        assert_eq!(response.fields.all("www-authenticate"), [challenge]);
        assert_eq!(reason(&proxyd, &response), expected);
    }
    assert_eq!(
        client.ask(get("/", &[("Authorization", &valid)])).status,
        200
    );
}

#[test]
fn a_token_without_a_required_claim_is_answered_403() {
    let issuer = Issuer::new("one");
    let settings = r#"require-claim "realm_access.roles" "admin"; require-claim "mfa" "true""#;
    let (_folder, _, block) = key_file(&issuer, settings);
    let proxyd = Config::new()
        .route("api", &format!("respond 200 \"in\"; {block}"))
        .start();

    for (claims, status) in [
        (
            r#","realm_access":{"roles":["ops","admin"]},"mfa":true"#,
            200,
        ),
        (r#","realm_access.roles":"admin","mfa":"true""#, 200),
        (r#","realm_access":{"roles":["ops"]},"mfa":true"#, 403),
        (r#","realm_access":{"roles":["admins"]},"mfa":true"#, 403),
        (r#","realm_access":{"roles":["admin"]}"#, 403),
        ("", 403),
    ] {
        let response = ask(&proxyd, &issuer.token(claims));
        assert_eq!(response.status, status, "{claims}");
        if status == 403 {
            refusal(&response, 403, "AUTHORIZATION_FAILED");
        }
    }
}

#[test]
fn claims_replace_the_fields_of_the_client() {
    let upstream = Upstream::saying("in");
    let issuer = Issuer::new("one");
    let settings = r#"claim-header "X-User" "sub"; claim-header "X-Roles" "roles"; claim-header "X-Forwarded-Groups" "groups""#;
    let (_folder, _, block) = key_file(&issuer, settings);
    let edits = "request-headers { set \"X-Name\" \"{user}\" }";
    let proxyd = Config::through(&upstream, &format!("{block}; {edits}")).start();
    let send = |token: &str, further: &[(&str, &str)]| {
        let value = format!("Bearer {token}");
        let mut fields = vec![("Authorization", value.as_str())];
        fields.extend_from_slice(further);
        proxyd.connect().ask(get("/", &fields))
    };
    let forged = [
        ("X-User", "root"),
        ("x-user", "root"),
        ("X_User", "root"),
        ("X.User", "root"),
        ("X-Roles", "admin"),
        ("X_Roles", "admin"),
        ("X-Forwarded-Groups", "wheel"),
        ("Connection", "X-User, X-Forwarded-Groups"),
    ];

    let token = issuer.token(r#","roles":["a","b"],"groups":"staff""#);
    assert_eq!(send(&token, &forged).status, 200);

    let fields = upstream.last_request().fields;
    assert_eq!(fields.all("x-user"), ["ann"]);
    assert_eq!(fields.all("x-roles"), ["a,b"]);
    assert_eq!(fields.all("x-forwarded-groups"), ["staff"]);
    assert_eq!(fields.all("x-name"), ["ann"]);
    for alike in ["x_user", "x.user", "x_roles"] {
        assert_eq!(fields.get(alike), None, "{alike}");
    }

    // Without the claim the field is absent: the client's field is removed.
    let token = issuer.sign(r#"{"iss":"https://id.test","aud":"api","exp":4000000000}"#);
    assert_eq!(send(&token, &forged).status, 200);
    let fields = upstream.last_request().fields;
    for name in ["x-user", "x-roles", "x-forwarded-groups", "x_user"] {
        assert_eq!(fields.get(name), None, "{name}");
    }

    for unfit in [
        r#","roles":["a,admin"]"#,
        r#","roles":{"a":1}"#,
        r#","roles":"a\r\nX-Admin: 1""#,
    ] {
        let refused = send(&issuer.token(unfit), &[]);
        assert_eq!(refused.status, 403, "{unfit}");
    }
}

#[test]
fn a_user_with_white_space_at_the_ends_of_the_name_is_refused() {
    let issuer = Issuer::new("one");
    let (_folder, _, plain) = key_file(&issuer, "");
    let (_other_folder, _, in_field) = key_file(&issuer, "claim-header \"X-User\" \"sub\"");
    let user = "request-headers { set \"X-Name\" \"{user}\" }";
    for (route, status) in [
        (in_field, 403),
        (format!("{plain}; {user}"), 403),
        // No field contains the name.
        (plain, 200),
    ] {
        let upstream = Upstream::saying("in");
        let proxyd = Config::through(&upstream, &route).start();
        for name in [" ann", "ann ", "\u{a0}ann"] {
            let claims = format!(
                r#"{{"iss":"https://id.test","aud":"api","exp":4000000000,"sub":"{name}"}}"#
            );
            let response = ask(&proxyd, &issuer.sign(&claims));
            assert_eq!(response.status, status, "{route} {name:?}");
        }
    }
}

#[test]
fn a_rate_limit_by_a_claim_counts_the_claim() {
    let upstream = Upstream::saying("in");
    let issuer = Issuer::new("one");
    let (_folder, _, block) = key_file(&issuer, "claim-header \"X-User\" \"sub\"");
    let limit = r#"rate-limit { requests-per-second 1; burst 2; key "header:X-User" }
        cors { allow-origins "*" }"#;
    let proxyd = Config::through(&upstream, &format!("{block}; {limit}")).start();
    let token = issuer.token("");
    let bearer = format!("Bearer {token}");
    let mut client = proxyd.connect();
    let mut send = |user: &str| {
        let fields = [("Authorization", bearer.as_str()), ("X-User", user)];
        client.ask(get("/", &fields))
    };

    // Neither requests without a token nor preflight requests spend the user's tokens.
    for _ in 0..3 {
        let refused = proxyd.connect().ask(get("/", &[("X-User", "ann")]));
        assert_eq!(refused.status, 401);
        assert_eq!(refused.fields.get("x-ratelimit-remaining"), Some("2"));
    }
    let preflight = "OPTIONS / HTTP/1.1\r\nHost: a.test\r\nOrigin: https://app.test\r\n\
                     Access-Control-Request-Method: GET\r\nX-User: ann\r\n\r\n";
    assert_eq!(proxyd.connect().ask(preflight).status, 204);
    let first = send("mallory-0");
    assert_eq!(first.status, 200);
    assert_eq!(first.fields.get("x-ratelimit-remaining"), Some("1"));

    let mut statuses = (1..100).map(|index| send(&format!("mallory-{index}")).status);
    assert!(
        statuses.any(|status| status == 429),
        "one user has one bucket"
    );
}

#[test]
fn no_other_spelling_of_a_verified_token_reaches_the_upstream() {
    let issuer = Issuer::new("one");
    let token = issuer.token("");
    for forward in ["", "forward-token #true"] {
        let upstream = Upstream::saying("in");
        let (_folder, _, block) = key_file(&issuer, &format!("header \"X-Token\"; {forward}"));
        let proxyd = Config::through(&upstream, &block).start();

        let response = proxyd.connect().ask(format!(
            "POST / HTTP/1.1\r\nHost: a.test\r\nX-Token: {token}\r\nX_Token: forged\r\n\
             X.Token: forged\r\nTransfer-Encoding: chunked\r\nTrailer: X-Token\r\n\r\n\
             2\r\nhi\r\n0\r\nX-Token: forged\r\nX_Token: forged\r\nX-Sum: 1\r\n\r\n"
        ));

        assert_eq!(response.status, 200);
        let request = upstream.last_request();
        let sent = (!forward.is_empty()).then_some(token.as_str());
        assert_eq!(request.fields.get("x-token"), sent);
        assert_eq!(request.trailers.get("x-sum"), Some("1"));
        for name in ["x_token", "x.token"] {
            assert_eq!(request.fields.get(name), None, "{name}");
        }
        for name in ["x-token", "x_token"] {
            assert_eq!(request.trailers.get(name), None, "{name}");
        }
    }
}

#[test]
fn the_token_is_forwarded_only_if_the_route_is_configured_to() {
    for (settings, is_sent) in [("", false), ("forward-token #true", true)] {
        let upstream = Upstream::saying("in");
        let issuer = Issuer::new("one");
        let (_folder, _, block) = key_file(&issuer, settings);
        let proxyd = Config::through(&upstream, &block).start();
        let token = issuer.token("");

        assert_eq!(ask(&proxyd, &token).text(), "in");

        let sent = upstream
            .last_request()
            .fields
            .get("authorization")
            .map(str::to_owned);
        assert_eq!(sent, is_sent.then(|| format!("Bearer {token}")));
    }
}

#[test]
fn a_token_is_taken_from_a_field_or_a_cookie() {
    let issuer = Issuer::new("one");
    let token = issuer.token("");
    let bearer = format!("Bearer {token}");
    let cookie = format!("a=1; session={token}; b=2");
    let two = format!("session={token}; session={token}");
    let in_field = "header \"X-Token\"";
    let in_cookie = "cookie \"session\"";

    for (settings, field, value, status) in [
        (in_field, "X-Token", &token, 200),
        (in_field, "X-Token", &bearer, 200),
        (in_field, "Authorization", &bearer, 401),
        (in_cookie, "Cookie", &cookie, 200),
        (in_cookie, "Cookie", &two, 401),
        (in_cookie, "Authorization", &bearer, 401),
        ("", "Authorization", &token, 401),
    ] {
        let upstream = Upstream::saying("in");
        let (_folder, _, block) = key_file(&issuer, settings);
        let proxyd = Config::through(&upstream, &block).start();

        let response = proxyd.connect().ask(get("/", &[(field, value)]));

        assert_eq!(response.status, status, "{settings} {field}");
        if status == 200 {
            let fields = upstream.last_request().fields;
            assert_eq!(fields.get("x-token"), None);
            let rest = (field == "Cookie").then_some("a=1; b=2");
            assert_eq!(fields.get("cookie"), rest);
        }
    }
}

#[test]
fn a_token_is_not_longer_than_allowed() {
    let issuer = Issuer::new("one");
    let (_folder, _, block) = key_file(&issuer, "max-token-size 512");
    let proxyd = Config::new()
        .route("api", &format!("respond 200 \"in\"; {block}"))
        .start();
    let long = issuer.token(&format!(r#","x":"{}""#, "x".repeat(400)));

    assert_eq!(ask(&proxyd, &issuer.token("")).status, 200);
    assert_eq!(ask(&proxyd, &long).status, 401);
}

#[test]
fn clocks_may_differ_by_the_skew() {
    let issuer = Issuer::new("one");
    let (_folder, _, block) = key_file(&issuer, "clock-skew-secs 600");
    let proxyd = Config::new()
        .route("api", &format!("respond 200 \"in\"; {block}"))
        .start();
    let expired = |ago: u64| {
        let exp = now() - ago;
        issuer.sign(&format!(
            r#"{{"iss":"https://id.test","aud":"api","exp":{exp}}}"#
        ))
    };

    assert_eq!(ask(&proxyd, &expired(300)).status, 200);
    assert_eq!(ask(&proxyd, &expired(700)).status, 401);
}

#[test]
fn only_listed_algorithms_are_admitted() {
    let issuer = Issuer::new("one");
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("keys.json");
    let rsa = format!(
        r#"{{"kty":"RSA","kid":"r","n":"{}","e":"AQAB"}}"#,
        b64(&[0xC5; 256])
    );
    fs::write(&file, issuer.jwks().replace("[{", &format!("[{rsa},{{"))).unwrap();

    for (algorithms, status) in [
        ("", 200),
        ("algorithms \"RS256\" \"EdDSA\"", 200),
        ("algorithms \"RS256\"", 401),
    ] {
        let block = jwt(&format!("jwks-file {file:?}; {algorithms}"));
        let proxyd = Config::new()
            .route("api", &format!("respond 200 \"in\"; {block}"))
            .start();
        assert_eq!(
            ask(&proxyd, &issuer.token("")).status,
            status,
            "{algorithms}"
        );
    }
}

#[test]
fn a_secret_verifies_hmac_and_no_public_key_does() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("token.secret");
    let secret = "0123456789abcdef0123456789abcdef";
    fs::write(&file, format!("{secret}\n")).unwrap();
    let issuer = Issuer::new("one");
    let (_folder, _, by_keys) = key_file(&issuer, "");
    let by_secret = jwt(&format!("hmac-file {file:?}"));
    let proxyd = Config::new()
        .route(
            "public",
            &format!("matches {{ path \"/\" }}; respond 200 \"in\"; {by_keys}"),
        )
        .route("secret", &format!("respond 200 \"in\"; {by_secret}"))
        .start();
    let hmac_token = |secret: &[u8]| {
        let claims = format!(
            r#"{{"iss":"https://id.test","aud":"api","exp":{}}}"#,
            now() + 60
        );
        let header = r#"{"alg":"HS256","kid":"one"}"#;
        let message = format!("{}.{}", b64(header.as_bytes()), b64(claims.as_bytes()));
        let key = hmac::Key::new(hmac::HMAC_SHA256, secret);
        let tag = hmac::sign(&key, message.as_bytes());
        format!("Bearer {message}.{}", b64(tag.as_ref()))
    };
    let ask = |path: &str, value: &str| {
        let request = get(path, &[("Authorization", value)]);
        proxyd.connect().ask(request).status
    };
    let public = issuer.key.public_key();

    assert_eq!(ask("/secret", &hmac_token(secret.as_bytes())), 200);
    assert_eq!(ask("/secret", &hmac_token(b"another")), 401);
    assert_eq!(ask("/secret", &format!("Bearer {}", issuer.token(""))), 401);
    assert_eq!(
        ask("/", &hmac_token(public.as_ref())),
        401,
        "a public key is not a secret"
    );
    assert_eq!(ask("/", &format!("Bearer {}", issuer.token(""))), 200);
}

#[test]
fn a_reload_reads_the_file_of_keys_again() {
    let (old, new) = (Issuer::new("old"), Issuer::new("new"));
    let (_folder, file, block) = key_file(&old, "");
    let config = Config::new().route("api", &format!("respond 200 \"in\"; {block}"));
    let proxyd = config.start();
    assert_eq!(ask(&proxyd, &old.token("")).status, 200);
    assert_eq!(ask(&proxyd, &new.token("")).status, 401);

    fs::write(&file, new.jwks()).unwrap();
    assert_eq!(proxyd.reload(&config.kdl()), Reload::Applied);

    assert_eq!(ask(&proxyd, &old.token("")).status, 401);
    assert_eq!(ask(&proxyd, &new.token("")).status, 200);
    fs::write(&file, "{\"keys\":[]}").unwrap();
    let Reload::Refused(error) = proxyd.reload(&config.kdl()) else {
        panic!("a file without keys is refused");
    };
    assert!(error.contains("no keys that verify tokens"), "{error}");
    assert_eq!(ask(&proxyd, &new.token("")).status, 200);
}

/// An issuer's server of keys, which answers with the current text, or not at all.
fn key_server(answer: &Arc<Mutex<Option<String>>>) -> Upstream {
    let answer = Arc::clone(answer);
    Upstream::start(move |served| {
        while served.request().is_some() {
            let Some(text) = answer.lock().unwrap().clone() else {
                return;
            };
            served.send(ok(text));
        }
    })
}

fn remote(server: &Upstream, settings: &str) -> Config {
    let block = jwt(&format!(
        "jwks-url \"http://id.test/keys?a=b\"; jwks-upstream \"id\"; {settings}"
    ));
    Config::new()
        .route("metrics", METRICS)
        .route("api", &format!("respond 200 \"in\"; {block}"))
        .upstream("id", &format!("target \"{}\"", server.address()))
}

#[test]
fn keys_are_fetched_and_fetched_again_for_an_unknown_one() {
    let (old, new) = (Issuer::new("old"), Issuer::new("new"));
    let answer = Arc::new(Mutex::new(Some(old.jwks())));
    let server = key_server(&answer);
    let config = remote(&server, "jwks-min-interval-secs 1");
    let proxyd = config.start();
    until(&proxyd, &old.token(""), 200);
    let asked = server.last_request();
    assert_eq!(asked.target, "/keys?a=b");
    assert_eq!(asked.fields.all("host"), ["id.test"]);

    // A flood of unknown keys causes only one fetch a second.
    let before = server.requests().len();
    let started = Instant::now();
    for _ in 0..50 {
        assert_eq!(ask(&proxyd, &new.token("")).status, 401);
    }
    let seconds = usize::try_from(started.elapsed().as_secs()).unwrap();
    assert!(server.requests().len() <= before + seconds + 1);

    *answer.lock().unwrap() = Some(new.jwks());
    until(&proxyd, &new.token(""), 200);
    assert_eq!(ask(&proxyd, &old.token("")).status, 401);

    // A reload keeps the keys while the issuer is unreachable.
    *answer.lock().unwrap() = None;
    let config = config.route("further", "matches { path \"/further\" }; respond 204");
    assert_eq!(proxyd.reload(&config.kdl()), Reload::Applied);
    assert_eq!(ask(&proxyd, &new.token("")).status, 200);
}

#[test]
fn the_last_keys_are_used_while_the_issuer_is_unreachable_until_they_expire() {
    let issuer = Issuer::new("one");
    let answer = Arc::new(Mutex::new(None));
    let server = key_server(&answer);
    let times = "jwks-min-interval-secs 1; jwks-max-interval-secs 1; jwks-max-age-secs 8";
    let proxyd = remote(&server, times).start();
    let keys = || {
        let name = "proxy_jwt_key_set_keys{upstream=\"id\",url=\"http://id.test/keys?a=b\"}";
        metric(&mut proxyd.connect(), name)
    };

    // No keys yet: not the client's fault.
    let early = ask(&proxyd, &issuer.token(""));
    refusal(&early, 503, "SERVICE_UNAVAILABLE");
    assert_eq!(reason(&proxyd, &early), "token_keys_unavailable");
    *answer.lock().unwrap() = Some(issuer.jwks());
    fetched(&server);
    assert_eq!(ask(&proxyd, &issuer.token("")).status, 200);
    assert!((keys() - 1.0).abs() < 0.5);

    for no_keys in ["<html>", "{\"keys\":[]}"] {
        *answer.lock().unwrap() = Some(no_keys.to_owned());
        fetched(&server);
        assert_eq!(ask(&proxyd, &issuer.token("")).status, 200);
        *answer.lock().unwrap() = Some(issuer.jwks());
        fetched(&server);
    }

    *answer.lock().unwrap() = None;
    assert_eq!(ask(&proxyd, &issuer.token("")).status, 200);
    until(&proxyd, &issuer.token(""), 503);
    assert!(keys() < 0.5);
    *answer.lock().unwrap() = Some(issuer.jwks());
    until(&proxyd, &issuer.token(""), 200);
}

#[test]
fn preflight_requests_need_no_token() {
    let upstream = Upstream::saying("in");
    let issuer = Issuer::new("one");
    let (_folder, _, block) = key_file(&issuer, "");
    let cors = "cors { allow-origins \"https://a.test\"; allow-methods \"PUT\" }";
    let proxyd = Config::through(&upstream, &format!("{block}; {cors}")).start();
    let preflight = "OPTIONS / HTTP/1.1\r\nHost: a.test\r\nOrigin: https://a.test\r\n\
                     Access-Control-Request-Method: PUT\r\n\r\n";

    assert_eq!(proxyd.connect().ask(preflight).status, 204);
    let plain = "OPTIONS / HTTP/1.1\r\nHost: a.test\r\n\r\n";
    assert_eq!(proxyd.connect().ask(plain).status, 401);
    assert!(upstream.requests().is_empty());
}
