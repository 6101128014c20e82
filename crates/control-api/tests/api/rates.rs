//! Rate limits, including those that replicas share.

use crate::world::{Credential, World, app, app_with_clock, worlds};
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode};
use control_app::Rate;
use control_domain::Tenant;
use jiff::{SignedDuration, Timestamp};
use std::net::{Ipv6Addr, SocketAddr};
use std::sync::Arc;
use tokio::task::JoinSet;

const BURST: i64 = 60;

/// Sends wrong credentials until the limit; returns their number. The bucket gains a token every
/// 200 ms.
async fn spend_address(world: &World) -> i64 {
    let guess = Credential::Bearer("x".repeat(43));
    let (mut answer, mut sent) = (world.get("/orgs", &guess).await, 1);
    while answer.status == StatusCode::UNAUTHORIZED && sent < 10 * BURST {
        answer = world.get("/orgs", &guess).await;
        sent += 1;
    }
    assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(answer.code(), "RATE_LIMIT_EXCEEDED");
    assert_eq!(
        answer.body["error"]["retry_after"].to_string(),
        answer.header("retry-after")
    );
    assert_eq!(answer.header("x-ratelimit-limit"), "60");
    assert_eq!(answer.header("x-ratelimit-remaining"), "0");
    sent
}

/// Returns the response to a valid, unused key from an address at its limit.
async fn guess_right(world: &World) -> StatusCode {
    let unknown = world.full_key().await;
    spend_address(world).await;
    world.get("/orgs", &unknown).await.status
}

#[tokio::test]
async fn a_replica_whose_clock_is_wrong_leaves() {
    let clocks: [(fn() -> Timestamp, bool); 3] = [
        (|| Timestamp::now() + SignedDuration::from_secs(30), true),
        (|| Timestamp::now() - SignedDuration::from_secs(30), true),
        (Timestamp::now, false),
    ];
    for world in worlds().await {
        // With SQLite, each replica uses its own clock.
        let is_shared = world.database.kind == "postgres";
        for (clock, is_wrong) in clocks {
            let objects = world.objects.path();
            let (app, _) = app_with_clock(&world.database.url, objects, clock).await;
            app.relay().await.unwrap();
            assert_eq!(app.is_clock_wrong(), is_shared && is_wrong);
            let round = app.clean_up(world.node.0, app.now()).await;
            round.unwrap();
        }
    }
}

#[tokio::test]
async fn guesses_spend_the_bucket_of_their_address() {
    for world in worlds().await {
        let known = world.full_key().await;
        assert_eq!(world.get("/orgs", &known).await.status, StatusCode::OK);
        let sent = spend_address(&world).await;
        assert!(BURST < sent, "{sent}");
        let answer = world.get("/orgs", &known).await;
        assert_eq!(answer.status, StatusCode::OK, "a key that was good before");
        let mut statuses = Vec::new();
        while statuses.last() != Some(&StatusCode::TOO_MANY_REQUESTS) {
            statuses.push(guess_right(&world).await);
            assert!(statuses.len() < 10, "a right guess looks like a wrong one");
        }
    }
}

/// Returns the status of a wrong credential from an IPv6 address.
async fn guess_from(world: &World, address: Ipv6Addr) -> StatusCode {
    let peer = ConnectInfo(SocketAddr::from((address, 40_000)));
    let guess = Request::get("/api/v1/orgs").header("authorization", "Bearer x");
    let guess = guess.extension(peer).body(Body::empty()).unwrap();
    world.send_request(guess).await.status
}

#[tokio::test]
async fn a_flood_from_all_networks_of_a_site_is_held_off() {
    let site = u128::from(0x2001_0db8_0001_u64) << 80;
    let in_site = |network: u128| Ipv6Addr::from_bits(site | (network << 64) | 1);
    for world in worlds().await {
        let world = world.with_stopped_clock().await;
        let (mut sent, mut network) = (0, 0);
        // Each request is from another network, so it does not exhaust the bucket of one address.
        while guess_from(&world, in_site(network)).await == StatusCode::UNAUTHORIZED {
            (sent, network) = (sent + 1, network + 1);
            assert!(sent < 20 * BURST, "no guess was held off");
        }
        assert!((8 * BURST..).contains(&sent), "{sent}");
        let elsewhere = Ipv6Addr::from_bits(site | (2 << 80) | 1);
        assert_eq!(
            guess_from(&world, elsewhere).await,
            StatusCode::UNAUTHORIZED
        );
    }
}

