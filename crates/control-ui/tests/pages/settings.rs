//! Settings of organizations and projects, certificates, keys of nodes, links for members.

use crate::fleet::{Fleet, certificate_and_key};
use crate::world::{Shown, World, between, worlds};
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use control_domain::{ApprovalRule, Role, SsoSettings};
use control_http::SessionCookie;
use control_testkit::Database;

/// Follows the redirect after a form; returns the page with its status line.
async fn follow(world: &World, done: &Shown) -> Shown {
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    let note = done.cookie("__Host-note").unwrap();
    let cookie = format!("__Host-session={}; __Host-note={note}", world.admin);
    let request = Request::get(done.header("location")).header(header::COOKIE, cookie);
    world.send(request.body(Body::empty()).unwrap()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn an_organization_is_renamed_and_demands_a_second_factor() {
    for world in worlds().await {
        let page = "/orgs/{org}";
        let shown = world.get(page, &world.admin).await;
        assert_eq!(shown.heading(), "The organization is within its quotas.");
        let refused = world
            .submit(page, page, &world.admin, &[("name", " ")])
            .await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        let done = world
            .submit(page, page, &world.admin, &[("name", "Acme & Sons")])
            .await;
        let after = follow(&world, &done).await;
        assert!(after.text.contains("Acme &#38; Sons"), "{}", after.text);
        let demand = [("second_factor", "demanded")];
        let security = "/orgs/{org}/security";
        let done = world.submit(page, security, &world.admin, &demand).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        let mut tx = world.store.read().await.unwrap();
        let stored = tx.org_security(world.org).await.unwrap().unwrap();
        assert!(stored.value.second_factor);
        drop(tx);
        // The administrator has no second factor either, and must set one up.
        let next = world.get("/orgs/{org}/members", &world.admin).await;
        assert_eq!(next.status, StatusCode::SEE_OTHER, "{}", next.text);
        assert!(next.header("location").starts_with("/profile/totp"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stricter_rule_holds_at_once_and_a_weaker_one_waits_for_a_second_person() {
    for world in worlds().await {
        let page = "/projects/{project}/policy";
        let shown = world.get(page, &world.admin).await;
        assert_eq!(shown.heading(), "One person alone may start a rollout.");
        for (rule, heading) in [
            ("all", "Every change needs a second person."),
            ("none", "Every change needs a second person."),
        ] {
            let done = world
                .submit(page, page, &world.admin, &[("approve", rule)])
                .await;
            let after = follow(&world, &done).await;
            assert_eq!(after.heading(), heading);
            let waits = after.text.contains("waits for another administrator");
            assert_eq!(waits, rule == "none", "{}", after.text);
        }
        let call = world.call().await;
        let project = world.app.project(&call, world.project).await.unwrap().value;
        assert_eq!(project.policy.rules.approve, ApprovalRule::All);
        let fields = [("name", "edge two")];
        let done = world
            .submit(page, "/projects/{project}", &world.admin, &fields)
            .await;
        let after = follow(&world, &done).await;
        assert!(after.text.contains("The project is called edge two now."));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_is_made_changed_and_switched_off() {
    for world in worlds().await {
        let (page, form) = ("/orgs/{org}/sso", "/orgs/{org}/sso/saml");
        let shown = world.get(page, &world.admin).await;
        assert_eq!(shown.heading(), "Members sign in with their passwords.");
        let acs = format!("https://control.example.com/sso/{}/saml/acs", world.org);
        let fields = |metadata: &'static str| {
            [
                ("idp_metadata_url", metadata.to_owned()),
                ("sp_entity_id", "urn:controld".to_owned()),
                ("assertion_consumer_service_url", acs.clone()),
                (
                    "group_mapping",
                    "operators = operator\r\ndefault = reader".to_owned(),
                ),
            ]
        };
        let send = async |metadata: &'static str| {
            let fields = fields(metadata);
            let fields = fields
                .each_ref()
                .map(|(name, value)| (*name, value.as_str()));
            world.submit(form, form, &world.admin, &fields).await
        };
        let refused = send("http://id.example.com/metadata").await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        assert!(
            refused.text.contains("id=\"idp_metadata_url-fault\""),
            "{}",
            refused.text
        );
        assert!(
            refused.text.contains("operators = operator"),
            "the form comes back filled"
        );
        let done = send("https://id.example.com/metadata").await;
        let after = follow(&world, &done).await;
        assert_eq!(after.heading(), "Members sign in through id.example.com.");
        let again = world.get(form, &world.admin).await;
        assert!(again.text.contains("default = reader"), "{}", again.text);
        let call = world.call().await;
        let stored = world
            .app
            .sso(&call, world.org)
            .await
            .unwrap()
            .connection
            .unwrap();
        assert!(matches!(stored.value.settings, SsoSettings::Saml(_)));
        let remove = "/orgs/{org}/sso/remove";
        let done = world.submit(remove, remove, &world.admin, &[]).await;
        let after = follow(&world, &done).await;
        assert_eq!(after.heading(), "Members sign in with their passwords.");
    }
}

#[tokio::test]
async fn a_stale_proof_is_renewed_before_the_form_of_a_connection() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let stale = world.stale_admin().await;
    let policy = "/projects/{project}/policy";
    let sent = world
        .submit(policy, policy, &stale, &[("approve", "all")])
        .await;
    assert_eq!(sent.status, StatusCode::FORBIDDEN, "{}", sent.text);
    assert_eq!(sent.heading(), "Confirm your identity.");
    let shown = world.get("/orgs/{org}/sso/oidc", &stale).await;
    assert_eq!(shown.status, StatusCode::SEE_OTHER);
    let expected = "/profile/prove?return=%2Forgs%2F";
    assert!(
        shown.header("location").starts_with(expected),
        "{}",
        shown.header("location")
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_is_stored_and_replaced_and_its_key_is_on_no_page() {
    for world in worlds().await {
        let page = "/projects/{project}/certificates";
        let (chain, key) = certificate_and_key();
        let (_, other_key) = certificate_and_key();
        let send = async |path: &str, key: &str| {
            let fields = [
                ("name", "shop"),
                ("chain_pem", chain.as_str()),
                ("private_key_pem", key),
                ("labels", "region:fra"),
            ];
            world.submit(path, path, &world.admin, &fields).await
        };
        let refused = send(page, &other_key).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        let fault = "id=\"private_key_pem-fault\"";
        assert!(refused.text.contains(fault), "{}", refused.text);
        assert!(!refused.text.contains("PRIVATE KEY"), "{}", refused.text);
        let done = send(page, &key).await;
        let after = follow(&world, &done).await;
        assert!(
            after.heading().starts_with("shop is valid for another "),
            "{}",
            after.heading()
        );
        let own = done.header("location").to_owned();
        let replaced = send(&own, &key).await;
        let after = follow(&world, &replaced).await;
        assert!(
            after.text.contains("The certificate is replaced."),
            "{}",
            after.text
        );
        assert!(after.text.contains("region:fra") && !after.text.contains("PRIVATE KEY"));
        let delete = format!("{own}/delete");
        let done = world.submit(&delete, &delete, &world.admin, &[]).await;
        let after = follow(&world, &done).await;
        assert_eq!(after.heading(), "There is no certificate yet.");
    }
}

#[tokio::test]
async fn a_new_key_of_a_node_is_shown_once() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let fleet = Fleet::new(&world).await;
    let operator = world.member(Role::Operator).await;
    let node = format!("/projects/{{project}}/nodes/{}", fleet.nodes[0]);
    let page = format!("{node}/rotate-key");
    let asked = world.get(&page, &operator).await;
    assert!(
        asked.text.contains("End the current key now"),
        "{}",
        asked.text
    );
    let made = world
        .submit(&page, &page, &operator, &[("when", "use")])
        .await;
    assert_eq!(made.status, StatusCode::OK, "{}", made.text);
    let key = between(&made.text, "aria-label=\"Key of the node\">", "<").to_owned();
    assert_eq!(key.len(), 43, "{key}");
    let after = world.get(&node, &operator).await;
    assert!(after.text.contains("A second key waits for its first use"));
    assert!(!after.text.contains(&key));
}

#[tokio::test]
async fn a_reset_link_lets_a_member_choose_another_password() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let user = world.add_member(Role::Reader).await;
    let page = format!("/orgs/{{org}}/members/{user}/reset-password");
    let made = world.submit(&page, &page, &world.admin, &[]).await;
    assert_eq!(made.status, StatusCode::OK, "{}", made.text);
    let link = between(&made.text, "aria-label=\"Reset link\">", "<").to_owned();
    let (_, secret) = link.split_once("/password-resets/use?secret=").unwrap();
    assert!(link.starts_with("https://"), "{link}");
    let page = format!("/password-resets/use?secret={secret}");
    let shown = world.get(&page, "").await;
    let before = shown.cookie("__Host-before").unwrap();
    assert_eq!(secret.len(), 43, "{before}");
    assert!(shown.text.contains(secret), "the form carries the secret");
}
