//! State that replicas share: leases, rate limits, stored replies, the audit log.

use crate::stores::{NOW, TestStore, org, project, stores};
use control_auth::{AuditKey, sha256};
use control_store::{AuditArchive, AuditEntry, Group, Rate, Reply, Reservation, StoreError};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use uuid::Uuid;

fn after(secs: i64) -> Timestamp {
    NOW + SignedDuration::from_secs(secs)
}

#[tokio::test]
async fn a_lease_has_one_holder_until_it_ends() {
    let (one, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let lifetime = SignedDuration::from_secs(10);
    for store in stores().await {
        for (holder, secs, held) in [
            (one, 0, true),
            (other, 9, false),
            (one, 9, true),
            (other, 18, false),
            (other, 19, true),
            (one, 20, false),
        ] {
            let mut tx = store.begin().await.unwrap();
            let got = tx
                .acquire_lease("work", holder, after(secs), lifetime)
                .await;
            tx.commit().await.unwrap();
            assert_eq!(got.unwrap(), held, "{} at {secs}", store.database.kind);
        }
    }
}

#[tokio::test]
async fn a_lease_by_a_clock_that_was_ahead_is_taken_over() {
    let (ahead, right) = (Uuid::from_u128(1), Uuid::from_u128(2));
    let lifetime = SignedDuration::from_secs(5);
    for store in stores().await {
        for (holder, secs, held) in [
            (ahead, 3_600, true),
            (right, 0, true),
            (ahead, 3_600, true),
            // The clock of the other replica may be slightly ahead, so the lease counts.
            (ahead, 3_630, true),
            (right, 3_601, false),
            (right, 3_635, true),
        ] {
            let mut tx = store.begin().await.unwrap();
            let got = tx
                .acquire_lease("work", holder, after(secs), lifetime)
                .await;
            tx.commit().await.unwrap();
            assert_eq!(got.unwrap(), held, "{} at {secs}", store.database.kind);
        }
    }
}

#[tokio::test]
async fn a_bucket_by_a_clock_that_was_ahead_gives_tokens_at_once() {
    let rate = Rate {
        per_minute: 60,
        burst: 10,
    };
    for store in stores().await {
        let mut tx = store.begin().await.unwrap();
        let ahead = tx.take_tokens("a", rate, 10, after(3_600)).await;
        assert_eq!(ahead.unwrap().taken, 10);
        // One token, and then the rate. The clock of the other replica may be slightly ahead, so
        // its bucket counts.
        for (secs, taken) in [(0, 1), (0, 0), (1, 1), (1, 0), (9, 8), (4, 0)] {
            let group = tx.take_tokens("a", rate, 10, after(secs)).await;
            assert_eq!(
                group.unwrap().taken,
                taken,
                "{} at {secs}",
                store.database.kind
            );
        }
    }
}

#[tokio::test]
async fn a_bucket_gives_its_burst_and_then_its_rate() {
    let rate = Rate {
        per_minute: 60,
        burst: 10,
    };
    for store in stores().await {
        let mut tx = store.begin().await.unwrap();
        // Ten tokens at second 0, and then one a second, but never more than ten.
        for (secs, wanted, taken, left) in [
            (0, 4, 4, 6),
            (0, 4, 4, 2),
            (0, 4, 2, 0),
            (0, 4, 0, 0),
            (1, 4, 1, 0),
            (4, 2, 2, 1),
            (100, 99, 10, 0),
        ] {
            let now = after(secs);
            let Group {
                taken: got,
                full_at_micros,
            } = tx.take_tokens("ip", rate, wanted, now).await.unwrap();
            let remaining = rate.tokens_left(full_at_micros, now);
            assert_eq!((got, remaining), (taken, left), "{wanted} at {secs}");
        }
        assert_eq!(tx.purge_buckets(after(109), 10).await.unwrap(), 0);
        assert_eq!(tx.purge_buckets(after(111), 10).await.unwrap(), 1);
    }
}

#[tokio::test]
async fn a_key_gives_the_answer_it_stands_for() {
    for store in stores().await {
        let mut tx = store.begin().await.unwrap();
        let id = Uuid::from_u128;
        let first = tx.reserve_reply("key", "a", id(1), after(0)).await.unwrap();
        assert_eq!(first, Reservation::Taken);
        let again = tx.reserve_reply("key", "a", id(2), after(1)).await.unwrap();
        assert_eq!(again, Reservation::Pending);
        let other = tx.reserve_reply("key", "b", id(3), after(1)).await.unwrap();
        assert_eq!(other, Reservation::Other);
        let tenant = project(&org("a"), "edge").tenant();
        tx.commit_reply(id(1), Some(tenant)).await.unwrap();
        let lost = tx.reserve_reply("key", "a", id(4), after(999)).await;
        assert_eq!(lost.unwrap(), Reservation::Lost);
        let reply = Reply {
            status: 201,
            etag: Some("\"1\"".to_owned()),
            location: Some("/api/v1/orgs/1".to_owned()),
            body: Some("{}".to_owned()),
        };
        tx.keep_reply(id(1), &reply).await.unwrap();
        let replied = tx.reserve_reply("key", "a", id(5), after(999)).await;
        let tenant = Some(tenant);
        assert_eq!(replied.unwrap(), Reservation::Replied { reply, tenant });
        let next_day = after(24 * 3600);
        let renewed = tx.reserve_reply("key", "b", id(6), next_day).await.unwrap();
        assert_eq!(renewed, Reservation::Taken);
        assert_eq!(tx.purge_replies(next_day, 10).await.unwrap(), 0);
        assert_eq!(tx.purge_replies(after(48 * 3600), 10).await.unwrap(), 1);
    }
}

#[tokio::test]
async fn a_command_that_died_releases_its_key() {
    for store in stores().await {
        let mut tx = store.begin().await.unwrap();
        let id = Uuid::from_u128;
        tx.reserve_reply("key", "a", id(1), after(0)).await.unwrap();
        let taken = tx.reserve_reply("key", "a", id(2), after(121)).await;
        assert_eq!(taken.unwrap(), Reservation::Taken);
        let other = tx.commit_reply(id(1), None).await.unwrap_err();
        assert!(matches!(other, StoreError::Conflict), "{other}");
        tx.commit_reply(id(2), None).await.unwrap();
        tx.release_reply(id(2)).await.unwrap();
        let kept = tx.reserve_reply("key", "a", id(3), after(122)).await;
        assert_eq!(kept.unwrap(), Reservation::Lost, "a committed key stays");
    }
}

fn audit_key() -> AuditKey {
    AuditKey::new(&[7; 32])
}

fn entry(at: Timestamp, number: u128) -> AuditEntry<'static> {
    AuditEntry {
        at,
        actor_kind: "user",
        actor: Uuid::from_u128(number),
        actor_name: "Ann",
        client_ip: None,
        tenant: Some(project(&org("a"), "edge").tenant()),
        action: "project.created",
        subject: Uuid::from_u128(number),
        correlation_id: "c",
    }
}

