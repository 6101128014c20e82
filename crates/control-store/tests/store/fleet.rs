//! Rows of nodes, their reports and their orders, on both databases.

use crate::stores::{NOW, TestStore, enrolment_token, node, org, project, signing_key, stores};
use control_auth::Sealed;
use control_domain::{DuplicateNode, LabelSelector, Labels, Node, NodeState};
use control_store::{
    ListFilter, NodeFilter, PackedHeartbeat, Page, PageOrder, QuietHeartbeat, StoreError,
    StoredSecret, Transaction, Versioned,
};
use control_wire::{
    BundleId, Health, HeartbeatRequest, InstanceId, NodeEvent, NodeEventId, NodeId, NodeStatus,
    Order, ProjectId, SecretId, SigningKeyId, Traffic, Verdict,
};
use jiff::{SignedDuration, Timestamp};
use std::collections::BTreeMap;
use uuid::Uuid;

const ALL: Page = Page {
    after: None,
    limit: 10,
    order: PageOrder::Oldest,
};

/// Begins a transaction in a store with one project and nodes of these names.
async fn fleet(store: &TestStore, names: &[&str]) -> (Transaction, Vec<Node>) {
    let mut tx = store.begin().await.unwrap();
    let project = project(&org("a"), "edge");
    tx.insert_org(&org("a")).await.unwrap();
    tx.insert_project(&project).await.unwrap();
    let mut nodes = Vec::new();
    for name in names {
        let node = node(&project, name);
        tx.insert_node(&node, name).await.unwrap();
        nodes.push(node);
    }
    (tx, nodes)
}

fn after(secs: i64) -> Timestamp {
    NOW + SignedDuration::from_secs(secs)
}

fn bare() -> HeartbeatRequest {
    HeartbeatRequest {
        health: Health { cpu_percent: 12.5 },
        version: None,
        status: None,
        traffic: None,
        instance: None,
    }
}

fn full() -> HeartbeatRequest {
    let bundle = |id| Some(BundleId(Uuid::from_u128(id)));
    let traffic = r#"{"routes": {"api": {"requests": 3, "errors": 1, "reasons": {"timeout": 1},
        "latency": [1, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]}}}"#;
    let traffic: Traffic = serde_json::from_str(traffic).unwrap();
    HeartbeatRequest {
        version: Some("1.2.3".to_owned()),
        status: Some(NodeStatus {
            desired: bundle(1),
            staged: bundle(2),
            active: bundle(3),
            last_good: bundle(4),
            order: Some(7),
            verdict: Some(Verdict::Rejected),
            diagnostics: vec!["no such upstream".to_owned()],
            altered: false,
        }),
        traffic: Some(traffic),
        ..bare()
    }
}

/// Stores one heartbeat a second from these processes. Checks after each whether two processes of
/// the node are detected.
async fn report_from(store: &TestStore, processes: &[(u128, bool)]) -> Option<DuplicateNode> {
    let (mut tx, nodes) = fleet(store, &["n"]).await;
    let id = nodes[0].id;
    for ((process, noticed), secs) in processes.iter().zip(1..) {
        let heartbeat_request = HeartbeatRequest {
            instance: Some(InstanceId(Uuid::from_u128(*process))),
            ..bare()
        };
        let written = tx
            .write_heartbeat(id, &heartbeat_request, after(secs))
            .await;
        let found = written.unwrap().unwrap().has_found_duplicate;
        assert_eq!(found, *noticed, "{process} after {secs} s");
    }
    let found = tx.node(id).await.unwrap().unwrap();
    found.value.report.unwrap().duplicate
}

#[tokio::test]
async fn processes_that_take_turns_are_noticed_once() {
    for store in stores().await {
        let turns = [1, 2, 1, 2, 1, 2, 1].map(|process| (process, false));
        let mut turns = turns.to_vec();
        turns[4].1 = true;
        let duplicate = report_from(&store, &turns).await.unwrap();
        assert_eq!((duplicate.since, duplicate.seen_at), (after(5), after(7)));
    }
    for store in stores().await {
        let mut turns = [1, 2, 3, 4, 1, 2, 3, 4, 1].map(|process| (process, false));
        turns[8].1 = true;
        assert!(report_from(&store, &turns).await.is_some(), "four copies");
    }
}

