//! The audit log, as administrators read it.

use crate::world::{Credential, World, sample, worlds};
use axum::http::{Method, StatusCode};
use control_domain::{Role, Tenant};
use control_store::AuditEntry;
use jiff::SignedDuration;
use serde_json::{Value, json};
use sqlx::{AnyConnection, Connection, Row};
use uuid::Uuid;

const AUDIT: &str = "/orgs/{org}/audit";

async fn write(world: &World, tenant: Tenant, action: &str, seconds: i64) {
    let mut tx = world.store.begin().await.unwrap();
    let entry = AuditEntry {
        at: jiff::Timestamp::from_second(seconds).unwrap(),
        actor_kind: "system",
        actor: Uuid::nil(),
        actor_name: "controld",
        client_ip: None,
        tenant: Some(tenant),
        action,
        subject: Uuid::nil(),
        correlation_id: "",
    };
    let key = world.app.audit_key(&mut tx).await.unwrap();
    tx.append_audit(&entry, &key).await.unwrap();
    tx.commit().await.unwrap();
}

fn actions(body: &Value) -> Vec<&str> {
    let items = body["items"].as_array().unwrap().iter();
    items.map(|item| item["action"].as_str().unwrap()).collect()
}

/// Returns the entries with an action that belong to no organization, which the interface does not
/// show.
async fn installation_entries(world: &World, action: &str) -> Vec<Value> {
    let select = "SELECT actor_kind, actor_id, actor_name, client_ip, subject_id FROM audit
                  WHERE org_id IS NULL AND action = $1 ORDER BY seq";
    let mut connection = AnyConnection::connect(&world.database.url).await.unwrap();
    let rows = sqlx::query(select).bind(action.to_owned());
    let rows = rows.fetch_all(&mut connection).await.unwrap();
    let entries = rows.iter().map(|row| {
        json!({
            "actor_kind": row.get::<String, _>("actor_kind"),
            "actor": row.get::<String, _>("actor_id"),
            "actor_name": row.get::<String, _>("actor_name"),
            "client_ip": row.get::<Option<String>, _>("client_ip"),
            "subject": row.get::<String, _>("subject_id"),
        })
    });
    entries.collect()
}

/// Returns true if the entry has an address of [`World`]'s client.
fn has_address(entry: &Value) -> bool {
    let address = entry["client_ip"].as_str();
    address.is_some_and(|address| address.starts_with("10."))
}

#[tokio::test]
async fn the_log_is_read_newest_first_page_by_page() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        for (index, action) in ["a.a", "b.b", "c.c"].into_iter().enumerate() {
            let second = i64::try_from(index).unwrap();
            write(&world, world.tenant(), action, second).await;
            write(&world, world.other, "x.x", second).await;
        }
        let page = world.get(&format!("{AUDIT}?limit=2"), &admin).await;
        assert_eq!(actions(&page.body), ["c.c", "b.b"]);
        let next = page.body["next_cursor"].as_i64().unwrap();
        let page = world
            .get(&format!("{AUDIT}?limit=2&cursor={next}"), &admin)
            .await;
        assert_eq!(actions(&page.body), ["a.a"]);
        assert_eq!(page.body["next_cursor"], Value::Null);
    }
}

#[tokio::test]
async fn a_filter_admits_only_matching_entries() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let projects = "/orgs/{org}/projects";
        let made = world.post(projects, &admin, sample(projects)).await;
        let subject = made.text("id");
        let me = world.get("/users/me", &admin).await.text("id");
        write(&world, world.tenant(), "project.renamed", 100).await;
        write(&world, Tenant::org(world.org), "member.added", 200).await;
        let project = world.project;
        for (query, expected) in [
            (format!("subject={subject}"), &["project.created"][..]),
            (format!("actor={me}"), &["project.created"]),
            (
                "action=project.".to_owned(),
                &["project.renamed", "project.created"],
            ),
            ("action=project.renamed".to_owned(), &["project.renamed"]),
            ("action=project".to_owned(), &[]),
            (format!("project={project}"), &["project.renamed"]),
            (
                "until=1970-01-01T00:02:00Z".to_owned(),
                &["project.renamed"],
            ),
            (
                "since=1970-01-01T00:02:00Z&until=1970-01-01T00:04:00Z".to_owned(),
                &["member.added"],
            ),
        ] {
            let page = world.get(&format!("{AUDIT}?{query}"), &admin).await;
            assert_eq!(page.status, StatusCode::OK, "{query}: {}", page.body);
            assert_eq!(actions(&page.body), expected, "{query}");
        }
        for query in [
            "action=%25",
            "action=",
            "actor=x",
            "since=x",
            "limit=0",
            "order=up",
        ] {
            let page = world.get(&format!("{AUDIT}?{query}"), &admin).await;
            assert_eq!(page.status, StatusCode::BAD_REQUEST, "{query}");
        }
    }
}

