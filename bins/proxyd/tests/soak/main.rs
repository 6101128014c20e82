//! Reloads and upgrades under load: no request fails, no stream is cut, no memory leaks.
//!
//! `PROXYD_SOAK="100 10 500"` performs 100 reloads and 10 upgrades, with pauses of 500 ms; `cargo
//! xtask soak` sets it.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests may fail loudly"
)]

mod backend;
mod callers;
mod chaos;
mod clients;
mod http2;
mod renames;
mod stage;

use clients::Clients;
use stage::{Lifetime, Size, Stage};

/// Tolerance for connections that open and close concurrently: the load's, and each worker's pooled
/// ones.
const MAX_TRANSIENT_FILES: usize = 48;

/// Memory that an allocator may keep after a load.
const KEPT_BYTES: u64 = 12 << 20;

#[test]
fn reloads_and_upgrades_under_load_cost_no_client_anything() {
    let size = Size::from_environment();
    let mut stage = Stage::set();
    let before = stage.figures_at_rest(None);
    let clients = Clients::start(stage.address(), stage.over());
    let mut seen = Vec::new();
    for generation in 0..=size.upgrades {
        if generation > 0 {
            stage.upgrade();
            stage.over().opens_within(size.pause);
        }
        let mut figures = Vec::new();
        for number in size.reloads_of(generation) {
            stage.reload(number);
            stage.over().opens_within(size.pause);
            figures.push(stage.figures());
        }
        seen.push(Lifetime::new(&figures));
    }
    stage.over().open();
    let served = clients.leave();
    stage.wait_for_former();
    let after = stage.figures_at_rest(Some(&before));
    stage::print_summary(size, &served, &seen, [&before, &after]);
    assert!(served.iter().all(|(_, count)| *count > 0), "{served:?}");
    assert_flat(&seen);
    assert_eq!(after.files, before.files, "open files at rest");
    let grown = after.rss_bytes.saturating_sub(before.rss_bytes);
    assert!(grown <= KEPT_BYTES, "{after:?} at rest, {before:?} before");
}

/// Each process, at its end, uses as much memory as after its first reload, and as the first
/// process did.
fn assert_flat(seen: &[Lifetime]) {
    let first = seen[0].last;
    for (generation, Lifetime { begun, last }) in seen.iter().enumerate() {
        for early in [first, *begun] {
            assert!(
                last.files <= early.files + MAX_TRANSIENT_FILES,
                "process {generation} holds {last:?}, after {early:?}"
            );
            assert!(
                last.rss_bytes <= early.rss_bytes + early.rss_bytes / 4 + (8 << 20),
                "process {generation} holds {last:?}, after {early:?}"
            );
        }
    }
}
