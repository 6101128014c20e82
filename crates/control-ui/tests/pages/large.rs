//! A project of 2 000 nodes, 500 bundles and a long audit log: pages stay small, and what they cost is measured.

use crate::fleet::Fleet;
use crate::headers::shown_pages;
use crate::world::World;
use axum::http::StatusCode;
use control_auth::AuditKey;
use control_domain::{Bundle, BundleState, Labels, Name, Node, Tenant};
use control_http::SessionCookie;
use control_store::AuditEntry;
use control_testkit::Database;
use control_wire::{BundleId, Health, HeartbeatRequest, NodeId, NodeStatus, Verdict};
use jiff::SignedDuration;
use uuid::Uuid;

const NODES: u32 = 2_000;
const BUNDLES: u32 = 500;
/// 14 entries a day, for a year.
const AUDIT_ENTRIES: i64 = 5_000;

const MAX_BYTES: usize = 100_000;
/// For a page of an unoptimised build on a machine that does other work; a scan of every row for each line of a list
/// takes longer.
const MAX_TIME: SignedDuration = SignedDuration::from_secs(2);

#[tokio::test(flavor = "multi_thread")]
async fn pages_of_a_large_project_are_small_and_come_in_time() {
    let world = World::new(Database::sqlite(), SessionCookie::Tls).await;
    let fleet = Fleet::new(&world).await;
    let tenant = Tenant::project(world.org, world.project);
    add_nodes(&world, tenant, fleet.spring).await;
    add_bundles(&world, tenant).await;
    add_audit_entries(&world, tenant).await;
    let mut wrong = Vec::new();
    for path in shown_pages(&fleet) {
        // The best of three: other work of the machine slows single ones.
        let mut best = SignedDuration::MAX;
        for _ in 0..3 {
            let before = world.app.now();
            let shown = world.get(&path, &world.admin).await;
            best = best.min(world.app.now().duration_since(before));
            assert!(
                [StatusCode::OK, StatusCode::SEE_OTHER].contains(&shown.status),
                "{path}: {}",
                shown.status
            );
            if MAX_BYTES <= shown.text.len() {
                wrong.push(format!("{path}: {} bytes", shown.text.len()));
            }
        }
        println!("{:>6} ms {}", best.as_millis(), generic(&path));
        if MAX_TIME <= best {
            wrong.push(format!("{path}: {} ms", best.as_millis()));
        }
    }
    assert_eq!(wrong, [""; 0]);
}

/// The path without its identifiers.
fn generic(path: &str) -> String {
    let parts = path.split('/');
    let parts = parts.map(|part| if 36 <= part.len() { "…" } else { part });
    parts.collect::<Vec<_>>().join("/")
}

async fn add_nodes(world: &World, tenant: Tenant, bundle: BundleId) {
    let now = world.app.now();
    let said = HeartbeatRequest {
        health: Health { cpu_percent: 12.0 },
        version: Some("0.1.0".to_owned()),
        status: Some(NodeStatus {
            desired: Some(bundle),
            staged: None,
            active: Some(bundle),
            last_good: Some(bundle),
            order: Some(1),
            verdict: Some(Verdict::Accepted),
            diagnostics: Vec::new(),
            altered: false,
        }),
        traffic: None,
        instance: None,
    };
    let mut tx = world.store.begin().await.unwrap();
    for number in 0..NODES {
        let region = ["fra", "dub", "iad", "sin"][number as usize % 4];
        let labels = [("region".to_owned(), region.to_owned())];
        let node = Node {
            id: NodeId(Uuid::now_v7()),
            tenant,
            name: Name::stored(format!("{region}-{number:04}.edge.example.com")),
            labels: Labels::parse(labels.into()).unwrap(),
            requested_labels: None,
            created_at: now,
            rotating: false,
            report: None,
            order: None,
        };
        tx.insert_node(&node, &node.id.to_string()).await.unwrap();
        tx.write_heartbeat(node.id, &said, now).await.unwrap();
    }
    tx.commit().await.unwrap();
}

async fn add_bundles(world: &World, tenant: Tenant) {
    let mut tx = world.store.begin().await.unwrap();
    for number in 0..BUNDLES {
        let bundle = Bundle {
            id: BundleId(Uuid::now_v7()),
            tenant,
            name: Name::stored(format!("release 2026.{number}")),
            state: BundleState::Rejected,
            archive: None,
            signature: None,
            diagnostics: "[]".to_owned(),
            warnings: None,
            created_at: world.app.now(),
            revoked_at: None,
        };
        tx.insert_bundle(&bundle).await.unwrap();
    }
    tx.commit().await.unwrap();
}

async fn add_audit_entries(world: &World, tenant: Tenant) {
    let key = AuditKey::new(&[1; 32]);
    let mut tx = world.store.begin().await.unwrap();
    for number in 0..AUDIT_ENTRIES {
        let entry = AuditEntry {
            at: world.app.now() - SignedDuration::from_mins(number * 105),
            actor_kind: "user",
            actor: Uuid::nil(),
            actor_name: "Ann Brandt",
            client_ip: None,
            tenant: Some(tenant),
            action: "node.labelled",
            subject: Uuid::nil(),
            correlation_id: "",
        };
        tx.append_audit(&entry, &key).await.unwrap();
    }
    tx.commit().await.unwrap();
}
