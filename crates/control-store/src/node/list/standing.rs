//! Counts of a project's nodes by standing, and search of nodes by a part of the name.

use crate::error::StoreError;
use crate::node::select_nodes;
use crate::row::{number, text};
use crate::statement::{Record, sql};
use crate::store::Transaction;
use crate::versioned::{Page, Versioned};
use control_domain::{Node, NodeStanding};
use control_wire::ProjectId;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// SQL expression for the name of a node's [`NodeStanding`].
macro_rules! standing {
    () => {
        "CASE
           WHEN h.seen_at = 0 THEN 'enrolled'
           WHEN h.seen_at <= $2 THEN 'silent'
           WHEN o.node_id IS NULL THEN 'unordered'
           WHEN h.active_bundle_id = o.bundle_id AND h.is_drifting = 0 THEN 'as_ordered'
           WHEN h.verdict = 'rejected' AND h.verdict_order = o.counter THEN 'refused'
           WHEN h.is_drifting = 1 THEN 'drifted'
           ELSE 'moving' END"
    };
}

/// SQL query for the counts of [`NodeStanding`] by `$group`.
macro_rules! standings {
    ($group:literal, $from:literal) => {
        concat!(
            "SELECT ",
            $group,
            " AS label, COUNT(*) AS nodes, ",
            standing!(),
            " AS standing FROM ",
            $from,
            " LEFT JOIN node_orders o ON o.node_id = h.node_id "
        )
    };
}

/// Number of nodes by standing; standings without nodes are absent.
pub type StandingCounts = BTreeMap<NodeStanding, i64>;

impl Transaction {
    /// Counts the nodes of a project by standing. A node is online if its last heartbeat is later
    /// than `online_since`.
    pub async fn count_standings(
        &mut self,
        project: ProjectId,
        online_since: Timestamp,
    ) -> Result<StandingCounts, StoreError> {
        let counts = concat!(
            standings!("''", "node_heartbeats h"),
            "WHERE h.project_id = $1 GROUP BY standing"
        );
        let rows = sql(counts).bind(project).bind(online_since);
        let rows = rows.rows(self).await?;
        rows.iter()
            .map(|row| Ok((standing(&text(row, "standing")?)?, number(row, "nodes")?)))
            .collect()
    }

    /// Counts nodes by standing for each value of the label `name`, at most 1 000 rows; nodes
    /// without the label are left out.
    pub async fn count_standings_by_label(
        &mut self,
        project: ProjectId,
        online_since: Timestamp,
        name: &str,
    ) -> Result<BTreeMap<String, StandingCounts>, StoreError> {
        let counts = concat!(
            standings!(
                "l.value",
                "node_labels l JOIN node_heartbeats h ON h.node_id = l.node_id"
            ),
            "WHERE l.project_id = $1 AND l.name = $3 GROUP BY l.value, standing
             ORDER BY l.value LIMIT 1000"
        );
        let rows = sql(counts).bind(project).bind(online_since).bind(name);
        let mut counted: BTreeMap<String, StandingCounts> = BTreeMap::new();
        for row in rows.rows(self).await? {
            let counts = counted.entry(text(&row, "label")?).or_default();
            counts.insert(standing(&text(&row, "standing")?)?, number(&row, "nodes")?);
        }
        Ok(counted)
    }

    /// Names of labels of a project's nodes, most frequent first.
    pub async fn label_names(
        &mut self,
        project: ProjectId,
        limit: i64,
    ) -> Result<Vec<String>, StoreError> {
        let names = "SELECT name, COUNT(*) AS nodes FROM node_labels WHERE project_id = $1
                     GROUP BY name ORDER BY nodes DESC, name LIMIT $2";
        let rows = sql(names).bind(project).bind(limit).rows(self).await?;
        rows.iter().map(|row| text(row, "name")).collect()
    }

    /// The nodes of a project with this standing, in the order of their identifiers.
    pub async fn nodes_standing(
        &mut self,
        project: ProjectId,
        online_since: Timestamp,
        standing: NodeStanding,
        page: Page,
    ) -> Result<Vec<Versioned<Node>>, StoreError> {
        let list = concat!(
            select_nodes!(
                "node_heartbeats h JOIN nodes n ON n.id = h.node_id
                 LEFT JOIN node_orders o ON o.node_id = h.node_id
                 WHERE h.project_id = $1 AND "
            ),
            standing!(),
            " = $3 AND h.node_id > $4 ORDER BY h.node_id LIMIT $5"
        );
        let list = sql(list).bind(project).bind(online_since);
        list.bind(standing.name()).page(self, page).await
    }

    /// The nodes with `part` in their name, by name.
    pub async fn nodes_named_like(
        &mut self,
        project: ProjectId,
        part: &str,
        limit: i64,
    ) -> Result<Vec<Versioned<Node>>, StoreError> {
        let list = select_nodes!(
            "nodes n JOIN node_heartbeats h ON h.node_id = n.id
             LEFT JOIN node_orders o ON o.node_id = n.id
             WHERE n.project_id = $1 AND (LOWER(n.name) LIKE $2 ESCAPE '!' OR n.name LIKE $3 ESCAPE '!')
             ORDER BY n.name LIMIT $4"
        );
        // Databases lower ASCII only, or by their own locale.
        let (lowered, typed) = (pattern(&part.to_lowercase()), pattern(part));
        let list = sql(list)
            .bind(project)
            .bind(lowered)
            .bind(typed)
            .bind(limit);
        let rows = list.rows(self).await?;
        rows.iter().map(Node::read).collect()
    }
}

/// Pattern of `LIKE` for texts that contain `part`.
fn pattern(part: &str) -> String {
    let mut pattern = String::from("%");
    for c in part.chars() {
        if matches!(c, '%' | '_' | '!') {
            pattern.push('!');
        }
        pattern.push(c);
    }
    pattern.push('%');
    pattern
}

fn standing(name: &str) -> Result<NodeStanding, StoreError> {
    NodeStanding::from_name(name).ok_or(StoreError::Corrupt("standing"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn special_characters_of_a_pattern_are_escaped() {
        assert_eq!(pattern("Fra_1%!"), "%Fra!_1!%!!%");
    }
}
