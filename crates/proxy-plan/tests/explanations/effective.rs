//! Effective settings, and their notes.

use crate::support::{SHOP, plan};
use proxy_model::{EffectiveSetting, effective};
use proxy_plan::render;
use serde_json::{Value, json};

fn shop_settings() -> (Vec<EffectiveSetting>, Vec<Value>) {
    let plan = plan(SHOP);
    let settings = effective(plan.model());
    let sources = &plan.model().sources;
    let reported = settings.iter().map(|one| render::setting(sources, one));
    let reported = reported.collect();
    (settings, reported)
}

#[test]
fn a_setting_has_its_place_in_the_file() {
    let (_, reported) = shop_settings();
    let setting_at = |path: &str| reported.iter().find(|one| one["path"] == path).unwrap();

    let path = "routes.route[\"shop\"].priority";
    let priority = json!({ "path": path, "value": 100, "origin": "edge.kdl:14" });
    assert_eq!(*setting_at(path), priority);
    let path = "upstreams.upstream[\"app\"].load-balancing";
    let balancing = json!({ "path": path, "value": "round_robin", "origin": "default" });
    assert_eq!(*setting_at(path), balancing);
    let connect = setting_at("upstreams.upstream[\"app\"].timeouts.connect-secs");
    assert_eq!(connect["value"], 1.5);
    let body = setting_at("routes.route[\"shop\"].policies.max-body-size");
    assert_eq!(body["value"], 500_000_000);
}

#[test]
fn every_setting_of_a_list_has_its_own_place() {
    let (_, reported) = shop_settings();
    let path = "routes.route[\"shop\"].matches.path-prefix";
    let prefixes = reported.iter().filter(|one| one["path"] == path);
    let prefixes: Vec<_> = prefixes
        .map(|one| (&one["value"], &one["origin"]))
        .collect();

    let expected = [
        json!("/api"),
        json!("edge.kdl:17"),
        json!("/v1"),
        json!("edge.kdl:18"),
    ];
    let [a, b, c, d] = &expected;
    assert_eq!(prefixes, [(a, b), (c, d)]);
}

#[test]
fn settings_are_read_block_by_block_with_their_units() {
    let page = render::in_force(plan(SHOP).model());

    insta::assert_snapshot!("in_force", page);
}
