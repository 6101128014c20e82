//! Credentials that are revoked while the body of their request arrives.

use crate::world::{Answer, Credential, World, worlds};
use axum::body::{Body, Bytes};
use axum::http::{Method, Request, StatusCode, header};
use control_domain::Role;
use futures_util::stream;
use jiff::SignedDuration;
use serde_json::{Value, json};
use tokio::sync::oneshot;

/// Longer than a request may wait without a second authentication.
const LATE: SignedDuration = SignedDuration::from_millis(40);

/// Sends a request with a body that arrives after `meanwhile`, which runs once the server waits for the
/// body. Returns the response.
async fn late(
    world: &World,
    request: (&Method, &str, &str),
    body: Value,
    meanwhile: impl Future<Output = ()>,
) -> Answer {
    let (method, path, bearer) = request;
    let (waited_for, is_waited_for) = oneshot::channel();
    let (send, sent) = oneshot::channel::<Bytes>();
    let parts = stream::once(async move {
        waited_for.send(()).unwrap();
        sent.await
    });
    let request = Request::builder()
        .method(method)
        .uri(format!("/api/v1{path}"))
        .header(header::AUTHORIZATION, format!("Bearer {bearer}"))
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from_stream(parts))
        .unwrap();
    let meanwhile = async {
        is_waited_for.await.unwrap();
        let begun = world.app.now();
        meanwhile.await;
        while world.app.now().duration_since(begun) < LATE {
            tokio::task::yield_now().await;
        }
        send.send(body.to_string().into()).unwrap();
    };
    let (answer, ()) = tokio::join!(world.send_request(request), meanwhile);
    answer
}

#[tokio::test]
async fn a_key_that_is_revoked_meanwhile_makes_no_successor() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let made = world
            .post("/api-keys", &admin, json!({"name": "first"}))
            .await;
        let (id, secret) = (made.text("id"), made.text("secret"));
        let revoke = async {
            let path = format!("/api-keys/{id}/revoke");
            let done = world.post(&path, &admin, Value::Null).await;
            assert_eq!(done.status, StatusCode::OK, "{}", done.body);
        };

        let request = (&Method::POST, "/api-keys", secret.as_str());
        let answer = late(&world, request, json!({"name": "second"}), revoke).await;

        assert_eq!(answer.status, StatusCode::UNAUTHORIZED, "{}", answer.body);
        let keys = world.get("/api-keys", &admin).await;
        assert!(!keys.text.contains("second"), "{}", keys.text);
    }
}

#[tokio::test]
async fn a_late_body_is_accepted_with_unchanged_rights() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let made = world
            .post("/api-keys", &admin, json!({"name": "first"}))
            .await;
        let secret = made.text("secret");

        let request = (&Method::POST, "/api-keys", secret.as_str());
        let answer = late(&world, request, json!({"name": "second"}), async {}).await;

        assert_eq!(answer.status, StatusCode::CREATED, "{}", answer.body);
        let second = Credential::Bearer(answer.text("secret"));
        let used = world.get("/api-keys", &second).await;
        assert_eq!(used.status, StatusCode::OK);
    }
}