#[tokio::test]
async fn a_process_that_replaces_another_is_not_a_duplicate() {
    for processes in [
        // A process that restarts repeatedly.
        vec![1, 1, 2, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11],
        // A late heartbeat of the old process.
        vec![1, 2, 1, 2, 2, 2, 3, 4],
    ] {
        for store in stores().await {
            let turns: Vec<_> = processes.iter().map(|one| (*one, false)).collect();
            assert_eq!(report_from(&store, &turns).await, None, "{processes:?}");
        }
    }
}

#[tokio::test]
async fn a_node_reports_its_bundle_and_omitted_fields_keep_their_values() {
    for store in stores().await {
        let (mut tx, nodes) = fleet(&store, &["n"]).await;
        let id = nodes[0].id;
        let found = tx.node(id).await.unwrap().unwrap();
        assert_eq!(found, Versioned::new(nodes[0].clone()));
        let written = tx.write_heartbeat(id, &full(), after(1)).await.unwrap();
        assert_eq!(
            written.map(|written| written.order),
            Some(0),
            "there is no order"
        );
        tx.write_heartbeat(id, &bare(), after(2)).await.unwrap();
        let found = tx.node(id).await.unwrap().unwrap();
        assert_eq!(found.version, 1, "a heartbeat is not a change of the node");
        let report = found.value.report.unwrap();
        assert_eq!(report.seen_at, after(2));
        assert_eq!(report.version, full().version);
        assert_eq!(Some(report.status), full().status);
        assert_eq!(report.traffic, full().traffic);
        let gone = NodeId(Uuid::from_u128(99));
        let written = tx.write_heartbeat(gone, &bare(), after(1)).await.unwrap();
        assert_eq!(written, None);
    }
}

#[tokio::test]
async fn a_heartbeat_without_news_is_a_sign_of_life() {
    for store in stores().await {
        let (mut tx, nodes) = fleet(&store, &["n"]).await;
        let id = nodes[0].id;
        let mut changed = full();
        changed.status.as_mut().unwrap().active = Some(BundleId(Uuid::from_u128(9)));
        // A heartbeat, its delay in seconds, and whether it is a change for a node that was online
        // 90 s ago.
        let cases = [
            (bare(), 1, true, "the first"),
            (bare(), 2, false, "only the time"),
            (full(), 3, true, "a status"),
            (full(), 4, false, "the same"),
            (bare(), 5, false, "less of the same"),
            (changed.clone(), 6, true, "another bundle"),
            (changed, 200, true, "it was offline"),
        ];
        for (heartbeat_request, secs, is_news, what) in cases {
            let fresh_since = after(secs - 90);
            let heartbeat_request = PackedHeartbeat::new(heartbeat_request).unwrap();
            let reported = tx
                .receive_heartbeat(id, &heartbeat_request, after(secs), fresh_since)
                .await
                .unwrap()
                .unwrap();
            assert_eq!(reported.is_sign_of_life, !is_news, "{what}");
        }
        let seen_at = async |tx: &mut Transaction| {
            let found = tx.node(id).await.unwrap().unwrap();
            found.value.report.unwrap().seen_at
        };
        assert_eq!(seen_at(&mut tx).await, after(200));
        for (secs, seen) in [(201, 201), (199, 201)] {
            let sign = QuietHeartbeat {
                seen_at: after(secs),
                cpu_percent: 3.0,
            };
            tx.write_quiet_heartbeats([(id, sign)]).await.unwrap();
            assert_eq!(seen_at(&mut tx).await, after(seen), "never earlier");
        }
        // The clock was an hour ahead: without a correction, a node that falls silent would be
        // online until then.
        for (secs, seen) in [(3_801, 3_801), (202, 202)] {
            let sign = QuietHeartbeat {
                seen_at: after(secs),
                cpu_percent: 3.0,
            };
            tx.write_quiet_heartbeats([(id, sign)]).await.unwrap();
            assert_eq!(seen_at(&mut tx).await, after(seen));
        }
    }
}

/// Reads the list in pages of one node.
async fn one_by_one(tx: &mut Transaction, project: ProjectId, filter: &NodeFilter) -> Vec<NodeId> {
    let (mut after_id, mut listed) = (None, Vec::new());
    loop {
        let page = Page {
            after: after_id,
            limit: 1,
            order: PageOrder::Oldest,
        };
        let found = tx.nodes(project, filter, after(10), page).await.unwrap();
        let Some(one) = found.first() else {
            return listed;
        };
        listed.push(one.value.id);
        after_id = Some(one.value.id.0);
    }
}

