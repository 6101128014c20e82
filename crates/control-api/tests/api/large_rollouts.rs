//! A batch with more nodes than one transaction can order.

use crate::fleet::Fleet;
use crate::world::worlds;
use control_wire::{BundleId, Health, HeartbeatRequest, NodeStatus, Verdict};
use serde_json::json;

/// Two transactions of 200 orders, and one more node.
const NODES: usize = 401;

/// Returns the counter and bundle of each node's order.
async fn orders(fleet: &Fleet<'_>) -> Vec<(u64, String)> {
    let mut tx = fleet.world.store.read().await.unwrap();
    let mut orders = Vec::new();
    for node in &fleet.nodes {
        let found = tx.order(node.id).await.unwrap().unwrap();
        orders.push((found.order.counter, found.order.bundle.to_string()));
    }
    orders
}

/// Reports the bundle of the order with this counter for each node.
async fn follow_order(fleet: &Fleet<'_>, order: u64, bundle: &str) {
    let bundle = BundleId(bundle.parse().unwrap());
    let heartbeat = HeartbeatRequest {
        health: Health { cpu_percent: 1.0 },
        version: None,
        status: Some(NodeStatus {
            active: Some(bundle),
            last_good: Some(bundle),
            order: Some(order),
            verdict: Some(Verdict::Accepted),
            ..NodeStatus::default()
        }),
        traffic: None,
        instance: None,
    };
    let mut tx = fleet.world.store.begin().await.unwrap();
    for node in &fleet.nodes {
        let written = tx.write_heartbeat(node.id, &heartbeat, fleet.now()).await;
        assert!(written.unwrap().is_some());
    }
    tx.commit().await.unwrap();
}

#[tokio::test]
async fn a_batch_beyond_one_transaction_is_ordered_wholly_and_brought_back_wholly() {
    for world in worlds().await {
        let fleet = Fleet::new(&world, NODES).await;
        let (old, new) = (fleet.bundle(81).await, fleet.bundle(82).await);
        let settings =
            |soak: i64| json!({"skip_gate": true, "batch_count": NODES, "soak_secs": soak});
        let first = fleet.start(&old, settings(0)).await;
        assert_eq!(fleet.tick(0).await, 3, "200, 200 and 1 orders");
        assert_eq!(orders(&fleet).await, vec![(1, old.clone()); NODES]);
        assert_eq!(fleet.tick(0).await, 0, "no node is ordered twice");
        follow_order(&fleet, 1, &old).await;
        fleet.tick(0).await;
        assert_eq!(fleet.state(&first).await, "completed");

        let second = fleet.start(&new, settings(30)).await;
        fleet.tick(0).await;
        assert_eq!(orders(&fleet).await, vec![(2, new.clone()); NODES]);
        follow_order(&fleet, 2, &new).await;
        assert_eq!(fleet.command(&second, "rollback").await.status, 200);
        assert_eq!(fleet.tick(0).await, 3, "200, 200 and 1 orders back");
        assert_eq!(orders(&fleet).await, vec![(3, old.clone()); NODES]);
        follow_order(&fleet, 3, &old).await;
        fleet.tick(0).await;
        assert_eq!(fleet.state(&second).await, "rolled_back");
    }
}
