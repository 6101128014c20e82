//! Forms: tokens, refusals, and results.

use crate::fleet::{Fleet, RECORDING, moved_bundle};
use crate::world::{World, between, worlds};
use axum::body::Body;
use axum::http::{Request, StatusCode, header};
use control_domain::{Role, RolloutState};
use control_http::SessionCookie;
use control_testkit::Database;
use std::pin::pin;
use std::time::Duration;
use tokio::time::timeout;

#[tokio::test]
async fn a_form_needs_the_token_of_its_session_and_this_site() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let (path, admin) = ("/projects/{project}/bundles/new", world.admin.clone());
    let fields = [("name", "a"), ("text", ""), ("do", "check")];
    let refused = world.post(path, &admin, "", &fields).await;
    assert_eq!(refused.status, StatusCode::FORBIDDEN);
    assert_eq!(
        refused.heading(),
        "Forbidden. This form belongs to an earlier sign-in."
    );
    let csrf = world.get(path, &admin).await.csrf().to_owned();
    let request = |site: &str, cookie: &str| {
        Request::post(world.path(path))
            .header("sec-fetch-site", site)
            .header(header::COOKIE, cookie)
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .body(Body::from(format!("csrf={csrf}&name=a&text=&do=check")))
            .unwrap()
    };
    let cookie = format!("__Host-session={admin}");
    let other = world.send(request("cross-site", &cookie)).await;
    assert_eq!(other.status, StatusCode::FORBIDDEN);
    assert_eq!(other.heading(), "Forbidden. Another site sent this form.");
    let own = world.send(request("same-origin", &cookie)).await;
    assert_eq!(own.status, StatusCode::OK, "{}", own.text);
    let json = Request::post(world.path(path))
        .header(header::COOKIE, &cookie)
        .header(header::CONTENT_TYPE, "application/json")
        .body(Body::from("{}"))
        .unwrap();
    assert_eq!(
        world.send(json).await.status,
        StatusCode::UNSUPPORTED_MEDIA_TYPE
    );
}

#[tokio::test]
async fn the_set_up_link_works_once() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let page = world.get("/set-up?token=wrong", "").await;
    assert_eq!(page.status, StatusCode::UNAUTHORIZED);
    assert_eq!(page.heading(), "Unauthorized. This link has ended.");
    // The set-up link was used to create the installation.
    assert!(
        world
            .app
            .bootstrap(world.app.now())
            .await
            .unwrap()
            .is_none()
    );
}

#[tokio::test]
async fn a_refused_form_is_shown_again_with_its_faults() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let page = "/projects/{project}/enrolment-tokens/new";
    let fields = [
        ("name", " "),
        ("max_uses", "3"),
        ("hours", "24"),
        ("labels", "region"),
    ];
    let refused = world.submit(page, page, &world.admin, &fields).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(refused.text.contains("Not done"), "{}", refused.text);
    let field = between(&refused.text, "<input id=\"labels\"", ">");
    assert!(
        field.contains("value=\"region\"") && field.contains("autofocus"),
        "{field}"
    );
    assert!(
        refused
            .text
            .contains("name=\"max_uses\" type=\"number\" value=\"3\"")
    );
}