#[tokio::test]
async fn nodes_are_listed_by_state_and_label() {
    for store in stores().await {
        let (mut tx, mut nodes) = fleet(&store, &["a", "b", "c"]).await;
        let project = nodes[0].tenant.project.unwrap();
        nodes.sort_by_key(|node| node.id);
        let [new, old, there] = &nodes[..] else {
            unreachable!("three nodes were made")
        };
        tx.write_heartbeat(old.id, &bare(), after(10))
            .await
            .unwrap();
        tx.write_heartbeat(there.id, &full(), after(100))
            .await
            .unwrap();
        let zone = BTreeMap::from([("zone".to_owned(), "eu".to_owned())]);
        for node in [new, there] {
            let labelled = Node {
                labels: Labels::stored(zone.clone()),
                ..node.clone()
            };
            assert_eq!(tx.update_node(&labelled, 1).await.unwrap(), 2);
        }
        let label = |value: &str| Some(LabelSelector::equals("zone", value));
        let cases = [
            (None, None, vec![new.id, old.id, there.id]),
            (None, Some(NodeState::Enrolled), vec![new.id]),
            (None, Some(NodeState::Offline), vec![old.id]),
            (None, Some(NodeState::Online), vec![there.id]),
            (None, Some(NodeState::Deleted), vec![]),
            (label("eu"), None, vec![new.id, there.id]),
            (label("eu"), Some(NodeState::Online), vec![there.id]),
            (label("us"), None, vec![]),
        ];
        for (label, state, expected) in cases {
            let filter = NodeFilter {
                selector: label.unwrap_or_default(),
                state,
                ..NodeFilter::default()
            };
            let found = tx.nodes(project, &filter, after(10), ALL).await.unwrap();
            let reports = found.iter().filter_map(|node| node.value.report.as_ref());
            for report in reports {
                assert_eq!(
                    report.traffic, None,
                    "a list reads none of what it does not show"
                );
                assert_eq!(report.status.diagnostics, [""; 0]);
            }
            let found: Vec<NodeId> = found.iter().map(|node| node.value.id).collect();
            assert_eq!(found, expected, "{filter:?} on {}", store.database.kind);
            let paged = one_by_one(&mut tx, project, &filter).await;
            assert_eq!(paged, expected, "{filter:?} by pages");
        }
        let counts = tx.count_nodes(project, after(10)).await.unwrap();
        assert_eq!((counts.total, counts.enrolled, counts.online), (3, 1, 1));
        let active = full().status.unwrap().active.unwrap();
        assert_eq!(counts.active, [(active, 1)]);
    }
}

#[tokio::test]
async fn nodes_are_chosen_by_selector_name_bundle_and_version() {
    for store in stores().await {
        let (mut tx, mut nodes) = fleet(&store, &["a", "b", "c"]).await;
        let project = nodes[0].tenant.project.unwrap();
        nodes.sort_by_key(|node| node.id);
        let [new, old, there] = &nodes[..] else {
            unreachable!("three nodes were made")
        };
        tx.write_heartbeat(there.id, &full(), after(100))
            .await
            .unwrap();
        for node in [new, there] {
            let zone = BTreeMap::from([("zone".to_owned(), "eu".to_owned())]);
            let labels = Labels::stored(zone);
            let node = node.clone();
            tx.update_node(&Node { labels, ..node }, 1).await.unwrap();
        }
        let select = |text: &str| NodeFilter {
            selector: LabelSelector::parse(text).unwrap(),
            ..NodeFilter::default()
        };
        let running = full().status.unwrap().active;
        let filters = [
            (select("zone=eu,zone!=us"), vec![new.id, there.id]),
            (select("zone!=eu"), vec![old.id]),
            (select("!zone"), vec![old.id]),
            (select("zone,zone=us"), vec![]),
            (select("zone"), vec![new.id, there.id]),
        ];
        let by = |name: Option<&str>, bundle, version: Option<&str>| NodeFilter {
            name: name.map(str::to_owned),
            bundle,
            version: version.map(str::to_owned),
            ..NodeFilter::default()
        };
        let own = new.name.as_str();
        let more = [
            (by(Some(own), None, None), vec![new.id]),
            (by(Some("*"), None, None), vec![new.id, old.id, there.id]),
            (by(Some("nothing*"), None, None), vec![]),
            (by(None, running, None), vec![there.id]),
            (by(None, None, Some("1.2.3")), vec![there.id]),
            (by(None, None, Some("1.*")), vec![there.id]),
            (by(None, None, Some("2.*")), vec![]),
        ];
        for (filter, expected) in filters.into_iter().chain(more) {
            let paged = one_by_one(&mut tx, project, &filter).await;
            assert_eq!(paged, expected, "{filter:?} on {}", store.database.kind);
            let newest = Page {
                order: PageOrder::Newest,
                ..ALL
            };
            let found = tx.nodes(project, &filter, after(10), newest).await.unwrap();
            let found = found.iter().rev().map(|node| node.value.id);
            assert_eq!(found.collect::<Vec<_>>(), expected, "the newest first");
        }
    }
}

