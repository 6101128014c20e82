//! Bills of materials against the JSON schema of their standard.
#![expect(clippy::expect_used, reason = "a test may stop, and says why")]

use crate::installed::installed;
use std::io::Write;
use std::process::{Command, Stdio};

const PYTHON: &str = "cyclonedx/bin/python";
/// Strict: unknown fields are faults too.
const CHECK: &str = "
import sys
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
fault = JsonStrictValidator(SchemaVersion.V1_5).validate_str(sys.stdin.read())
sys.exit(str(fault) if fault else 0)
";

/// Checks a document against `CycloneDX` 1.5.
///
/// # Errors
///
/// The message of the standard's validator.
///
/// # Panics
///
/// If the validator is not installed.
pub fn check_cyclonedx(document: &str) -> Result<(), String> {
    let mut validator = Command::new(installed(PYTHON))
        .args(["-c", CHECK])
        .stdin(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the validator starts");
    let mut input = validator.stdin.take().expect("the stream is piped");
    input
        .write_all(document.as_bytes())
        .expect("the validator reads its input");
    drop(input);
    let done = validator.wait_with_output().expect("the process ends");
    if done.status.success() {
        return Ok(());
    }
    Err(String::from_utf8_lossy(&done.stderr).into_owned())
}
