//! Generated reference page of the node's state machine.

use std::fs;
use std::path::Path;

/// `cargo xtask reference` sets `REFERENCE_WRITE`.
#[test]
fn the_page_is_as_the_machine_says() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let file = root.join("docs/reference/node-client.md");
    let page = control_client::reference::page();
    if std::env::var_os("REFERENCE_WRITE").is_some() {
        fs::write(&file, &page).expect("the file is writable");
    }
    let written = fs::read_to_string(&file).unwrap_or_default();
    assert!(written == page, "run `cargo xtask reference`");
}
