//! The page that compares two bundles.

use crate::fleet::{Fleet, bundle, moved_bundle};
use crate::world::{World, between};
use control_http::SessionCookie;
use control_testkit::Database;

/// Text of the table under a heading with this id.
fn panel<'a>(page: &'a str, id: &str) -> &'a str {
    between(page, &format!("aria-labelledby=\"{id}\""), "</section>")
}

#[tokio::test(flavor = "multi_thread")]
async fn moved_requests_and_new_settings_are_on_the_page() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let fleet = Fleet::new(&world).await;
    let moved = moved_bundle(&world).await;
    let spring = fleet.spring;
    let path = format!("/projects/{{project}}/bundles/{moved}/diff?before={spring}");
    let page = world.get(&path, &world.admin).await;
    assert!(
        page.heading().ends_with("settings change."),
        "{}",
        page.text
    );
    let requests = panel(&page.text, "requests");
    for part in [
        "shop.example.com/api/v2",
        "shop-api",
        "shop-v2",
        "/explain?",
    ] {
        assert!(requests.contains(part), "{part}: {requests}");
    }
    let settings = panel(&page.text, "settings");
    assert!(settings.contains("shop-v2"), "{settings}");
    assert!(settings.contains("Added"), "{settings}");
    assert!(
        panel(&page.text, "files").contains("proxy.kdl"),
        "{}",
        page.text
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn another_target_is_two_settings_and_the_same_text_is_none() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let text = |port: u16| {
        format!(
            r#"listeners {{ listener "http" {{ address "0.0.0.0:8080" }} }}
routes {{ route "all" {{ upstream "app" }} }}
upstreams {{ upstream "app" {{ target "10.4.0.11:{port}" }} }}"#
        )
    };
    let first = bundle(&world, "first", &text(8080)).await;
    let second = bundle(&world, "second", &text(8081)).await;
    let path = format!("/projects/{{project}}/bundles/{second}/diff?before={first}");
    let page = world.get(&path, &world.admin).await;
    assert_eq!(page.heading(), "2 settings change.", "{}", page.text);
    let risks = panel(&page.text, "risks");
    assert!(risks.contains("targets-changed"), "{risks}");

    let remark = format!("// The same.\n{}", text(8080));
    let same = bundle(&world, "same", &remark).await;
    let path = format!("/projects/{{project}}/bundles/{same}/diff?before={first}");
    let page = world.get(&path, &world.admin).await;
    let heading = "Files differ, and all settings are equal.";
    assert_eq!(page.heading(), heading, "{}", page.text);
}
