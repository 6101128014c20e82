//! Nodes.

pub(crate) mod drift;
pub(crate) mod enrolment_token;
pub(crate) mod event;
pub(crate) mod heartbeat;
pub(crate) mod key;
pub(crate) mod list;
pub(crate) mod order;
pub(crate) mod traffic;

use crate::error::StoreError;
use crate::row::traffic::optional_traffic;
use crate::row::{
    id, json, number, optional_id, optional_json, optional_text, optional_time, real, text, time,
    versioned,
};
use crate::statement::{Record, sql};
use crate::store::Transaction;
use crate::versioned::Versioned;
use control_domain::{DuplicateNode, Labels, Name, Node, NodeReport, OrderSummary, Tenant};
use control_wire::{NodeId, NodeStatus, Verdict};
use jiff::Timestamp;
use sqlx::Row;
use sqlx::any::AnyRow;

/// Columns of a node with its report and order; `$from` joins `n`, `h` and `o`. `listed` leaves out
/// the large columns, which lists do not show: 200 nodes can have 100 MB of traffic counters.
macro_rules! select_nodes {
    (listed $from:literal) => {
        select_nodes!("CAST(NULL AS TEXT)", "CAST(NULL AS TEXT)", $from)
    };
    ($from:literal) => {
        select_nodes!("h.diagnostics", "h.traffic", $from)
    };
    ($diagnostics:literal, $traffic:literal, $from:literal) => {
        concat!(
            "SELECT n.id AS id, n.org_id AS org_id, n.project_id AS project_id, n.name AS name,
               n.labels AS labels, n.requested_labels AS requested_labels,
               n.next_key_hash AS next_key_hash, n.created_at AS created_at,
               n.version AS version, h.seen_at AS seen_at, h.cpu_percent AS cpu_percent,
               h.software AS software, h.desired_bundle_id AS desired,
               h.staged_bundle_id AS staged, h.active_bundle_id AS active,
               h.last_good_bundle_id AS last_good, h.verdict_order AS verdict_order,
               h.verdict AS verdict, ",
            $diagnostics,
            " AS diagnostics, ",
            $traffic,
            " AS traffic,
               h.duplicated_since AS duplicated_since, h.duplicated_at AS duplicated_at,
               o.counter AS order_counter, o.bundle_id AS order_bundle, o.made_at AS order_made_at
             FROM ",
            $from
        )
    };
}
pub(crate) use select_nodes;

impl Transaction {
    /// Inserts a new node under the hash of its key.
    ///
    /// # Errors
    ///
    /// [`StoreError::Conflict`] if the name is taken in the project.
    pub async fn insert_node(&mut self, node: &Node, key_hash: &str) -> Result<(), StoreError> {
        let Node {
            id,
            tenant: Tenant { org, project },
            name,
            labels,
            requested_labels: _, // By `requested`.
            created_at,
            rotating: _,
            report: _,
            order: _,
        } = node;
        let insert = "INSERT INTO nodes (id, org_id, project_id, name, labels, key_hash,
                      tokens_since, created_at, requested_labels, version)
                      VALUES ($1, $2, $3, $4, $5, $6, 0, $7, $8, 1)";
        sql(insert)
            .bind(*id)
            .bind(*org)
            .bind(*project)
            .bind(name)
            .bind(to_json(labels.pairs())?)
            .bind(key_hash)
            .bind(*created_at)
            .bind(requested(node)?)
            .run(self)
            .await?;
        let insert = "INSERT INTO node_heartbeats (node_id, project_id, seen_at, cpu_percent)
                      VALUES ($1, $2, 0, 0)";
        sql(insert).bind(*id).bind(*project).run(self).await?;
        self.index_labels(node).await
    }

    /// The node, if it exists.
    pub async fn node(&mut self, node: NodeId) -> Result<Option<Versioned<Node>>, StoreError> {
        let by_id = select_nodes!(
            "nodes n JOIN node_heartbeats h ON h.node_id = n.id
             LEFT JOIN node_orders o ON o.node_id = n.id WHERE n.id = $1"
        );
        sql(by_id).bind(node).one(self).await
    }

    /// Updates the labels if `version` is stored; returns the next version.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another version is stored, or none.
    pub async fn update_node(&mut self, node: &Node, version: i64) -> Result<i64, StoreError> {
        let update = "UPDATE nodes SET labels = $1, requested_labels = $2, version = version + 1
                      WHERE id = $3 AND version = $4";
        let update = sql(update)
            .bind(to_json(node.labels.pairs())?)
            .bind(requested(node)?)
            .bind(node.id);
        let version = update.write(self, version).await?;
        let delete = sql("DELETE FROM node_labels WHERE node_id = $1");
        delete.bind(node.id).run(self).await?;
        self.index_labels(node).await?;
        Ok(version)
    }

    /// Deletes the node and all of its rows if `version` is stored.
    ///
    /// # Errors
    ///
    /// [`StoreError::Stale`] if another version is stored, or none.
    pub async fn delete_node(&mut self, node: NodeId, version: i64) -> Result<(), StoreError> {
        let delete = sql("DELETE FROM nodes WHERE id = $1 AND version = $2");
        delete.bind(node).write(self, version).await?;
        Ok(())
    }

    async fn index_labels(&mut self, node: &Node) -> Result<(), StoreError> {
        let insert = "INSERT INTO node_labels (node_id, project_id, name, value)
                      VALUES ($1, $2, $3, $4)";
        for (name, value) in node.labels.pairs() {
            let insert = sql(insert).bind(node.id).bind(node.tenant.project);
            insert
                .bind(name.as_str())
                .bind(value.as_str())
                .run(self)
                .await?;
        }
        Ok(())
    }
}