#[tokio::test]
async fn the_secret_of_a_token_is_shown_once_and_kept_nowhere() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let page = "/projects/{project}/enrolment-tokens/new";
    let fields = [
        ("name", "rack 12"),
        ("max_uses", "3"),
        ("hours", "24"),
        ("labels", "region:fra"),
    ];
    let made = world.submit(page, page, &world.admin, &fields).await;
    assert_eq!(made.status, StatusCode::OK, "{}", made.text);
    assert_eq!(made.heading(), "Token rack 12 admits 3 nodes.");
    let secret = between(&made.text, "aria-label=\"Secret of the token\">", "<").to_owned();
    assert_eq!(secret.len(), 43, "{secret}");
    let list = world
        .get("/projects/{project}/enrolment-tokens", &world.admin)
        .await;
    assert_eq!(list.heading(), "1 token admits 3 nodes more.");
    assert!(!list.text.contains(&secret));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_command_leads_back_with_a_status_line_that_is_shown_once() {
    for world in worlds().await {
        let fleet = Fleet::new(&world).await;
        let page = format!("/projects/{{project}}/rollouts/{}", fleet.stopped);
        let shown = world.get(&page, &world.admin).await;
        assert_eq!(
            shown.heading(),
            "Stopped at batch 2 of 3: too many requests fail."
        );
        assert!(shown.text.contains("Roll back 6 nodes"), "{}", shown.text);
        let path = format!("{page}/rollback");
        let asked = world.get(&path, &world.admin).await;
        assert_eq!(
            asked.heading(),
            "Roll back 6 nodes to their former bundles?"
        );
        let done = world.submit(&path, &path, &world.admin, &[]).await;
        assert_eq!(done.status, StatusCode::SEE_OTHER);
        assert_eq!(done.header("location"), world.path(&page));
        let note = done.cookie("__Host-note").unwrap();
        let cookie = format!("__Host-session={}; __Host-note={note}", world.admin);
        let request = Request::get(world.path(&page)).header(header::COOKIE, cookie);
        let after = world.send(request.body(Body::empty()).unwrap()).await;
        assert!(
            after.text.contains("Nodes revert to their former bundles."),
            "{}",
            after.text
        );
        assert_eq!(after.cookie("__Host-note").as_deref(), Some(""));
        let call = world.call().await;
        let rollout = world.app.rollout(&call, world.project, fleet.stopped).await;
        assert_eq!(
            rollout.unwrap().value.rollout.state,
            RolloutState::RollingBack
        );
        let again = world.submit(&path, &path, &world.admin, &[]).await;
        let note = again.cookie("__Host-note").unwrap();
        assert_ne!(note, "", "a second one is refused in words");
    }
}

#[tokio::test]
async fn the_editor_shows_findings_and_signs_a_bundle_without_any() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let page = "/projects/{project}/bundles/new";
    let wrong = "limits {\n    max-heder-count 5\n}\n";
    let fields = [("name", "edge"), ("text", wrong), ("do", "sign")];
    let refused = world.submit(page, page, &world.admin, &fields).await;
    assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        refused.heading().contains("signing"),
        "{}",
        refused.heading()
    );
    assert!(refused.text.contains("proxy.kdl:2"), "{}", refused.text);
    let shown = world.get(page, &world.admin).await;
    let example = between(&shown.text, "<textarea", "</textarea>");
    let example = example.split_once('>').unwrap().1.trim_start();
    let example = example.replace("&#34;", "\"").replace("&#62;", ">");
    for (what, status) in [("check", StatusCode::OK), ("sign", StatusCode::SEE_OTHER)] {
        let fields = [("name", "edge"), ("text", example.as_str()), ("do", what)];
        let sent = world.submit(page, page, &world.admin, &fields).await;
        assert_eq!(sent.status, status, "{what}: {}", sent.text);
    }
}

#[tokio::test]
async fn a_request_is_explained_in_the_active_bundle_and_in_another() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let page = "/projects/{project}/explain";
    let empty = world.get(page, &world.admin).await;
    assert_eq!(empty.heading(), "There is no bundle to explain yet.");
    let fleet = Fleet::new(&world).await;
    let reader = world.member(Role::Reader).await;
    let (spring, cart) = (fleet.spring.to_string(), fleet.cart.to_string());
    let ask = async |url: &str, headers: &str, with: &str| {
        let fields = [
            ("method", "POST"),
            ("url", url),
            ("bundle", &spring),
            ("with", with),
            ("headers", headers),
        ];
        world.submit(page, page, &reader, &fields).await
    };
    let url = "http://shop.example.com/api/cart";
    let alone = ask(url, "", "").await;
    assert_eq!(alone.status, StatusCode::OK, "{}", alone.text);
    assert_eq!(
        alone.heading(),
        "This request goes to upstream cart by route shop-api."
    );
    let both = ask(url, "X-Env: beta", &cart).await;
    assert_eq!(
        both.heading(),
        "With “cart-timeouts”, request-secs is 2 instead of 60 for this request."
    );
    let other = ask("http://shop.example.com/else", "", "").await;
    assert_eq!(other.heading(), "This request is refused with status 404.");
    assert!(
        other.text.contains("The nearest route is shop-api"),
        "{}",
        other.text
    );
    let wrong = ask("shop", "beta", "").await;
    assert_eq!(wrong.status, StatusCode::UNPROCESSABLE_ENTITY);
    assert!(
        wrong.text.contains("id=\"headers-fault\""),
        "{}",
        wrong.text
    );
    // Links may contain the fields of a question, as those on a comparison do.
    let question = format!("bundle={spring}&with={cart}&url=http%3A%2F%2Fshop.example.com%2Fapi");
    let linked = format!("{page}?{question}");
    let linked = world.get(&linked, &reader).await;
    assert!(
        linked.heading().starts_with("With “cart-timeouts”"),
        "{}",
        linked.heading()
    );
}

