//! Requests by `curl`, which verifies the certificates of listeners.

use std::path::Path;
use std::process::Command;

/// The outcome of a request by curl: the body, or the text of its error.
#[derive(Debug)]
pub struct CurlAnswer {
    /// The body, or the text of the error.
    pub body: Result<String, String>,
    /// The chain that the server showed, in PEM with a description of each certificate.
    pub certificates: String,
}

/// Requests `/` of `host` at `port` of this machine, trusting `roots` only.
#[track_caller]
pub fn https(host: &str, port: u16, roots: &Path) -> CurlAnswer {
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "20"])
        .args(["--resolve", &format!("{host}:{port}:127.0.0.1")])
        .arg("--cacert")
        .arg(roots)
        .args(["--write-out", "\n=====\n%{certs}"])
        .arg(format!("https://{host}:{port}/"))
        .output();
    let Ok(output) = output else {
        panic!("curl is missing: `cargo xtask setup` installs it");
    };
    let text = String::from_utf8_lossy(&output.stdout);
    let (body, certificates) = text
        .split_once("\n=====\n")
        .expect("curl prints the certificates");
    CurlAnswer {
        body: if output.status.success() {
            Ok(body.to_owned())
        } else {
            Err(String::from_utf8_lossy(&output.stderr).into_owned())
        },
        certificates: certificates.to_owned(),
    }
}

/// Requests a path at `port` of this machine without TLS; returns status and body.
#[track_caller]
pub fn http(port: u16, path: &str) -> (u16, String) {
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--max-time", "20"])
        .args(["--write-out", "\n%{http_code}"])
        .arg(format!("http://127.0.0.1:{port}{path}"))
        .output()
        .expect("curl is installed");
    let text = String::from_utf8_lossy(&output.stdout);
    let (body, status) = text.rsplit_once('\n').expect("curl prints the status");
    (
        status.parse().expect("the status is a number"),
        body.to_owned(),
    )
}

/// Fetches a file over HTTPS.
#[track_caller]
pub fn fetch(url: &str, roots: &Path) -> String {
    let output = Command::new("curl")
        .args(["--silent", "--show-error", "--fail", "--max-time", "20"])
        .arg("--cacert")
        .arg(roots)
        .arg(url)
        .output()
        .expect("curl is installed");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{error}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}