#[tokio::test]
async fn an_export_has_every_entry_of_its_organization_in_order() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let mut tx = world.store.begin().await.unwrap();
        for number in 0..1_203_u32 {
            let tenant = if number % 3 == 0 {
                world.other
            } else {
                world.tenant()
            };
            let action = format!("test.{number}");
            let entry = AuditEntry {
                at: world.app.now(),
                actor_kind: "system",
                actor: Uuid::nil(),
                actor_name: "controld",
                client_ip: None,
                tenant: Some(tenant),
                action: &action,
                subject: Uuid::nil(),
                correlation_id: "",
            };
            let key = world.app.audit_key(&mut tx).await.unwrap();
            tx.append_audit(&entry, &key).await.unwrap();
        }
        tx.commit().await.unwrap();
        let answer = world.get(&format!("{AUDIT}/export"), &admin).await;
        assert_eq!(answer.header("content-type"), "application/x-ndjson");
        let lines: Vec<Value> = answer
            .text
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        let found: Vec<&str> = lines
            .iter()
            .map(|line| line["action"].as_str().unwrap())
            .collect();
        let expected: Vec<String> = (0..1_203)
            .filter(|number| number % 3 != 0)
            .map(|number| format!("test.{number}"))
            .collect();
        assert_eq!(found, expected);
        assert_eq!(lines[0]["hash"].as_str().unwrap().len(), 43);
    }
}

#[tokio::test]
async fn a_page_of_a_filter_that_nothing_passes_continues() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let mut tx = world.store.begin().await.unwrap();
        for _ in 0..5_001 {
            let entry = AuditEntry {
                at: world.app.now(),
                actor_kind: "system",
                actor: Uuid::nil(),
                actor_name: "controld",
                client_ip: None,
                tenant: Some(world.tenant()),
                action: "test.done",
                subject: Uuid::nil(),
                correlation_id: "",
            };
            let key = world.app.audit_key(&mut tx).await.unwrap();
            tx.append_audit(&entry, &key).await.unwrap();
        }
        tx.commit().await.unwrap();
        let page = world.get(&format!("{AUDIT}?action=no.such"), &admin).await;
        assert_eq!(page.body["items"], json!([]));
        let next = page.body["next_cursor"].as_i64().unwrap();
        let page = world
            .get(&format!("{AUDIT}?action=no.such&cursor={next}"), &admin)
            .await;
        assert_eq!(page.body["next_cursor"], Value::Null);
        let exported = world
            .get(&format!("{AUDIT}/export?action=no.such"), &admin)
            .await;
        assert_eq!(
            (exported.status, exported.text.as_str()),
            (StatusCode::OK, "")
        );
    }
}

#[tokio::test]
async fn a_key_of_a_project_does_not_read_the_log() {
    for world in worlds().await {
        let key = world.key(world.tenant(), &[]);
        let key: Credential = world.store_key(&key).await;
        let answer = world.get(AUDIT, &key).await;
        assert_eq!(answer.status, StatusCode::FORBIDDEN);
    }
}

#[tokio::test]
async fn an_entry_has_actor_change_and_address() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let me = world.get("/users/me", &admin).await;
        let renamed = json!({"name": "other"});
        let patch = Method::PATCH;
        let done = world.send(&patch, "/projects/{project}", &admin, &renamed, &[]);
        assert_eq!(done.await.status, StatusCode::OK);
        let page = world.get(&format!("{AUDIT}?limit=1"), &admin).await;
        let entry = &page.body["items"][0];
        assert_eq!(entry["before"]["name"], "edge", "{entry}");
        assert_eq!(entry["after"]["name"], "other", "{entry}");
        let name = format!("Ann <{}>", me.text("email"));
        assert_eq!(entry["actor_name"], name, "{entry}");
        assert!(
            entry["client_ip"].as_str().unwrap().starts_with("10."),
            "{entry}"
        );
    }
}

#[tokio::test]
async fn the_numbers_of_an_organization_reveal_nothing_of_the_rest() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        for round in 0..3 {
            write(&world, world.other, "test.other", round).await;
            write(&world, world.tenant(), "test.own", round).await;
        }
        let page = world.get(&format!("{AUDIT}?limit=2"), &admin).await;
        let numbers: Vec<i64> = page.body["items"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["seq"].as_i64().unwrap())
            .collect();
        assert_eq!(numbers, [3, 2]);
        assert_eq!(page.body["next_cursor"], 2);
    }
}

