//! Nodes that are inserted into the database directly: registration has a rate limit, and is not
//! measured.

use control_auth::Secret;
use control_domain::{Labels, Name, Node, Tenant};
use control_store::Store;
use control_testkit::Database;
use control_wire::NodeId;
use jiff::Timestamp;
use std::path::Path;

/// Number of nodes per transaction.
const NODES_PER_TRANSACTION: usize = 1_000;

/// A node and its key.
#[derive(Clone, Debug)]
pub(crate) struct InsertedNode {
    pub(crate) id: NodeId,
    pub(crate) key: String,
}

/// Inserts `count` nodes into a project.
pub(crate) fn insert(url: &str, tenant: Tenant, count: usize) -> Vec<InsertedNode> {
    let nodes: Vec<InsertedNode> = (0..count)
        .map(|_| {
            let id = NodeId(uuid::Uuid::now_v7());
            let mut random = [7; 32];
            random[..16].copy_from_slice(id.0.as_bytes());
            let key = Secret::new(random).reveal().to_owned();
            InsertedNode { id, key }
        })
        .collect();
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().build().unwrap();
    runtime.block_on(async {
        let store = Store::open(url).await.unwrap();
        for chunk in nodes.chunks(NODES_PER_TRANSACTION) {
            let mut tx = store.begin().await.unwrap();
            for inserted in chunk {
                let node = Node {
                    id: inserted.id,
                    tenant,
                    name: Name::stored(inserted.id.to_string()),
                    requested_labels: None,
                    labels: Labels::default(),
                    created_at: Timestamp::UNIX_EPOCH,
                    rotating: false,
                    report: None,
                    order: None,
                };
                let hash = Secret::presented(&inserted.key).hash();
                tx.insert_node(&node, &hash).await.unwrap();
            }
            tx.commit().await.unwrap();
        }
        store.close().await;
    });
    nodes
}

/// Returns the URL of the database of a program with this data folder.
pub(crate) fn database_url(folder: &Path, database: &Database) -> String {
    match database.kind {
        "postgres" => database.url.clone(),
        _ => format!("sqlite://{}", folder.join("control.db").display()),
    }
}
