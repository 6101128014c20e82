//! Forms that replace a resource: one that was opened before another person's change is refused, and
//! shows both values.

use crate::fleet::{Fleet, bundle, certificate_and_key, node};
use crate::reports::{Outcome, Reports};
use crate::world::{Shown, World, between, worlds};
use axum::http::StatusCode;
use control_domain::{DriftState, Role, SsoSettings};
use control_http::SessionCookie;
use control_testkit::Database;
use jiff::SignedDuration;
use uuid::Uuid;

/// Asserts that a form was refused for its version, and returns the notice.
fn conflict(shown: &Shown) -> &str {
    assert_eq!(
        shown.status,
        StatusCode::UNPROCESSABLE_ENTITY,
        "{}",
        shown.text
    );
    let notice = between(&shown.text, "role=\"alert\"", "</div></div>");
    let reason = "Another request changed this in the meantime";
    assert!(notice.contains(reason), "{notice}");
    notice
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_that_was_changed_is_not_replaced_unseen() {
    for world in worlds().await {
        let page = "/projects/{project}/policy";
        let path = world.path(page);
        let late = world
            .get(page, &world.admin)
            .await
            .version(&path)
            .to_owned();
        let strict = [("approve", "all"), ("freeze", "Fri 16:00-Mon 08:00")];
        let done = world.submit(page, page, &world.admin, &strict).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        let own = [
            ("version", late.as_str()),
            ("approve", "all"),
            ("freeze", "Wed 00:00-Wed 06:00"),
        ];
        let refused = world.submit(page, page, &world.admin, &own).await;
        let notice = conflict(&refused);
        for part in ["Fri 16:00-Mon 08:00", "Wed 00:00-Wed 06:00"] {
            assert!(notice.contains(part), "{part}: {notice}");
        }
        let call = world.call().await;
        let project = world.app.project(&call, world.project).await.unwrap();
        let freezes = project.value.policy.rules.freezes.texts();
        assert_eq!(freezes, ["Fri 16:00-Mon 08:00"]);
        assert_eq!(refused.version(&path), project.version.to_string());
        // The name is of the same resource.
        let rename = "/projects/{project}";
        let name = [("version", late.as_str()), ("name", "late")];
        let refused = world.submit(page, rename, &world.admin, &name).await;
        assert!(conflict(&refused).contains("late"));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_project_with_the_name_of_a_rule_is_shown_by_its_name() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let (page, rename) = ("/projects/{project}/policy", "/projects/{project}");
    let shown = world.get(page, &world.admin).await;
    let late = shown.version(&world.path(rename)).to_owned();
    let done = world
        .submit(page, rename, &world.admin, &[("name", "all")])
        .await;
    assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    let name = [("version", late.as_str()), ("name", "late")];
    let refused = world.submit(page, rename, &world.admin, &name).await;
    let notice = conflict(&refused);
    assert!(notice.contains("<code>all</code>"), "{notice}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_agreement_to_a_policy_that_was_replaced_is_refused() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let page = "/projects/{project}/policy";
    world
        .submit(page, page, &world.admin, &[("approve", "all")])
        .await;
    let weaker = [("approve", "risky")];
    world.submit(page, page, &world.admin, &weaker).await;
    let other = world.member(Role::Admin).await;
    let shown = world.get(page, &other).await;
    let version = shown.version(&world.path(page)).to_owned();
    // The first administrator asks for another one in the meantime.
    let none = [("approve", "none")];
    world.submit(page, page, &world.admin, &none).await;
    let agreed = [("version", version.as_str()), ("approve", "risky")];
    let refused = world.submit(page, page, &other, &agreed).await;
    conflict(&refused);
}

/// The page of a certificate, its path, and the version that it shows.
async fn certificate(world: &World, fleet: &Fleet) -> (String, String, String) {
    let page = format!("/projects/{{project}}/certificates/{}", fleet.certificate);
    let path = world.path(&page);
    let shown = world.get(&page, &world.admin).await;
    let version = shown.version(&path).to_owned();
    (page, path, version)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_was_replaced_is_not_replaced_unseen() {
    for world in worlds().await {
        let fleet = Fleet::new(&world).await;
        let (page, path, late) = certificate(&world, &fleet).await;
        let (chain, key) = certificate_and_key();
        let send = async |version: &str, labels: &str| {
            let fields = [
                ("version", version),
                ("name", "shop"),
                ("chain_pem", chain.as_str()),
                ("private_key_pem", key.as_str()),
                ("labels", labels),
            ];
            world.submit(&page, &page, &world.admin, &fields).await
        };
        let done = send(&late, "region:dub").await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        let refused = send(&late, "region:iad").await;
        let notice = conflict(&refused);
        for part in ["region:dub", "region:iad"] {
            assert!(notice.contains(part), "{part}: {notice}");
        }
        assert!(!refused.text.contains("PRIVATE KEY"), "{}", refused.text);
        let done = send(refused.version(&path), "region:iad").await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_chain_that_was_replaced_is_shown_by_its_fingerprint() {
    for world in worlds().await {
        let fleet = Fleet::new(&world).await;
        let (page, _, late) = certificate(&world, &fleet).await;
        let send = async |version: &str, pair: &(String, String)| {
            let fields = [
                ("version", version),
                ("name", "shop"),
                ("chain_pem", pair.0.as_str()),
                ("private_key_pem", pair.1.as_str()),
                ("labels", "region:dub"),
            ];
            world.submit(&page, &page, &world.admin, &fields).await
        };
        let (first, second) = (certificate_and_key(), certificate_and_key());
        let done = send(&late, &first).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        let call = world.call().await;
        let stored = world
            .app
            .certificate(&call, world.project, fleet.certificate);
        let facts = stored.await.unwrap().value.facts;
        // Nothing else differs than the chain and its key.
        let refused = send(&late, &second).await;
        let notice = conflict(&refused);
        let (fingerprint, end) = (facts.fingerprint, facts.not_after.to_string());
        for part in [fingerprint.as_str(), end.as_str(), "another chain"] {
            assert!(notice.contains(part), "{part}: {notice}");
        }
        // The same chain is no difference.
        let refused = send(&late, &first).await;
        assert!(!conflict(&refused).contains(": stored"), "{}", refused.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_and_labels_that_were_changed_are_not_replaced_unseen() {
    for world in worlds().await {
        let fleet = Fleet::new(&world).await;
        let hook = format!("/projects/{{project}}/webhooks/{}", fleet.webhook);
        let path = world.path(&hook);
        let late = world
            .get(&hook, &world.admin)
            .await
            .version(&path)
            .to_owned();
        let switch = async |version: &str, enabled: &str| {
            let fields = [("version", version), ("enabled", enabled)];
            let done = world.submit(&hook, &hook, &world.admin, &fields).await;
            assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
            world.get(&hook, &world.admin).await.heading().to_owned()
        };
        assert_eq!(switch(&late, "no").await, "on-call is switched off.");
        assert_eq!(switch(&late, "yes").await, "on-call is switched off.");
        let node = format!("/projects/{{project}}/nodes/{}", fleet.nodes[0]);
        let labels = format!("{node}/labels");
        let path = world.path(&labels);
        let late = world
            .get(&node, &world.admin)
            .await
            .version(&path)
            .to_owned();
        for wanted in ["tier:edge", "tier:core"] {
            let fields = [("version", late.as_str()), ("labels", wanted)];
            world.submit(&node, &labels, &world.admin, &fields).await;
            let call = world.call().await;
            let stored = world.app.node(&call, world.project, fleet.nodes[0]);
            let stored = stored.await.unwrap().value;
            let tier = stored.labels.pairs().get("tier").cloned();
            assert_eq!(tier.as_deref(), Some("edge"), "after {wanted}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_was_made_or_changed_is_not_replaced_unseen() {
    for world in worlds().await {
        let form = "/orgs/{org}/sso/saml";
        let path = world.path(form);
        let acs = format!("https://control.example.com/sso/{}/saml/acs", world.org);
        let send = async |version: &str, metadata: &str| {
            let fields = [
                ("version", version),
                ("idp_metadata_url", metadata),
                ("sp_entity_id", "urn:controld"),
                ("assertion_consumer_service_url", acs.as_str()),
                ("group_mapping", "default = reader"),
            ];
            world.submit(form, form, &world.admin, &fields).await
        };
        // Two persons open the form of an organization without a connection.
        let none = world
            .get(form, &world.admin)
            .await
            .version(&path)
            .to_owned();
        let made = send(&none, "https://one.example.com/metadata").await;
        assert_eq!(made.status, StatusCode::SEE_OTHER, "{}", made.text);
        let refused = send(&none, "https://two.example.com/metadata").await;
        let notice = conflict(&refused);
        for part in ["one.example.com", "two.example.com"] {
            assert!(notice.contains(part), "{part}: {notice}");
        }
        let call = world.call().await;
        let stored = world.app.sso(&call, world.org).await.unwrap().connection;
        let SsoSettings::Saml(settings) = stored.unwrap().value.settings else {
            panic!("a connection by SAML");
        };
        let url = settings.idp_metadata_url.unwrap();
        assert!(url.contains("one.example.com"), "{url}");
        let seen = refused.version(&path).to_owned();
        let done = send(&seen, "https://two.example.com/metadata").await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_drift_keeps_only_the_bundle_that_its_page_showed() {
    for world in worlds().await {
        let mut bundles = Vec::new();
        for name in ["one", "two", "three"] {
            let text = format!(
                "listeners {{ listener \"{name}\" {{ address \"127.0.0.1:0\" }} }}\n\
                 routes {{ route \"site\" {{ upstream \"site\" }} }}\n\
                 upstreams {{ upstream \"site\" {{ target \"127.0.0.1:3000\" }} }}\n"
            );
            bundles.push(bundle(&world, name, &text).await);
        }
        let id = node(&world, "edge-1", "fra").await;
        let start = world.app.now() - SignedDuration::from_mins(10);
        let mut reports = Reports::new(start, "site");
        let outcome = |_| Outcome::default();
        for bundle in &bundles {
            let call = world.call_at(reports.now).await;
            let nodes = [id];
            let assigned = world
                .app
                .assign_bundle(&call, world.project, *bundle, &nodes);
            assigned.await.unwrap();
            reports.send(&world, id, None, outcome).await;
        }
        // The node returns to the first one by itself.
        reports.send(&world, id, Some(bundles[0]), outcome).await;
        let watch = async || {
            let now = world.app.now();
            world.app.watch_drift(Uuid::nil(), now).await.unwrap();
            let call = world.call().await;
            let drifts = world.app.newest_drifts(&call, world.project, None, 1);
            drifts.await.unwrap()[0].value.clone()
        };
        let drift = watch().await;
        assert_eq!(drift.active, Some(bundles[0]));
        let page = format!("/projects/{{project}}/drift/{}", drift.id);
        let resolve = format!("{page}/resolve");
        let keep = async |bundle: &str| {
            let fields = [("remedy", "accept"), ("bundle", bundle)];
            let done = world.submit(&page, &resolve, &world.admin, &fields).await;
            assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        };
        let shown = world.get(&page, &world.admin).await;
        let seen = between(&shown.text, "name=\"bundle\" value=\"", "\"").to_owned();
        assert_eq!(seen, bundles[0].to_string());
        // It changes again, after the page was shown.
        reports.now = world.app.now();
        reports.send(&world, id, Some(bundles[1]), outcome).await;
        keep(&seen).await;
        let changed = watch().await;
        assert_eq!(changed.state, DriftState::Open, "nothing was accepted");
        assert_eq!(changed.active, Some(bundles[1]));
        let shown = world.get(&page, &world.admin).await;
        assert!(shown.heading().contains("“two”"), "{}", shown.heading());
        keep(&bundles[1].to_string()).await;
        let call = world.call().await;
        let order = world.app.node(&call, world.project, id).await.unwrap();
        let order = order.value.order.unwrap().bundle;
        assert_eq!(order, bundles[1]);
    }
}
