//! Programs and files that `cargo xtask setup` installs into the target folder.
#![expect(
    clippy::expect_used,
    clippy::panic,
    reason = "a test may stop, and says why"
)]

use std::path::PathBuf;

/// The path of a program or file in this program's target folder.
///
/// # Panics
///
/// If it is not installed.
pub fn installed(program: &str) -> PathBuf {
    let own = std::env::current_exe().expect("the path of this program");
    let places = own.ancestors().map(|folder| folder.join(program));
    let mut found = places.filter(|place| place.is_file());
    found
        .next()
        .unwrap_or_else(|| panic!("{program} is not installed: run `cargo xtask setup`"))
}
