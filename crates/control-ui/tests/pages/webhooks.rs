//! Webhooks, and policy fields other than approval.

use crate::world::{between, worlds};
use axum::http::StatusCode;
use control_domain::Role;

#[tokio::test(flavor = "multi_thread")]
async fn a_webhook_is_made_shows_its_secret_once_and_is_switched_off() {
    for world in worlds().await {
        let page = "/projects/{project}/webhooks";
        let shown = world.get(page, &world.admin).await;
        assert_eq!(shown.heading(), "No event is sent anywhere.");
        let refused = [
            ("name", "on-call"),
            ("url", "https://10.0.0.7/"),
            ("events", "drift.opened"),
        ];
        let refused = world.submit(page, page, &world.admin, &refused).await;
        assert_eq!(
            refused.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{}",
            refused.text
        );
        assert!(
            refused.text.contains("id=\"url-fault\""),
            "{}",
            refused.text
        );
        let fields = [
            ("name", "on-call"),
            ("url", "https://hooks.example.com/deploys"),
            ("events", "rollout.stopped"),
            ("events", "node.silent"),
        ];
        let made = world.submit(page, page, &world.admin, &fields).await;
        assert_eq!(made.status, StatusCode::OK, "{}", made.text);
        assert_eq!(made.heading(), "Webhook on-call is created.");
        let secret = between(&made.text, "Secret of the webhook\">", "<").to_owned();
        assert!(secret.starts_with("whsec_"), "{secret}");
        let listed = world.get(page, &world.admin).await;
        assert_eq!(listed.heading(), "Events are sent to 1 receiver.");
        assert!(!listed.text.contains(&secret));
        let id = between(&listed.text, "/webhooks/", "\"").to_owned();
        let own = format!("{page}/{id}");
        let own = own.as_str();
        let shown = world.get(own, &world.admin).await;
        assert_eq!(shown.heading(), "on-call has received nothing yet.");
        let tested = world
            .submit(own, &format!("{own}/test"), &world.admin, &[])
            .await;
        assert_eq!(tested.status, StatusCode::SEE_OTHER, "{}", tested.text);
        let shown = world.get(own, &world.admin).await;
        assert_eq!(shown.heading(), "1 event waits for on-call.");
        world
            .submit(own, own, &world.admin, &[("enabled", "no")])
            .await;
        let shown = world.get(own, &world.admin).await;
        assert_eq!(shown.heading(), "on-call is switched off.");
        let rotate = format!("{own}/rotate-secret");
        let rotated = world.submit(&rotate, &rotate, &world.admin, &[]).await;
        assert_eq!(rotated.heading(), "on-call has a new secret.");
        assert!(!rotated.text.contains(&secret));
        let delete = format!("{own}/delete");
        let gone = world.submit(&delete, &delete, &world.admin, &[]).await;
        assert_eq!(gone.status, StatusCode::SEE_OTHER, "{}", gone.text);
        let listed = world.get(page, &world.admin).await;
        assert_eq!(listed.heading(), "No event is sent anywhere.");
        let operator = world.member(Role::Operator).await;
        let refused = world.get(page, &operator).await;
        assert_eq!(refused.status, StatusCode::FORBIDDEN);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn warnings_and_freezes_are_set_on_the_page_of_the_policy() {
    for world in worlds().await {
        let page = "/projects/{project}/policy";
        let wrong = [("approve", "risky"), ("freeze", "Fri 16:00-Nix 08:00")];
        let refused = world.submit(page, page, &world.admin, &wrong).await;
        assert_eq!(
            refused.status,
            StatusCode::UNPROCESSABLE_ENTITY,
            "{}",
            refused.text
        );
        assert!(
            refused.text.contains("id=\"freeze-fault\""),
            "{}",
            refused.text
        );
        assert!(
            refused.text.contains("Fri 16:00-Nix 08:00"),
            "the form comes back filled"
        );
        let fields = [
            ("approve", "risky"),
            ("refuse_warnings", "yes"),
            (
                "freeze",
                "Fri 16:00-Mon 08:00\r\n\r\nWed 00:00-Wed 06:00\r\n",
            ),
        ];
        let done = world.submit(page, page, &world.admin, &fields).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER, "{}", done.text);
        let shown = world.get(page, &world.admin).await;
        let standing = "approval of risky changes; bundles with warnings are refused; no changes \
                        Fri 16:00-Mon 08:00 and Wed 00:00-Wed 06:00 UTC";
        assert!(shown.text.contains(standing), "{}", shown.text);
        let call = world.call().await;
        let project = world.app.project(&call, world.project).await.unwrap().value;
        assert!(project.policy.rules.refuse_warnings);
        assert_eq!(project.policy.rules.freezes.texts().len(), 2);
        // A less strict policy waits for approval as a whole.
        let weaker = [("approve", "risky"), ("freeze", "")];
        world.submit(page, page, &world.admin, &weaker).await;
        let shown = world.get(page, &world.admin).await;
        assert!(
            shown
                .text
                .contains("A weaker policy waits for another administrator")
        );
        assert!(
            shown
                .text
                .contains("bundles with warnings pass; changes at any time")
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_weaker_policy_is_agreed_to_by_a_button_of_its_own() {
    for world in worlds().await {
        let page = "/projects/{project}/policy";
        let strict = [
            ("approve", "risky"),
            ("refuse_warnings", "yes"),
            ("freeze", "Wed 00:00-Wed 06:00"),
        ];
        world.submit(page, page, &world.admin, &strict).await;
        let weaker = [("approve", "risky"), ("freeze", "")];
        world.submit(page, page, &world.admin, &weaker).await;
        let button = "Agree to the weaker policy";
        let shown = world.get(page, &world.admin).await.text;
        // The form keeps the active rules, and the requester cannot approve the change.
        assert!(shown.contains("Wed 00:00-Wed 06:00</textarea>"), "{shown}");
        assert!(!shown.contains(button), "{shown}");
        let differs = "bundles with warnings pass, in place of: bundles with warnings are refused";
        assert!(shown.contains(differs), "{shown}");
        let other = world.member(Role::Admin).await;
        let shown = world.get(page, &other).await.text;
        assert!(shown.contains(button), "{shown}");
        world.submit(page, page, &other, &weaker).await;
        let call = world.call().await;
        let project = world.app.project(&call, world.project).await.unwrap().value;
        assert!(!project.policy.rules.refuse_warnings, "two asked for it");
    }
}