#[tokio::test]
async fn the_use_of_an_ended_key_is_in_the_log_once_an_hour() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let mut key = world.key(Tenant::org(world.org), &[]);
        key.revoked_at = Some(world.app.now());
        let revoked = world.store_key(&key).await;
        for _ in 0..3 {
            let refused = world.get("/users/me", &revoked).await;
            assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
        }
        let page = world
            .get(&format!("{AUDIT}?action=credential.refused"), &admin)
            .await;
        let entries = page.body["items"].as_array().unwrap();
        assert_eq!(entries.len(), 1, "{}", page.body);
        assert_eq!(entries[0]["actor"], key.id.to_string());
        assert_eq!(entries[0]["actor_name"], "deploy");
    }
}

#[tokio::test]
async fn the_use_of_an_ended_token_link_or_invitation_is_in_the_log_once_an_hour() {
    for world in worlds().await {
        let admin = world.user(world.org, Role::Admin).await;
        let mut token = world.enrolment_token(world.tenant());
        token.revoked_at = Some(world.app.now());
        let revoked = world.store_enrolment_token(&token).await;
        let (invitation, expired) = world.invitation(SignedDuration::from_hours(8 * 24)).await;
        let old_link = world.setup_link(SignedDuration::from_hours(25)).await;
        for credential in [&revoked, &expired, &old_link] {
            for _ in 0..3 {
                let refused = world.get("/users/me", credential).await;
                assert_eq!(refused.status, StatusCode::UNAUTHORIZED);
            }
        }
        let page = world
            .get(&format!("{AUDIT}?action=credential.refused"), &admin)
            .await;
        let entries = page.body["items"].as_array().unwrap();
        let found: Vec<Value> = entries
            .iter()
            .map(|entry| json!([entry["actor_kind"], entry["actor"], entry["actor_name"]]))
            .collect();
        let expected = [
            json!([
                "invitation",
                invitation,
                format!("{invitation}@example.com")
            ]),
            json!(["enrolment_token", token.id, "rack 1"]),
        ];
        assert_eq!(found, expected, "{}", page.body);
        assert!(entries.iter().all(has_address), "{}", page.body);
        assert_eq!(entries[1]["project"], json!(world.project));

        let refused = installation_entries(&world, "credential.refused").await;
        assert_eq!(refused.len(), 1, "{refused:?}");
        assert_eq!(refused[0]["actor_kind"], "setup_link");
        assert_eq!(refused[0]["actor_name"], "set-up link");
        assert!(has_address(&refused[0]), "{refused:?}");
    }
}

#[tokio::test]
async fn the_set_up_is_in_the_log_with_its_link_and_its_address() {
    for world in worlds().await {
        let link = world.app.bootstrap(world.app.now()).await.unwrap();
        let link = Credential::Bearer(link.unwrap().reveal().to_owned());
        let issued = installation_entries(&world, "setup_link.created").await;
        assert_eq!(issued.len(), 1, "{issued:?}");
        assert_eq!(issued[0]["actor_kind"], "system");

        let mut body = sample("/setup");
        body["project_name"] = json!("edge");
        body["api_key_name"] = json!("first");
        let made = world.post("/setup", &link, body).await;
        assert_eq!(made.status, StatusCode::CREATED, "{}", made.body);
        let key = &made.body["api_key"];
        let by_key = Credential::Bearer(key["secret"].as_str().unwrap().to_owned());
        let org = &made.body["org"]["id"];
        let log = format!("/orgs/{}/audit", org.as_str().unwrap());
        let log = world.get(&log, &by_key).await;
        assert_eq!(log.status, StatusCode::OK, "{}", log.body);
        let entries = log.body["items"].as_array().unwrap();
        for (action, subject) in [
            ("org.created", org),
            ("project.created", &made.body["project"]["id"]),
            ("api_key.created", &key["id"]),
            ("admin.created", &made.body["user_id"]),
        ] {
            let entry = entries.iter().find(|entry| entry["action"] == action);
            let entry = entry.unwrap_or_else(|| panic!("{action}: {}", log.body));
            assert_eq!(&entry["subject"], subject, "{entry}");
            assert_eq!(entry["actor_name"], "set-up link", "{entry}");
            assert_eq!(entry["actor"], issued[0]["subject"], "{entry}");
            assert!(has_address(entry), "{entry}");
        }
    }
}
