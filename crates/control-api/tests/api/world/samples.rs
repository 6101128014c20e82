//! Valid request bodies for the routes.

use super::PASSWORD;
use serde_json::{Value, json};
use uuid::Uuid;

/// Returns a valid body for a route; null for a route without a body.
pub(crate) fn sample(path: &str) -> Value {
    match path {
        "/setup" => json!({
            "org_name": Uuid::now_v7().to_string(), "email": "a@example.com", "user_name": "Ann",
            "password": "correct horse",
        }),
        "/orgs/{org}/security" => json!({"second_factor": false}),
        "/projects/{project}/roles/{user}" => json!({"role": "operator"}),
        "/users/me" => json!({"name": "Ann"}),
        "/users/me/password" => json!({"password": "another good one"}),
        "/users/me/strong" => json!({"password": PASSWORD}),
        "/orgs"
        | "/orgs/{org}"
        | "/orgs/{org}/projects"
        | "/projects/{project}"
        | "/projects/{project}/bundles/{bundle}"
        | "/projects/{project}/enrolment-tokens"
        | "/projects/{project}/enrolment-tokens/{enrolment_token}"
        | "/projects/{project}/nodes/register"
        | "/api-keys/{api_key}" => {
            json!({"name": Uuid::now_v7().to_string()})
        }
        "/projects/{project}/policy" => json!({"approve": "none"}),
        "/projects/{project}/nodes/{node}" => json!({"labels": {"zone": "eu"}}),
        "/projects/{project}/nodes/{node}/rotate-key"
        | "/projects/{project}/nodes/{node}/approve"
        | "/projects/{project}/drift/{drift}/resolve" => json!({}),
        "/nodes/{node}/heartbeat" => json!({"health": {"cpu_percent": 1.5}}),
        "/nodes/{node}/events" => {
            json!({"events": [{"at": "2026-01-01T00:00:00Z", "kind": "proxy.started"}]})
        }
        "/orgs/{org}/sso" => json!({"oidc": {
            "client_id": "controld", "client_secret": "secret", "issuer": "https://idp.test",
            "group_mapping": {"default": "reader"},
        }}),
        "/orgs/{org}/sso/domains" => json!({"domains": ["example.test"]}),
        "/orgs/{org}/members/{user}" => json!({"role": "reader"}),
        "/orgs/{org}/invitations" => json!({
            "email": format!("{}@example.com", Uuid::now_v7()), "role": "reader",
        }),
        "/invitations/accept" => json!({"user_name": "Bob", "password": "correct horse"}),
        "/projects/{project}/bundles" => json!({
            "name": "edge",
            "files": {"proxy.kdl": "listeners { listener \"a\" { address \"127.0.0.1:80\" } }"},
        }),
        "/projects/{project}/bundles/preview" => json!({
            "files": {"proxy.kdl": "listeners { listener \"a\" { address \"127.0.0.1:80\" } }"},
        }),
        "/projects/{project}/bundles/{bundle}/explain" => json!({"url": "/"}),
        "/projects/{project}/bundles/{bundle}/replay" => json!({
            "before": Uuid::nil().to_string(), "recording": r#"{"method":"GET","path":"/"}"#,
        }),
        "/projects/{project}/upstreams" | "/projects/{project}/upstreams/{upstream}" => json!({
            "name": Uuid::now_v7().to_string(), "targets": [{"address": "10.0.0.1:80"}],
        }),
        "/projects/{project}/services" | "/projects/{project}/services/{service}" => json!({
            "name": Uuid::now_v7().to_string(), "host": "a.example.com",
        }),
        "/projects/{project}/certificates" | "/projects/{project}/certificates/{certificate}" => {
            let (chain, key) = certificate();
            let name = Uuid::now_v7().to_string();
            json!({"name": name, "chain_pem": chain, "private_key_pem": key})
        }
        "/projects/{project}/webhooks" | "/projects/{project}/webhooks/{webhook}" => json!({
            "name": Uuid::now_v7().to_string(), "url": "https://hooks.example.com/",
            "events": ["rollout.stopped"],
        }),
        "/api-keys" => json!({"name": Uuid::now_v7().to_string(), "scopes": ["api_keys:admin"]}),
        _ => acme_sample(path),
    }
}

/// Returns a valid body for a route of managed certificates; null for any other route.
fn acme_sample(path: &str) -> Value {
    match path {
        "/projects/{project}/managed-certificates"
        | "/projects/{project}/managed-certificates/{managed_certificate}" => json!({
            "name": Uuid::now_v7().to_string(), "hosts": ["a.example.com"],
            "directory": "https://acme-staging-v02.api.letsencrypt.org/directory",
            "email": "ops@example.com", "terms_agreed": true,
        }),
        "/nodes/{node}/challenges" => json!({"tokens": []}),
        _ => Value::Null,
    }
}

/// Creates a certificate for `a.example.com`; returns chain and key.
pub(crate) fn certificate() -> (String, String) {
    let made = rcgen::generate_simple_self_signed(vec!["a.example.com".to_owned()]).unwrap();
    (made.cert.pem(), made.signing_key.serialize_pem())
}
