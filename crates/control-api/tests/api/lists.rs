//! Order, filters and pages of lists.

use crate::world::{Answer, Credential, World, sample, worlds};
use axum::http::{Method, StatusCode};
use control_domain::{Drift, DriftState, Role};
use control_wire::{BundleId, DriftId, NodeId};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};
use uuid::Uuid;

const UPSTREAMS: &str = "/projects/{project}/upstreams";
const SERVICES: &str = "/projects/{project}/services";
const TOKENS: &str = "/projects/{project}/enrolment-tokens";
/// Fields with the order of the IDs.
const PLACES: [&str; 4] = ["id", "user", "created_at", "opened_at"];

/// A sortable list: its path, and the fields in its description.
#[derive(Debug)]
struct SortedList {
    path: String,
    fields: Vec<String>,
}

/// Returns every list with the parameter `sort`.
async fn sorted_lists(world: &World) -> Vec<SortedList> {
    let document = world.get("/openapi.json", &Credential::None).await.body;
    let paths = document["paths"].as_object().unwrap();
    let lists = paths.iter().filter_map(|(path, item)| {
        let parameters = item["get"]["parameters"].as_array()?;
        let sort = parameters.iter().find(|one| one["name"] == "sort")?;
        let pattern = sort["schema"]["pattern"].as_str().unwrap();
        let fields = pattern.strip_prefix("^-?(").unwrap();
        let fields = fields.strip_suffix(")$").unwrap().split('|');
        Some(SortedList {
            path: path.trim_start_matches("/api/v1").to_owned(),
            fields: fields.map(str::to_owned).collect(),
        })
    });
    lists.collect()
}

/// Returns the value by which an item is sorted; absent values come last or first.
fn sort_key(item: &Value, field: &str, is_place: bool) -> (i64, String) {
    let value = &item[field];
    if is_place {
        return (0, id(item));
    }
    if let Some(number) = value.as_i64() {
        return (number, String::new());
    }
    let Some(text) = value.as_str() else {
        let is_last = field == "expires_at";
        return (if is_last { i64::MAX } else { 0 }, String::new());
    };
    if field == "at" || field.contains("_a") {
        let time: Timestamp = text.parse().unwrap();
        return (time.as_millisecond(), String::new());
    }
    (0, text.to_owned())
}

fn id(item: &Value) -> String {
    let id = item.get("id").unwrap_or(&item["user"]);
    id.as_str().unwrap().to_owned()
}

async fn made(world: &World, by: &Credential, path: &str, body: Value) -> Answer {
    world.change_address();
    let answer = world.post(path, by, body).await;
    let is_made = [StatusCode::CREATED, StatusCode::ACCEPTED].contains(&answer.status);
    assert!(is_made, "{path}: {} {}", answer.status, answer.text);
    answer
}

/// Puts items into the lists of an organization and a project but that of drifts, with equal and absent values.
async fn fill(world: &World, by: &Credential) {
    let names = ["b", "B", "ä", "a", "Ä"];
    for name in names {
        let named = |path: &str| {
            let mut body = sample(path);
            body["name"] = json!(name);
            body
        };
        let projects = "/orgs/{org}/projects";
        made(world, by, projects, named(projects)).await;
        let upstream = made(world, by, UPSTREAMS, named(UPSTREAMS)).await;
        let certificates = "/projects/{project}/certificates";
        made(world, by, certificates, named(certificates)).await;
        let managed = "/projects/{project}/managed-certificates";
        let mut body = named(managed);
        body["name"] = json!(format!("{name}!"));
        made(world, by, managed, body).await;
        let webhooks = "/projects/{project}/webhooks";
        made(world, by, webhooks, named(webhooks)).await;
        let ends = ["b", "ä"].contains(&name);
        let end = ends.then_some("2089-01-01T00:00:00Z");
        made(
            world,
            by,
            "/api-keys",
            json!({"name": name, "expires_at": end}),
        )
        .await;
        let soon = world.app.now() + SignedDuration::from_hours(if ends { 2 } else { 3 });
        let body = json!({"name": name, "expires_at": soon.to_string()});
        made(world, by, TOKENS, body).await;
        let priority = if ends { 7 } else { 50 };
        let host = format!("{}.example.com", u32::from(name.chars().next().unwrap()));
        let body = json!({
            "name": name, "priority": priority, "host": host, "upstream": upstream.text("id"),
        });
        made(world, by, SERVICES, body).await;
        fill_people_and_nodes(world, by, ends).await;
    }
}

