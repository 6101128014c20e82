//! The configuration of a proxyd under test.

/// Added unless a test has its own: the default port would be the same for all tests.
const ADMIN: &str = "\nadmin { address \"127.0.0.1:0\" }\n";

/// `kdl` with an `admin` block with a free port added, unless it has one.
pub(crate) fn with_admin(kdl: &str) -> String {
    let mut nodes = kdl.split(['\n', ';', '{', '}']).map(str::trim_start);
    if nodes.any(|node| node.starts_with("admin")) {
        kdl.to_owned()
    } else {
        [kdl, ADMIN].concat()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_or_a_path_is_not_an_admin_block() {
        for (kdl, is_own) in [
            ("admin { token-file \"t\" }", true),
            ("system { }; admin { }", true),
            ("route \"admin\" { matches { path \"/admin\" } }", false),
        ] {
            assert_eq!(with_admin(kdl) == kdl, is_own, "{kdl}");
        }
    }
}