#[tokio::test]
async fn a_second_key_ends_the_first_when_it_is_used() {
    for store in stores().await {
        let (mut tx, nodes) = fleet(&store, &["first"]).await;
        let (id, tenant) = (nodes[0].id, nodes[0].tenant);
        tx.add_node_key(id, "second", 1).await.unwrap();
        assert_eq!(tx.node_by_key("first").await.unwrap(), Some((id, tenant)));
        assert_eq!(tx.node_by_key("second").await.unwrap(), None);
        assert!(tx.is_next_node_key("second").await.unwrap());
        tx.replace_node_key("second").await.unwrap();
        assert_eq!(tx.node_by_key("first").await.unwrap(), None);
        assert_eq!(tx.node_by_key("second").await.unwrap(), Some((id, tenant)));
        let stale = tx.reset_node_key(id, "third", after(1), 1).await;
        assert!(matches!(stale, Err(StoreError::Stale)), "{stale:?}");
        tx.reset_node_key(id, "third", after(1), 3).await.unwrap();
        assert_eq!(tx.node_by_key("second").await.unwrap(), None);
        assert_eq!(tx.node_by_key("third").await.unwrap(), Some((id, tenant)));
    }
}

#[tokio::test]
async fn a_token_admits_no_more_nodes_than_it_may() {
    for store in stores().await {
        let (mut tx, _) = fleet(&store, &[]).await;
        let token = enrolment_token(project(&org("a"), "edge").tenant(), 2);
        tx.insert_enrolment_token(&token, "hash").await.unwrap();
        let late = tx.use_enrolment_token(token.id, after(3_600)).await;
        assert!(!late.unwrap(), "it has ended");
        for admitted in [true, true, false] {
            let used = tx.use_enrolment_token(token.id, after(0)).await;
            assert_eq!(used.unwrap(), admitted);
        }
        let found = tx.enrolment_token_by_secret("hash").await.unwrap();
        let found = found.unwrap();
        assert_eq!((found.value.uses, found.version), (2, 3));
        let revoked = control_domain::EnrolmentToken {
            revoked_at: Some(NOW),
            ..found.value
        };
        tx.update_enrolment_token(&revoked, 3).await.unwrap();
        let listed = tx
            .enrolment_tokens(revoked.tenant.project.unwrap(), &ListFilter::default(), ALL)
            .await;
        assert_eq!(listed.unwrap()[0].value, revoked);
    }
}

async fn signed_order(tx: &mut Transaction, node: NodeId) -> Order {
    let secret = StoredSecret {
        id: SecretId(Uuid::from_u128(7)),
        org: Some(org("a").id),
        sealed: Sealed {
            master_key: "k1".to_owned(),
            text: "sealed".to_owned(),
        },
        created_at: NOW,
    };
    tx.insert_secret(&secret).await.unwrap();
    let key = signing_key(org("a").id, secret.id);
    tx.insert_signing_key(&key).await.unwrap();
    Order {
        node,
        bundle: BundleId(Uuid::from_u128(0)),
        digest: "digest".to_owned(),
        counter: 1,
        kid: key.id,
        signature: "signature".to_owned(),
    }
}