/// Puts a member, a removed one, an invitation, a signing key, a node and an event into their lists.
async fn fill_people_and_nodes(world: &World, by: &Credential, is_seen: bool) {
    let user = world.member(Role::Reader).await;
    let role = format!("/projects/{{project}}/roles/{user}");
    let given = json!({"role": "operator"});
    world.change_address();
    let given = world.send(&Method::PUT, &role, by, &given, &[]).await;
    assert_eq!(given.status, StatusCode::OK, "{}", given.text);
    world.invitation(SignedDuration::from_hours(1)).await;
    let gone = world.member(Role::Reader).await;
    world.remove_member(gone).await;
    world.standby_key().await;
    let (node, key) = world.new_node(world.tenant()).await;
    if is_seen {
        let beat = json!({"health": {"cpu_percent": 1.0}, "version": "1.2.3"});
        let beat = world
            .post(&format!("/nodes/{node}/heartbeat"), &key, beat)
            .await;
        assert_eq!(beat.status, StatusCode::OK, "{}", beat.text);
    }
    let events = sample("/nodes/{node}/events");
    let reported = world
        .post("/nodes/{node}/events", &world.node_key, events)
        .await;
    assert_eq!(reported.status, StatusCode::NO_CONTENT, "{}", reported.text);
}

/// Puts items into lists under a rollout and a webhook; gives the places of both in paths.
async fn fill_inner(world: &World, by: &Credential) -> [(&'static str, String); 2] {
    let bundles = "/projects/{project}/bundles";
    let mut bundle = String::new();
    for _ in 0..3 {
        bundle = made(world, by, bundles, sample(bundles)).await.text("id");
    }
    let rollouts = "/projects/{project}/rollouts";
    let mut rollout = String::new();
    for _ in 0..3 {
        let planned = made(world, by, rollouts, json!({"bundle": bundle})).await;
        rollout = planned.text("id");
    }
    let webhooks = world.get("/projects/{project}/webhooks", by).await;
    let webhook = webhooks.body["items"][0]["id"].as_str().unwrap().to_owned();
    for _ in 0..3 {
        let test = format!("/projects/{{project}}/webhooks/{webhook}/test");
        made(world, by, &test, Value::Null).await;
    }
    [("{rollout}", rollout), ("{webhook}", webhook)]
}

#[tokio::test]
async fn pages_follow_each_other_in_every_order_of_every_list() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let owner = world.instance_admin().await;
        for name in ["b", "a", "ä"] {
            made(&world, &owner, "/orgs", json!({"name": name})).await;
        }
        fill(&world, &admin).await;
        let places = fill_inner(&world, &admin).await;
        let lists = sorted_lists(&world).await;
        assert_eq!(lists.len(), 21, "{lists:?}");
        for SortedList { path, fields } in lists {
            let fill = |path: String, (name, id): &(&str, String)| path.replace(name, id);
            let path = places.iter().fold(path, fill);
            // Each key has a bucket of its own for requests.
            let key = world.full_key().await;
            let by = if path == "/orgs" { &owner } else { &key };
            let all = world.get(&format!("{path}?limit=200"), by).await;
            assert_eq!(all.status, StatusCode::OK, "{path}: {}", all.text);
            let mut all = all.body["items"].as_array().unwrap().clone();
            let is_filled = 2 < all.len() || path.ends_with("/drift");
            assert!(is_filled, "{path}: {all:?}");
            for field in fields {
                let is_place = PLACES.contains(&field.as_str())
                    && !(field == "created_at" && all.iter().any(|item| item["user"].is_string()));
                all.sort_by_key(|item| (sort_key(item, &field, is_place), id(item)));
                check_order(&world, by, &format!("{path}?sort={field}"), &all).await;
                all.reverse();
                check_order(&world, by, &format!("{path}?sort=-{field}"), &all).await;
            }
        }
    }
}

