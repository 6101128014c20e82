//! Concurrent sign-ins of one user through its identity provider.

use crate::sso::{Browser, oidc, sites};
use axum::http::{Method, StatusCode};
use control_domain::{Email, LinkedIdentity, Membership, Name, Role, User};
use control_testkit::{OidcBehaviour, OidcProvider, until_lock_wait};
use control_wire::{IdentityId, UserId};
use serde_json::Value;
use uuid::Uuid;

#[tokio::test(flavor = "multi_thread")]
async fn a_second_first_sign_in_of_a_user_finds_the_user_of_the_first() {
    // On PostgreSQL only, because SQLite permits only one writer.
    let site = sites().await.pop().unwrap();
    let provider = OidcProvider::start(OidcBehaviour::honest("ann", &["ops"]));
    site.connect(&oidc(&provider.issuer)).await;
    let mut browser = Browser::default();
    let query = provider.authorize(&site.begin(&mut browser).await);
    let now = site.world.app.now();
    // The first sign-in, before its commit.
    let user = User::provision(
        UserId(Uuid::now_v7()),
        Email::stored("ann@example.test".to_owned()),
        Name::stored("ann".to_owned()),
        now,
    );
    let identity = LinkedIdentity {
        id: IdentityId(Uuid::now_v7()),
        org: site.org(),
        issuer: provider.issuer.clone(),
        subject: "ann".to_owned(),
        user: user.id,
        created_at: now,
        seen_at: now,
    };
    let membership = Membership {
        org: site.org(),
        user: user.id,
        role: Role::Operator,
        created_at: now,
    };
    let mut tx = site.world.store.begin().await.unwrap();
    tx.insert_user(&user).await.unwrap();
    tx.insert_identity(&identity).await.unwrap();
    tx.insert_membership(membership).await.unwrap();
    let commit = async {
        until_lock_wait(&site.world.database).await;
        tx.commit().await.unwrap();
    };
    let (done, ()) = tokio::join!(site.call_back(&mut browser, &query), commit);
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    let me = site
        .call(&browser.session(), Method::GET, "/users/me", &Value::Null)
        .await;
    assert!(me.text.contains(&user.id.to_string()), "{}", me.text);
}

#[tokio::test(flavor = "multi_thread")]
async fn two_first_sign_ins_at_once_make_one_user() {
    for site in sites().await {
        let provider = OidcProvider::start(OidcBehaviour::honest("bea", &["ops"]));
        site.connect(&oidc(&provider.issuer)).await;
        let (mut first, mut second) = (Browser::default(), Browser::default());
        let first_query = provider.authorize(&site.begin(&mut first).await);
        let second_query = provider.authorize(&site.begin(&mut second).await);
        let (one, other) = tokio::join!(
            site.call_back(&mut first, &first_query),
            site.call_back(&mut second, &second_query)
        );
        for done in [one, other] {
            assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        }
    }
}