impl Record for Node {
    fn read(row: &AnyRow) -> Result<Versioned<Self>, StoreError> {
        let node = Self {
            id: id(row, "id")?,
            tenant: Tenant::project(id(row, "org_id")?, id(row, "project_id")?),
            name: Name::stored(text(row, "name")?),
            labels: Labels::stored(json(row, "labels")?),
            requested_labels: optional_json(row, "requested_labels")?.map(Labels::stored),
            created_at: time(row, "created_at")?,
            rotating: optional_text(row, "next_key_hash")?.is_some(),
            report: report(row)?,
            order: order(row)?,
        };
        versioned(node, row)
    }
}

fn requested(node: &Node) -> Result<Option<String>, StoreError> {
    let requested = node.requested_labels.as_ref();
    requested.map(|labels| to_json(labels.pairs())).transpose()
}

fn report(row: &AnyRow) -> Result<Option<NodeReport>, StoreError> {
    let seen_at = time(row, "seen_at")?;
    if seen_at == Timestamp::UNIX_EPOCH {
        return Ok(None);
    }
    let order: Option<i64> = row.try_get("verdict_order")?;
    let verdict = optional_text(row, "verdict")?;
    Ok(Some(NodeReport {
        seen_at,
        cpu_percent: real(row, "cpu_percent")?,
        version: optional_text(row, "software")?,
        status: NodeStatus {
            desired: optional_id(row, "desired")?,
            staged: optional_id(row, "staged")?,
            active: optional_id(row, "active")?,
            last_good: optional_id(row, "last_good")?,
            order: order.and_then(|order| u64::try_from(order).ok()),
            verdict: verdict.as_deref().map(verdict_of).transpose()?,
            diagnostics: optional_json(row, "diagnostics")?.unwrap_or_default(),
            altered: false, // Shown as a drift.
        },
        traffic: optional_traffic(row, "traffic")?,
        duplicate: duplicate(row)?,
    }))
}

fn duplicate(row: &AnyRow) -> Result<Option<DuplicateNode>, StoreError> {
    let since = optional_time(row, "duplicated_since")?;
    let seen_at = optional_time(row, "duplicated_at")?;
    Ok(since
        .zip(seen_at)
        .map(|(since, seen_at)| DuplicateNode { since, seen_at }))
}

fn order(row: &AnyRow) -> Result<Option<OrderSummary>, StoreError> {
    let (bundle, made_at) = (
        optional_id(row, "order_bundle")?,
        optional_time(row, "order_made_at")?,
    );
    let (Some(bundle), Some(made_at)) = (bundle, made_at) else {
        return Ok(None);
    };
    let counter = number(row, "order_counter")?;
    Ok(Some(OrderSummary {
        counter,
        bundle,
        made_at,
    }))
}

pub(crate) fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Accepted => "accepted",
        Verdict::Rejected => "rejected",
    }
}

pub(crate) fn verdict_of(name: &str) -> Result<Verdict, StoreError> {
    match name {
        "accepted" => Ok(Verdict::Accepted),
        "rejected" => Ok(Verdict::Rejected),
        _ => Err(StoreError::Corrupt("verdict")),
    }
}

pub(crate) fn to_json<T: serde::Serialize>(value: &T) -> Result<String, StoreError> {
    serde_json::to_string(value).map_err(|_| StoreError::Corrupt("JSON"))
}