async fn audited(store: &TestStore, count: u128) {
    for number in 1..=count {
        let mut tx = store.begin().await.unwrap();
        let seq = tx
            .append_audit(&entry(NOW, number), &audit_key())
            .await
            .unwrap();
        assert_eq!(tx.audit_head().await.unwrap(), seq);
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn the_audit_chain_shows_every_change() {
    let cases = [
        ("SELECT 1", None),
        (
            "UPDATE audit SET action = 'project.deleted' WHERE seq = 2",
            Some(2),
        ),
        ("UPDATE audit SET at = at + 1 WHERE seq = 3", Some(3)),
        ("UPDATE audit SET org_id = NULL WHERE seq = 1", Some(1)),
        ("UPDATE audit SET hash = hash || 'x' WHERE seq = 3", Some(3)),
        ("DELETE FROM audit WHERE seq = 1", Some(1)),
        ("DELETE FROM audit WHERE seq = 3", Some(3)),
        ("UPDATE audit_head SET hash = 'x'", Some(3)),
        ("UPDATE audit_head SET seq = 2", Some(2)),
        ("DELETE FROM audit", Some(1)),
        ("UPDATE audit SET org_seq = 9 WHERE seq = 2", Some(2)),
        ("UPDATE audit SET actor_name = 'Eve' WHERE seq = 3", Some(3)),
        ("UPDATE audit SET client_ip = '::1' WHERE seq = 1", Some(1)),
        ("UPDATE audit SET value_after = '' WHERE seq = 2", Some(2)),
        ("UPDATE audit SET keyed = 0 WHERE seq = 3", Some(3)),
    ];
    for (sql, seq) in cases {
        for store in stores().await {
            audited(&store, 3).await;
            store.tamper(sql).await;
            let mut tx = store.read().await.unwrap();
            let found = tx.verify_audit(Some(&audit_key())).await.unwrap();
            assert_eq!(found.fault, seq, "{sql} on {}", store.database.kind);
        }
    }
}

/// Archives the first three of five entries, which are a day apart.
async fn cut(store: &TestStore) -> (AuditArchive, Vec<u8>) {
    let day = |days: i64| NOW + SignedDuration::from_hours(24 * days);
    for days in 0..5 {
        let mut tx = store.begin().await.unwrap();
        let entry = entry(day(days), 1);
        tx.append_audit(&entry, &audit_key()).await.unwrap();
        tx.commit().await.unwrap();
    }
    let mut tx = store.begin().await.unwrap();
    let key = audit_key();
    let early = tx.expired_audit(day(1), day(9), 100, &key).await;
    assert_eq!(early.unwrap(), None, "the oldest is not overdue by a day");
    let expired = tx.expired_audit(day(3), day(9), 100, &key).await;
    let (archive, bytes) = expired.unwrap().unwrap();
    assert_eq!(tx.cut_audit(&archive, &key, day(9)).await.unwrap(), 3);
    let again = tx.cut_audit(&archive, &key, day(9)).await;
    assert!(matches!(again, Err(StoreError::Stale)), "{again:?}");
    tx.commit().await.unwrap();
    (archive, bytes)
}

#[tokio::test]
async fn the_chain_continues_after_archived_entries() {
    for store in stores().await {
        let (archive, bytes) = cut(&store).await;
        assert_eq!((archive.first, archive.last), (1, 3));
        let lines = zstd::decode_all(bytes.as_slice()).unwrap();
        let lines = String::from_utf8(lines).unwrap();
        let lines: Vec<Value> = lines
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 3);
        assert_eq!(lines[2]["seq"], 3);
        assert_eq!(lines[0]["action"], "project.created");
        let mut tx = store.read().await.unwrap();
        let found = tx.verify_audit(Some(&audit_key())).await.unwrap();
        assert!(found.is_intact(), "{found:?}");
        assert_eq!((found.entries, found.archived), (5, 3));
        let unproven = tx.verify_audit(Some(&AuditKey::new(&[8; 32]))).await;
        assert_eq!(unproven.unwrap().fault, Some(1));
        drop(tx);
        // The rest is unchanged, and the sequence numbers continue.
        let mut tx = store.begin().await.unwrap();
        let (key, later) = (audit_key(), NOW + SignedDuration::from_hours(1_000));
        let expired = tx.expired_audit(later, later, 100, &key).await;
        let (archive, _) = expired.unwrap().unwrap();
        assert_eq!((archive.first, archive.last), (4, 5));
        tx.cut_audit(&archive, &key, later).await.unwrap();
        tx.append_audit(&entry(later, 1), &key).await.unwrap();
        let newest = tx.audit_newest(org("a").id).await.unwrap();
        assert_eq!(newest, 6, "on {}", store.database.kind);
        let found = tx.verify_audit(Some(&key)).await.unwrap();
        assert!(found.is_intact(), "{found:?}");
        assert_eq!((found.entries, found.archived), (6, 5));
    }
}

#[tokio::test]
async fn nothing_more_is_cut_off_without_the_key() {
    let cases = [
        ("DELETE FROM audit WHERE seq = 4", 4),
        ("DELETE FROM audit_archives", 1),
        ("UPDATE audit_archives SET digest = 'x'", 1),
        ("UPDATE audit_archives SET object = 'x'", 1),
        (
            "UPDATE audit_archives SET last_seq = 4, last_hash = (SELECT hash FROM audit WHERE seq = 4)",
            1,
        ),
    ];
    for (sql, seq) in cases {
        for store in stores().await {
            cut(&store).await;
            store.tamper(sql).await;
            let mut tx = store.read().await.unwrap();
            let found = tx.verify_audit(Some(&audit_key())).await.unwrap();
            assert_eq!(found.fault, Some(seq), "{sql} on {}", store.database.kind);
        }
    }
}

#[tokio::test]
async fn a_log_that_was_changed_is_not_archived() {
    for store in stores().await {
        audited(&store, 3).await;
        let change = "UPDATE audit SET action = 'project.deleted' WHERE seq = 2";
        store.tamper(change).await;
        let mut tx = store.begin().await.unwrap();
        let later = NOW + SignedDuration::from_hours(1_000);
        let refused = tx.expired_audit(later, later, 100, &audit_key()).await;
        assert!(
            matches!(refused, Err(StoreError::Corrupt(_))),
            "{refused:?}"
        );
    }
}

/// Rewrites the entries after `previous` with plain hashes, which need no key. Each entry has the
/// number of its subject.
async fn forge(store: &TestStore, mut previous: String, entries: &[(i64, u128)]) {
    for (seq, number) in entries {
        let id = Uuid::from_u128(*number).to_string();
        let project = project(&org("a"), "edge");
        let mut bytes = format!("audit v1\n{seq}\n{}\n", NOW.as_millisecond()).into_bytes();
        let (org, project) = (project.org.to_string(), project.id.to_string());
        let action = "project.forged";
        for text in [&previous, "user", &id, &org, &project, action, &id, "c"] {
            bytes.extend_from_slice(format!("{}:{text}\n", text.len()).as_bytes());
        }
        previous = sha256(&bytes);
        let forged = format!(
            "UPDATE audit SET action = '{action}', keyed = 0, hash = '{previous}' WHERE seq = {seq}"
        );
        store.tamper(Box::leak(forged.into_boxed_str())).await;
    }
    let head = format!("UPDATE audit_head SET hash = '{previous}'");
    store.tamper(Box::leak(head.into_boxed_str())).await;
}

#[tokio::test]
async fn a_log_that_is_rewritten_without_the_key_is_not_intact() {
    for store in stores().await {
        audited(&store, 3).await;
        forge(&store, String::new(), &[(1, 1), (2, 2), (3, 3)]).await;
        let mut tx = store.read().await.unwrap();
        let found = tx.verify_audit(Some(&audit_key())).await.unwrap();
        assert!(!found.is_intact(), "{found:?}");
        assert_eq!((found.fault, found.keyed_from), (None, None));
        // A chain of keyed entries begins after it and covers the existing entries. Another key
        // does not match.
        drop(tx);
        audited(&store, 1).await;
        let mut tx = store.read().await.unwrap();
        let other = AuditKey::new(&[8; 32]);
        let found = tx.verify_audit(Some(&other)).await.unwrap();
        assert_eq!(found.fault, Some(4));
    }
}

#[tokio::test]
async fn entries_after_the_first_are_not_written_anew_without_the_key() {
    for store in stores().await {
        audited(&store, 1).await;
        let mut tx = store.read().await.unwrap();
        let first = tx.verify_audit(Some(&audit_key())).await.unwrap();
        drop(tx);
        audited(&store, 2).await;
        forge(&store, first.head, &[(2, 1), (3, 2)]).await;
        let mut tx = store.read().await.unwrap();
        let found = tx.verify_audit(Some(&audit_key())).await.unwrap();
        assert_eq!(found.fault, Some(2), "{found:?}");
    }
}

async fn append(store: control_store::Store, number: u128) {
    for _ in 0..5 {
        let mut tx = store.begin().await.unwrap();
        let entry = AuditEntry {
            at: NOW,
            actor_kind: "system",
            actor: Uuid::from_u128(number),
            actor_name: "Ann",
            client_ip: None,
            tenant: None,
            action: "test.written",
            subject: Uuid::nil(),
            correlation_id: "",
        };
        tx.append_audit(&entry, &audit_key()).await.unwrap();
        tx.commit().await.unwrap();
    }
}

#[tokio::test]
async fn writers_on_two_connections_leave_one_chain() {
    for store in stores().await {
        let mut writers = tokio::task::JoinSet::new();
        for number in 0..8 {
            let store = control_store::Store::clone(&store);
            writers.spawn(append(store, number));
        }
        writers.join_all().await;
        let mut tx = store.read().await.unwrap();
        assert_eq!(tx.audit_head().await.unwrap(), 40);
        let found = tx.verify_audit(Some(&audit_key())).await.unwrap();
        assert!(found.is_intact(), "{found:?}");
    }
}
