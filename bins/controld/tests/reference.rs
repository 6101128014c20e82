//! Pages in `docs/reference` that are generated from the control plane.
//!
//! `REFERENCE_WRITE=1`, as set by `cargo xtask reference`, writes them.
#![expect(clippy::unwrap_used, reason = "a test may stop")]

use std::fs;
use std::path::Path;
use std::process::Command;

fn compare(file: &str, generated: &str) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference");
    let path = folder.join(file);
    if std::env::var_os("REFERENCE_WRITE").is_some() {
        fs::write(&path, generated).unwrap();
    }
    let written = fs::read_to_string(&path).unwrap_or_default();
    let first = written
        .lines()
        .zip(generated.lines())
        .position(|(a, b)| a != b);
    assert!(
        written == generated,
        "docs/reference/{file} is out of date from line {}; run `cargo xtask reference`",
        first.map_or(written.lines().count(), |line| line + 1)
    );
}

#[test]
fn the_page_of_the_interface_is_up_to_date() {
    compare(
        "api.md",
        &control_api::reference_md(&control_api::description()),
    );
}

#[test]
fn the_page_of_access_is_up_to_date() {
    let pages = control_ui::PAGES.iter();
    let pages = pages.map(|page| (&page.method, page.path, page.access));
    let access = control_api::access_md(control_api::ROUTES, pages);
    compare("access.md", &access);
}

#[test]
fn the_page_of_metrics_is_up_to_date() {
    compare("control-metrics.md", &control_app::metric::metrics_md());
}

#[test]
fn the_page_of_states_is_up_to_date() {
    compare("states.md", &control_domain::states_md());
}

#[test]
fn the_page_of_commands_is_up_to_date() {
    let mut manual = Command::new(env!("CARGO_BIN_EXE_controld"));
    let printed = manual.args(["ctl", "manual"]).output().unwrap();
    assert!(printed.status.success());
    compare("ctl.md", &String::from_utf8(printed.stdout).unwrap());
}