#[tokio::test]
async fn an_order_follows_the_one_before() {
    for store in stores().await {
        let (mut tx, nodes) = fleet(&store, &["n", "m"]).await;
        let order = signed_order(&mut tx, nodes[0].id).await;
        tx.commit().await.unwrap();
        store.add_bundle().await;
        let mut tx = store.begin().await.unwrap();
        let next = |counter| Order {
            counter,
            ..order.clone()
        };
        tx.write_order(&next(1), 5, None, NOW).await.unwrap();
        let again = tx.write_order(&next(1), 6, None, NOW).await;
        assert!(matches!(again, Err(StoreError::Stale)), "{again:?}");
        tx.write_order(&next(2), 6, None, after(1)).await.unwrap();
        let found = tx.order(order.node).await.unwrap().unwrap();
        assert_eq!(found.order, next(2));
        let written = tx.write_heartbeat(order.node, &bare(), after(2)).await;
        assert_eq!(written.unwrap().map(|written| written.order), Some(2));
        assert_eq!(tx.order_counter(order.node).await.unwrap(), 2);
        assert_eq!(tx.order_counter(nodes[1].id).await.unwrap(), 0);
        let newer = tx.nodes_ordered_after(5, 10).await.unwrap();
        assert_eq!(newer, [order.node]);
        assert!(tx.nodes_ordered_after(6, 10).await.unwrap().is_empty());
        let seen = tx.node(order.node).await.unwrap().unwrap().value.order;
        assert_eq!(seen.unwrap().made_at, after(1));
        let signed = Order {
            signature: "again".to_owned(),
            ..next(2)
        };
        tx.resign_order(&signed).await.unwrap();
        let found = tx.order(order.node).await.unwrap().unwrap();
        assert_eq!(found.order.signature, "again");
        let unknown = Order {
            node: NodeId(Uuid::from_u128(99)),
            ..next(1)
        };
        let orphan = tx.write_order(&unknown, 7, None, NOW).await;
        assert!(matches!(orphan, Err(StoreError::Reference)), "{orphan:?}");
    }
}

#[tokio::test]
async fn a_restored_database_continues_after_the_orders_that_a_node_has_answered() {
    for store in stores().await {
        let (mut tx, nodes) = fleet(&store, &["n"]).await;
        let order = signed_order(&mut tx, nodes[0].id).await;
        tx.commit().await.unwrap();
        store.add_bundle().await;
        let mut tx = store.begin().await.unwrap();
        tx.write_order(&order, 5, None, NOW).await.unwrap();
        for (answered, counter) in [(Some(7), 7), (None, 1), (Some(2_000_000), 1), (Some(1), 1)] {
            let mut heartbeat_request = full();
            heartbeat_request.status.as_mut().unwrap().order = answered;
            tx.write_heartbeat(order.node, &heartbeat_request, NOW)
                .await
                .unwrap();
            let found = tx.order_counter(order.node).await.unwrap();
            assert_eq!(found, counter, "{answered:?}");
        }
        let next = Order {
            counter: 8,
            ..order
        };
        tx.write_order(&next, 6, None, NOW).await.unwrap();
        let found = tx.order(next.node).await.unwrap().unwrap();
        assert_eq!(found.order, next);
    }
}

#[tokio::test]
async fn the_newest_events_of_a_node_are_kept() {
    for store in stores().await {
        let (mut tx, nodes) = fleet(&store, &["n"]).await;
        let event = |number: u128| NodeEvent {
            at: NOW,
            kind: "bundle.activated".to_owned(),
            message: number.to_string(),
        };
        for hundred in 0..11_u128 {
            let events: Vec<NodeEvent> = (0..100).map(|one| event(hundred * 100 + one)).collect();
            let ids = (hundred * 100..).map(|id| NodeEventId(Uuid::from_u128(id)));
            tx.insert_node_events(nodes[0].id, ids.zip(&events))
                .await
                .unwrap();
        }
        let all = Page {
            after: None,
            limit: 2_000,
            order: PageOrder::Oldest,
        };
        let kept = tx.node_events(nodes[0].id, None, all).await.unwrap();
        assert_eq!(kept.len(), 1_000);
        assert_eq!(kept[0].1, event(100), "the oldest are gone");
    }
}

#[tokio::test]
async fn a_deleted_node_takes_all_along() {
    for store in stores().await {
        let (mut tx, nodes) = fleet(&store, &["n"]).await;
        let order = signed_order(&mut tx, nodes[0].id).await;
        tx.commit().await.unwrap();
        store.add_bundle().await;
        let mut tx = store.begin().await.unwrap();
        tx.write_order(&order, 1, None, NOW).await.unwrap();
        assert!(
            tx.has_nodes(nodes[0].tenant.project.unwrap())
                .await
                .unwrap()
        );
        tx.delete_node(order.node, 1).await.unwrap();
        assert_eq!(tx.node(order.node).await.unwrap(), None);
        assert_eq!(tx.node_by_key("n").await.unwrap(), None);
        assert_eq!(tx.order(order.node).await.unwrap(), None);
        let kid = SigningKeyId(Uuid::from_u128(11));
        assert_eq!(tx.token_issuer(order.node, kid).await.unwrap(), None);
    }
}
