//! The configuration of a proxyd under test.

/// Added unless a test has its own: the default port would be the same for all tests.
const ADMIN: &str = "\nadmin { address \"127.0.0.1:0\" }\n";

/// `kdl` with an `admin` block with a free port added, unless it has one.
pub(crate) fn with_admin(kdl: &str) -> String {
    if kdl.contains("admin") {
        kdl.to_owned()
    } else {
        [kdl, ADMIN].concat()
    }
}
