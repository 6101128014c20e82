//! Reloads and upgrades under load: no request fails, no stream is cut, nothing grows.
//!
//! `PROXYD_SOAK="100 10 500"` asks for 100 reloads and 10 upgrades, with 500 ms behind each;
//! `cargo xtask soak` does.
#![expect(
    clippy::indexing_slicing,
    clippy::panic,
    clippy::unwrap_used,
    reason = "tests may fail loudly"
)]

mod backend;
mod callers;
mod crowd;
mod http2;
mod stage;

use crowd::Crowd;
use stage::{Figures, Size, Stage};

/// Connections of the load that may be open at one look and not at another.
const COMING_AND_GOING: usize = 24;

#[test]
fn reloads_and_upgrades_under_load_cost_no_client_anything() {
    let size = Size::asked_for();
    let mut stage = Stage::set();
    let crowd = Crowd::gather(stage.address(), stage.over());
    let mut seen = Vec::new();
    for generation in 0..=size.upgrades {
        for number in size.reloads_of(generation) {
            stage.reload(number);
            stage.over().opens_within(size.pause);
        }
        seen.push(stage.figures());
        if generation < size.upgrades {
            stage.upgrade();
            stage.over().opens_within(size.pause);
        }
    }
    stage.over().open();
    let served = crowd.leave();
    stage.wait_for_former();
    stage::tell(size, &served, &seen);
    assert!(served.iter().all(|(_, count)| *count > 0), "{served:?}");
    assert_flat(&seen);
}

/// Each process, at its end, is as large as the first was at its own.
fn assert_flat(seen: &[Figures]) {
    let first = seen[0];
    for (generation, figures) in seen.iter().enumerate() {
        let Figures { files, rss_bytes } = *figures;
        assert!(
            files <= first.files + COMING_AND_GOING,
            "process {generation} holds {files} files, the first {}",
            first.files
        );
        assert!(
            rss_bytes <= first.rss_bytes + first.rss_bytes / 4 + (8 << 20),
            "process {generation} holds {rss_bytes} bytes, the first {}",
            first.rss_bytes
        );
    }
}