async fn check_order(world: &World, by: &Credential, list: &str, expected: &[Value]) {
    let found = walk(world, by, list).await;
    assert_eq!(found, expected, "{list}");
}

/// Returns the items of all pages, with two items per page.
async fn walk(world: &World, by: &Credential, list: &str) -> Vec<Value> {
    let mut items = Vec::new();
    let mut cursor = String::new();
    loop {
        world.change_address();
        let answer = world.get(&format!("{list}&limit=2{cursor}"), by).await;
        assert_eq!(answer.status, StatusCode::OK, "{list}: {}", answer.text);
        items.extend(answer.body["items"].as_array().unwrap().iter().cloned());
        let Some(next) = answer.body["next_cursor"].as_str() else {
            return items;
        };
        cursor = format!("&cursor={next}");
        assert!(items.len() < 1_000, "{list} has no end");
    }
}

/// Returns the names on all pages, with two items per page. `between` runs after the first page.
async fn names(world: &World, by: &Credential, list: &str, between: impl AsyncFn()) -> Vec<String> {
    let mut names = Vec::new();
    let mut cursor = String::new();
    loop {
        let answer = world.get(&format!("{list}limit=2{cursor}"), by).await;
        assert_eq!(answer.status, StatusCode::OK, "{list}: {}", answer.text);
        let items = answer.body["items"].as_array().unwrap();
        names.extend(
            items
                .iter()
                .map(|item| item["name"].as_str().unwrap().to_owned()),
        );
        let Some(next) = answer.body["next_cursor"].as_str() else {
            return names;
        };
        if cursor.is_empty() {
            between().await;
        }
        cursor = format!("&cursor={next}");
    }
}

#[tokio::test]
async fn a_list_has_the_order_of_the_field_that_is_asked_for() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let upstream = world.post(UPSTREAMS, &admin, sample(UPSTREAMS)).await;
        for (name, priority) in [("c", 5), ("a", 5), ("e", 1), ("b", 9), ("d", 5)] {
            let body = json!({
                "name": name, "priority": priority, "upstream": upstream.text("id"),
                "host": format!("{name}.example.com"),
            });
            let made = world.post(SERVICES, &admin, body).await;
            assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
        }
        let none = async || {};
        for (query, expected) in [
            ("", "caebd"),
            ("sort=created_at&", "caebd"),
            ("sort=-created_at&", "dbeac"),
            ("sort=name&", "abcde"),
            ("sort=-name&", "edcba"),
            ("sort=priority&", "ecadb"),
            ("sort=-priority&", "bdace"),
        ] {
            let list = format!("{SERVICES}?{query}");
            let found = names(&world, &admin, &list, none).await;
            assert_eq!(found.concat(), expected, "{query}");
        }
    }
}

#[tokio::test]
async fn a_page_follows_an_item_that_was_deleted_or_renamed() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let mut second = String::new();
        for name in ["a", "b", "c", "d"] {
            let mut body = sample(UPSTREAMS);
            body["name"] = json!(name);
            let made = world.post(UPSTREAMS, &admin, body).await;
            if name == "b" {
                second = format!("{UPSTREAMS}/{}", made.text("id"));
            }
        }
        let list = format!("{UPSTREAMS}?sort=name&");
        let rename = async || {
            let mut body = sample(UPSTREAMS);
            body["name"] = json!("z");
            let done = world.send(&Method::PUT, &second, &admin, &body, &[]).await;
            assert_eq!(done.status, StatusCode::OK);
        };
        let found = names(&world, &admin, &list, rename).await;
        assert_eq!(found.concat(), "abcdz");
        let delete = async || {
            let done = world
                .send(&Method::DELETE, &second, &admin, &Value::Null, &[])
                .await;
            assert_eq!(done.status, StatusCode::NO_CONTENT);
        };
        let backwards = format!("{UPSTREAMS}?sort=-name&");
        let found = names(&world, &admin, &backwards, delete).await;
        assert_eq!(found.concat(), "zdca");
    }
}

