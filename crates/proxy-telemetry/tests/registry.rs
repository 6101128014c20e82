//! Counts continue across reloads, and the number of series is bounded.

use proxy_telemetry::{Outcome, Registry, RegistrySettings, Snapshot, names};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const OK: Outcome = Outcome {
    status: 200,
    took: Duration::from_millis(3),
    bytes_in: 5,
    bytes_out: 10,
    failed: false,
    aborted: false,
};

fn registry(max_series: usize) -> Registry {
    Registry::new(RegistrySettings {
        reasons: &["connect_refused", "connect_timeout"],
        max_series,
    })
}

fn requests(snapshot: &Snapshot) -> BTreeMap<&str, u64> {
    let routes = snapshot.routes.iter();
    routes
        .map(|(id, total)| (id.as_ref(), total.requests()))
        .collect()
}

#[test]
fn workers_are_added_up() {
    let registry = registry(10);
    for worker in [0, 3] {
        let cells = registry.route(worker, "a");
        cells.record(&OK);
        cells.record(&Outcome {
            status: 503,
            failed: true,
            aborted: true,
            ..OK
        });
        registry.worker(worker).failed(1);
        registry.worker(worker).requests_in_flight.add(2);
    }

    let snapshot = registry.snapshot();

    let [(id, total)] = snapshot.routes.as_slice() else {
        panic!("{:?}", snapshot.routes);
    };
    assert_eq!(id.as_ref(), "a");
    assert!(total.by_status().eq([(200, 2), (503, 2)]));
    assert_eq!((total.bytes_in, total.bytes_out), (20, 40));
    assert_eq!((total.failed, total.aborted), (2, 2));
    assert_eq!(total.duration.count(), 4);
    assert_eq!(snapshot.workers.failures, [0, 2, 0]);
    assert_eq!(snapshot.workers.requests_in_flight, 4);
}

#[test]
fn the_same_name_gives_the_same_cells() {
    let registry = registry(10);

    let cells = registry.route(0, "a");

    assert!(Arc::ptr_eq(&cells, &registry.route(0, "a")));
    assert!(!Arc::ptr_eq(&cells, &registry.route(1, "a")));
    assert!(Arc::ptr_eq(&registry.worker(2), &registry.worker(2)));
    assert!(Arc::ptr_eq(
        &registry.upstream(0, "u"),
        &registry.upstream(0, "u")
    ));
    assert!(Arc::ptr_eq(
        &registry.counter(&names::CONFIG_RELOADS_TOTAL, ["success"]),
        &registry.counter(&names::CONFIG_RELOADS_TOTAL, ["success"])
    ));
}

#[test]
fn a_removed_route_keeps_its_counts() {
    let registry = registry(10);
    registry.route(0, "gone").record(&OK);

    for _ in 0..3 {
        assert_eq!(requests(&registry.snapshot()), [("gone", 1)].into());
    }
}

#[test]
fn names_beyond_the_cap_count_under_overflow() {
    let registry = registry(2);
    let held = ["a", "b", "c", "d"].map(|id| registry.route(0, id));
    for cells in &held {
        cells.record(&OK);
    }

    let snapshot = registry.snapshot();

    let expected = [("a", 1), ("b", 1), ("overflow", 2)];
    assert_eq!(requests(&snapshot), expected.into());
    assert_eq!(snapshot.series_dropped, 2);
}

#[test]
fn an_unused_slot_is_given_to_a_new_name_without_losing_counts() {
    let registry = registry(2);
    for (seen, id) in (1..).zip(["a", "b", "c", "d", "a"]) {
        registry.route(0, id).record(&OK);
        assert_eq!(registry.snapshot().requests(), seen);
    }

    let snapshot = registry.snapshot();

    assert!(snapshot.routes.len() <= 3, "{:?}", requests(&snapshot));
    assert_eq!(snapshot.series_dropped, 0);
    assert_eq!(snapshot.routes.last().unwrap().0.as_ref(), "overflow");
}

#[test]
fn a_place_in_use_is_never_taken() {
    let registry = registry(2);
    let held = registry.route(1, "held");
    for reload in 0..100 {
        registry.route(0, &format!("r{reload}")).record(&OK);
        held.record(&OK);
    }

    let snapshot = registry.snapshot();

    assert_eq!(requests(&snapshot)["held"], 100);
    assert_eq!(snapshot.requests(), 200);
}

#[test]
fn a_route_may_be_called_overflow() {
    let registry = registry(1);
    let held = ["overflow", "a", "b"].map(|id| registry.route(0, id));
    for cells in &held {
        cells.record(&OK);
    }

    let snapshot = registry.snapshot();

    assert_eq!(snapshot.routes.len(), 2);
    assert_eq!(requests(&snapshot), [("a", 1), ("overflow", 2)].into());
}

#[test]
fn reading_while_counting_never_shows_a_count_that_falls() {
    const COUNTED: u64 = 200_000;
    let registry = registry(10);

    thread::scope(|scope| {
        let workers = [0, 1].map(|worker| {
            let registry = &registry;
            scope.spawn(move || {
                let cells = registry.route(worker, "a");
                (0..COUNTED).for_each(|_| cells.record(&OK));
            })
        });
        let mut last = 0;
        while !workers.iter().all(thread::ScopedJoinHandle::is_finished) {
            let seen = registry.snapshot().requests();
            assert!(seen >= last, "{seen} after {last}");
            last = seen;
        }
    });

    assert_eq!(registry.snapshot().requests(), 2 * COUNTED);
}