#[tokio::test]
async fn recorded_requests_are_replayed_through_two_bundles_and_the_form_stays_filled() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let page = "/projects/{project}/replay";
    let empty = world.get(page, &world.admin).await;
    assert_eq!(
        empty.heading(),
        "There is no bundle to replay requests through yet."
    );
    assert!(empty.text.contains("sample-percent 10"), "{}", empty.text);
    let fleet = Fleet::new(&world).await;
    let moved = moved_bundle(&world).await.to_string();
    let (reader, spring) = (world.member(Role::Reader).await, fleet.spring.to_string());
    let send = async |before: &str, after: &str, recording: &str| {
        let fields = [
            ("before", before),
            ("after", after),
            ("recording", recording),
        ];
        world.submit(page, page, &reader, &fields).await
    };
    let found = send(&spring, &moved, RECORDING).await;
    assert_eq!(found.status, StatusCode::OK, "{}", found.text);
    assert_eq!(
        found.heading(),
        "Of 2 kinds of request, 1 is decided differently."
    );
    let filled = between(&found.text, "<textarea", "</textarea>");
    assert!(filled.contains("/api/v2/cart?id=7"), "{filled}");
    let chosen = format!("<option value=\"{moved}\" selected>");
    assert!(found.text.contains(&chosen), "{}", found.text);
    let table = between(&found.text, "id=\"kinds\"", "</table>");
    for part in [
        "shop-api (upstream cart)",
        "shop-v2 (upstream cart)",
        "66 %",
    ] {
        assert!(table.contains(part), "{part} in {table}");
    }
    assert!(!table.contains("id=7"), "a query may hold secrets: {table}");
    let same = send(&spring, &fleet.cart.to_string(), RECORDING).await;
    assert_eq!(
        same.heading(),
        "The one kind of request is decided as before."
    );
    for recording in ["", "no request"] {
        let refused = send(&spring, &moved, recording).await;
        assert_eq!(refused.status, StatusCode::UNPROCESSABLE_ENTITY);
        let fault = refused.text.contains("id=\"recording-fault\"");
        assert!(fault, "{}", refused.text);
    }
    // The link on a comparison selects both bundles.
    let linked = format!("{page}?before={spring}&after={moved}");
    let linked = world.get(&linked, &reader).await;
    assert!(linked.text.contains(&chosen), "{}", linked.text);
    // A bundle of another project is invalid here.
    let foreign = send(&spring, "00000000-0000-0000-0000-000000000000", RECORDING).await;
    assert_eq!(foreign.status, StatusCode::NOT_FOUND);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_large_form_waits_for_a_permit() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let actor = world.call().await.actor;
    let short = Duration::from_millis(100);
    let mut held = Vec::new();
    while let Ok(permit) = timeout(short, world.app.body_permit(&actor, 64 * 1024)).await {
        held.push(permit.unwrap());
    }
    let page = "/projects/{project}/bundles/new";
    let send = async |text: &str| {
        let fields = [("name", "large"), ("text", text), ("do", "check")];
        world.submit(page, page, &world.admin, &fields).await
    };
    assert_eq!(send("").await.status, StatusCode::OK, "a small one");
    let text = "// a comment\n".repeat(5_000);
    let mut large = pin!(send(&text));
    assert!(timeout(short, &mut large).await.is_err());
    held.clear();
    assert_eq!(large.await.status, StatusCode::OK);
}