#[tokio::test]
async fn each_key_has_its_own_bucket() {
    for world in worlds().await {
        let (one, two) = (world.full_key().await, world.full_key().await);
        for remaining in (0..BURST).rev() {
            let answer = world.get("/users/me", &one).await;
            assert_eq!(answer.status, StatusCode::OK);
            let left: i64 = answer.header("x-ratelimit-remaining").parse().unwrap();
            assert!((remaining..=remaining + 10).contains(&left), "{left}");
        }
        let mut answer = world.get("/users/me", &one).await;
        while answer.status == StatusCode::OK {
            answer = world.get("/users/me", &one).await;
        }
        assert_eq!(answer.status, StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(world.get("/users/me", &two).await.status, StatusCode::OK);
    }
}

#[tokio::test]
async fn a_revoked_key_is_refused_although_it_was_known() {
    for world in worlds().await {
        let mut key = world.key(Tenant::org(world.org), &[]);
        let credential = world.store_key(&key).await;
        assert_eq!(world.get("/orgs", &credential).await.status, StatusCode::OK);
        key.revoked_at = Some(world.app.now());
        let mut tx = world.store.begin().await.unwrap();
        tx.update_api_key(&key, 1).await.unwrap();
        tx.commit().await.unwrap();
        let answer = world.get("/orgs", &credential).await;
        assert_eq!(answer.status, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn requests_at_once_share_one_burst_and_lose_none_of_it() {
    let rate = Rate {
        per_minute: 1,
        burst: BURST,
    };
    for world in worlds().await {
        let now = world.app.now();
        let take = || {
            let app = Arc::clone(&world.app);
            async move { app.take_token("burst", rate, now).await.unwrap() }
        };
        let mut tasks: JoinSet<_> = (0..200).map(|_| take()).collect();
        let mut admitted = 0;
        while let Some(allowance) = tasks.join_next().await {
            admitted += i64::from(allowance.unwrap().admitted);
        }
        assert_eq!(admitted, BURST);
    }
}

#[tokio::test]
async fn two_replicas_admit_one_burst_between_them() {
    let rate = Rate {
        per_minute: 1,
        burst: BURST,
    };
    for world in worlds().await {
        let (other, _) = app(&world.database.url, world.objects.path()).await;
        let now = world.app.now();
        let mut admitted = 0;
        for turn in 0..200 {
            let replica = if turn % 2 == 0 { &world.app } else { &other };
            let allowance = replica.take_token("shared", rate, now).await.unwrap();
            admitted += i64::from(allowance.admitted);
        }
        assert_eq!(admitted, BURST);
    }
}

#[tokio::test]
async fn a_clock_that_was_an_hour_ahead_locks_no_key_out() {
    let rate = Rate {
        per_minute: 60,
        burst: 5,
    };
    for world in worlds().await {
        let now = world.app.now();
        let ahead = now + SignedDuration::from_hours(1);
        let take = |at| world.app.take_token("key", rate, at);
        for _ in 0..rate.burst {
            assert!(take(ahead).await.unwrap().admitted);
        }
        assert!(!take(ahead).await.unwrap().admitted);
        assert!(world.app.known_refusal("key", rate, ahead).is_some());

        // The clock is right again: a token at once, and then the rate of one per second.
        assert_eq!(world.app.known_refusal("key", rate, now), None);
        assert!(take(now).await.unwrap().admitted);
        let refused = take(now).await.unwrap();
        assert!(!refused.admitted && refused.retry_after_secs <= 2);
        let next = now + SignedDuration::from_secs(1);
        assert!(take(next).await.unwrap().admitted);
    }
}

#[tokio::test]
async fn a_small_burst_is_left_to_other_replicas() {
    let rate = Rate {
        per_minute: 1,
        burst: 10,
    };
    for world in worlds().await {
        let (other, _) = app(&world.database.url, world.objects.path()).await;
        let now = world.app.now();
        // The password at one replica, and the code at the other.
        for replica in [&world.app, &other, &other, &other] {
            let allowance = replica.take_token("person", rate, now).await.unwrap();
            assert!(allowance.admitted);
        }
        for burst in [1, 2, 4] {
            let rate = Rate { burst, ..rate };
            let name = format!("burst {burst}");
            let allowance = world.app.take_token(&name, rate, now).await.unwrap();
            assert!(allowance.admitted, "{name}");
        }
    }
}

#[tokio::test]
async fn a_request_with_room_writes_nothing() {
    let rate = Rate {
        per_minute: 300,
        burst: BURST,
    };
    for world in worlds().await {
        let now = world.app.now();
        world.app.take_token("key", rate, now).await.unwrap();
        // This transaction locks the bucket, so a write would block.
        let mut tx = world.store.begin().await.unwrap();
        tx.take_tokens("key", rate, 1, now).await.unwrap();
        for _ in 0..9 {
            let allowance = world.app.take_token("key", rate, now).await.unwrap();
            assert!(allowance.admitted);
        }
        drop(tx);
    }
}