#[tokio::test]
async fn an_item_without_an_end_is_the_last_to_end() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        for (name, end) in [
            ("never", Value::Null),
            ("late", json!("2090-01-01T00:00:00Z")),
            ("early", json!("2089-01-01T00:00:00Z")),
        ] {
            let body = json!({"name": name, "expires_at": end});
            let made = world.post("/api-keys", &admin, body).await;
            assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
        }
        let none = async || {};
        let found = names(&world, &admin, "/api-keys?sort=expires_at&", none).await;
        assert_eq!(found, ["early", "late", "never"]);
        let found = names(&world, &admin, "/api-keys?name=l*&", none).await;
        assert_eq!(found, ["late"]);
    }
}

#[tokio::test]
async fn an_order_or_a_cursor_of_another_list_is_refused() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        for name in ["a", "b", "c"] {
            let made = world.post(TOKENS, &admin, json!({"name": name})).await;
            assert_eq!(made.status, StatusCode::CREATED, "{}", made.text);
        }
        let first = world
            .get(&format!("{TOKENS}?sort=name&limit=1"), &admin)
            .await;
        let cursor = first.text("next_cursor");
        for query in [
            "sort=priority",
            "sort=-",
            "sort=",
            "sort=%20name",
            "sort=--name",
        ] {
            let answer = world.get(&format!("{TOKENS}?{query}"), &admin).await;
            let place = format!("{query}: {}", answer.text);
            assert_eq!(answer.status, StatusCode::UNPROCESSABLE_ENTITY, "{place}");
            let detail = &answer.body["error"]["details"][0];
            assert_eq!(detail["field"], "sort", "{place}");
            let reason = detail["reason"].as_str().unwrap();
            for name in ["`created_at`", "`-name`", "`expires_at`"] {
                assert!(reason.contains(name), "{place}");
            }
        }
        for query in [
            format!("sort=-name&cursor={cursor}"),
            format!("cursor={cursor}"),
            "sort=name&cursor=AAAA".to_owned(),
            "cursor=AAAA".to_owned(),
        ] {
            let answer = world.get(&format!("{TOKENS}?{query}"), &admin).await;
            let place = format!("{query}: {}", answer.text);
            assert_eq!(answer.status, StatusCode::BAD_REQUEST, "{place}");
        }
        let both = format!("{SERVICES}?sort=name&order=newest");
        let both = world.get(&both, &admin).await;
        let expected = StatusCode::UNPROCESSABLE_ENTITY;
        assert_eq!(both.status, expected, "{}", both.text);
    }
}

#[tokio::test]
async fn people_are_found_by_their_addresses() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        for email in ["ann@example.com", "bob@example.com", "anna@example.com"] {
            let body = json!({"email": email, "role": "reader"});
            made(&world, &admin, "/orgs/{org}/invitations", body).await;
        }
        for (filter, count) in [
            ("ann*", 2),
            ("ANN*", 2),
            ("ann@example.com", 1),
            ("Ann@Example.COM", 1),
            ("an", 0),
        ] {
            let path = format!("/orgs/{{org}}/invitations?email={filter}");
            let found = world.get(&path, &admin).await;
            let items = found.body["items"].as_array().unwrap();
            assert_eq!(items.len(), count, "{filter}");
        }
        let removed = world.member(Role::Reader).await;
        world.remove_member(removed).await;
        for list in ["/orgs/{org}/members", "/orgs/{org}/removed-members"] {
            let people = world.get(list, &admin).await;
            let email = people.body["items"][0]["email"].as_str().unwrap();
            for email in [email.to_owned(), email.to_uppercase()] {
                let found = world.get(&format!("{list}?email={email}"), &admin).await;
                let count = found.body["items"].as_array().map(Vec::len);
                assert_eq!(count, Some(1), "{list} {email}");
            }
        }
    }
}

/// Returns the IDs of the items of a list, sorted.
async fn ids(world: &World, by: &Credential, list: &str) -> Vec<String> {
    world.change_address();
    let found = world.get(list, by).await;
    assert_eq!(found.status, StatusCode::OK, "{list}: {}", found.text);
    let items = found.body["items"].as_array().unwrap();
    let mut ids: Vec<String> = items.iter().map(id).collect();
    ids.sort_unstable();
    ids
}

