//! A client by another project.

use std::process::Command;

/// The response that curl receives with these arguments, and its version of HTTP.
#[track_caller]
pub(crate) fn curl(arguments: &[&str]) -> String {
    let output = Command::new("curl")
        .args(["--silent", "--show-error"])
        .args(["--write-out", " %{http_version}"])
        .args(arguments)
        .output();
    let Ok(output) = output else {
        panic!("curl is missing: `cargo xtask setup` installs it");
    };
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
