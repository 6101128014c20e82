//! Which settings are in force, and what is said of them.

use crate::support::{SHOP, plan};
use proxy_model::registry::{Status, all};
use proxy_plan::EffectiveSetting;
use serde_json::json;

fn settings(text: &str) -> Vec<EffectiveSetting> {
    EffectiveSetting::all(plan(text).model())
}

#[test]
fn a_setting_says_where_it_was_written() {
    let all = settings(SHOP);
    let of = |path: &str| all.iter().find(|one| one.path() == path).unwrap().to_json();

    let priority = json!({
        "path": "routes.route[shop].priority", "value": 100, "origin": "edge.kdl:14",
    });
    assert_eq!(of("routes.route[shop].priority"), priority);
    let balancing = json!({
        "path": "upstreams.upstream[app].load-balancing",
        "value": "round_robin",
        "origin": "default",
    });
    assert_eq!(of("upstreams.upstream[app].load-balancing"), balancing);
    let connect = of("upstreams.upstream[app].timeouts.connect-secs");
    assert_eq!(connect["value"], 1.5);
    let body = of("routes.route[shop].policies.max-body-size");
    assert_eq!(body["value"], 500_000_000);
    let address = of("upstreams.upstream.targets.target[app/app.internal:80].address");
    assert_eq!(address["value"], "app.internal:80");
}

#[test]
fn every_setting_of_a_list_has_its_own_place() {
    let all = settings(SHOP);
    let prefixes = all
        .iter()
        .filter(|one| one.path() == "routes.route[shop].matches.path-prefix");
    let prefixes: Vec<_> = prefixes
        .map(|one| (one.value.to_string(), &*one.origin))
        .collect();

    assert_eq!(
        prefixes,
        [
            ("/api".to_owned(), "edge.kdl:17"),
            ("/v1".to_owned(), "edge.kdl:18")
        ]
    );
}

#[test]
fn settings_without_effect_are_not_in_force() {
    let rows = all();
    for setting in settings(SHOP) {
        let row = rows.iter().find(|row| row.path == setting.row).unwrap();
        assert!(
            matches!(row.status, Status::Enforced { .. }),
            "{}",
            setting.row
        );
    }
}

#[test]
fn every_default_in_force_is_shown() {
    let shown = settings(SHOP);
    let once = ["system.", "limits.", "admin.", "observability."];
    for row in all() {
        let stands_once = once.iter().any(|block| row.path.starts_with(block));
        let has_default = matches!(row.presence, proxy_model::registry::Presence::Default(_));
        let enforced = matches!(row.status, Status::Enforced { .. });
        if stands_once && has_default && enforced {
            let found = shown.iter().any(|setting| setting.row == row.path);
            assert!(found, "{} is in force and not shown", row.path);
        }
    }
}