#[tokio::test]
async fn nodes_are_found_by_their_version_and_their_active_bundle() {
    let [one, two, none] = [1, 2, 3].map(|number| BundleId(Uuid::from_u128(number)));
    for world in worlds().await {
        let full = world.full_key().await;
        let mut nodes = Vec::new();
        for (tenant, version, bundle) in [
            (world.tenant(), "1.2.3", one),
            (world.tenant(), "1.2.4", two),
            (world.tenant(), "1.3.0", one),
            (world.other, "1.2.3", one),
        ] {
            let (node, key) = world.new_node(tenant).await;
            let beat = json!({
                "health": {"cpu_percent": 1.0}, "version": version, "status": {"active": bundle},
            });
            let path = format!("/nodes/{node}/heartbeat");
            let beat = world.post(&path, &key, beat).await;
            assert_eq!(beat.status, StatusCode::OK, "{}", beat.text);
            nodes.push(node.to_string());
        }
        for (filter, places) in [
            ("version=1.2.3".to_owned(), vec![0]),
            ("version=1.2.*".to_owned(), vec![0, 1]),
            ("version=1.2".to_owned(), Vec::new()),
            (format!("bundle={one}"), vec![0, 2]),
            (format!("bundle={two}"), vec![1]),
            (format!("bundle={none}"), Vec::new()),
            (format!("bundle={one}&version=1.3.0"), vec![2]),
        ] {
            let list = format!("/projects/{{project}}/nodes?{filter}");
            let mut expected: Vec<String> = places
                .iter()
                .map(|place: &usize| nodes[*place].clone())
                .collect();
            expected.sort_unstable();
            assert_eq!(ids(&world, &full, &list).await, expected, "{filter}");
        }
    }
}

/// Puts a drift of a node into the list; returns its ID.
async fn drift(world: &World, node: NodeId, state: DriftState) -> String {
    let drift = Drift {
        id: DriftId(Uuid::now_v7()),
        tenant: world.tenant(),
        node,
        state,
        desired: BundleId(Uuid::from_u128(1)),
        active: None,
        opened_at: world.app.now(),
        resolved_at: None,
        resolution: None,
    };
    let mut tx = world.store.begin().await.unwrap();
    tx.insert_drift(&drift).await.unwrap();
    tx.commit().await.unwrap();
    drift.id.to_string()
}

#[tokio::test]
async fn drifts_are_found_by_their_node() {
    for world in worlds().await {
        let full = world.full_key().await;
        let (other, _) = world.new_node(world.tenant()).await;
        let (quiet, _) = world.new_node(world.tenant()).await;
        let resolved = drift(&world, world.node, DriftState::Resolved).await;
        let open = drift(&world, world.node, DriftState::Open).await;
        let of_other = drift(&world, other, DriftState::Open).await;
        for (filter, mut expected) in [
            (format!("node={}", world.node), vec![&resolved, &open]),
            (format!("node={}&state=open", world.node), vec![&open]),
            (format!("node={other}"), vec![&of_other]),
            (format!("node={quiet}"), Vec::new()),
        ] {
            expected.sort_unstable();
            let list = format!("/projects/{{project}}/drift?{filter}");
            let found = ids(&world, &full, &list).await;
            let found: Vec<&String> = found.iter().collect();
            assert_eq!(found, expected, "{filter}");
        }
    }
}

#[tokio::test]
async fn rollouts_are_found_by_their_bundle() {
    let (bundles, rollouts) = (
        "/projects/{project}/bundles",
        "/projects/{project}/rollouts",
    );
    for world in worlds().await {
        let full = world.full_key().await;
        let new_bundle = async || {
            let made = made(&world, &full, bundles, sample(bundles)).await;
            made.text("id")
        };
        let (one, two, none) = (new_bundle().await, new_bundle().await, new_bundle().await);
        for (bundle, count) in [(&one, 2), (&two, 1), (&none, 0)] {
            let mut expected = Vec::new();
            for _ in 0..count {
                let planned = made(&world, &full, rollouts, json!({"bundle": bundle})).await;
                expected.push(planned.text("id"));
            }
            expected.sort_unstable();
            let list = format!("{rollouts}?bundle={bundle}");
            assert_eq!(ids(&world, &full, &list).await, expected);
        }
        let all = ids(&world, &full, rollouts).await;
        assert_eq!(all.len(), 3, "{all:?}");
    }
}
