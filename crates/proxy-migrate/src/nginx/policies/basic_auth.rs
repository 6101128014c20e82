//! Converts `auth_basic`, if its file has hashes that `basic-auth` accepts.

use crate::kdl::Node;
use crate::nginx::parser::Directive;
use crate::nginx::scope::Scope;
use crate::nginx::value::has_variables;
use crate::site::Site;
use crate::source::Included;

/// Prefixes of password hashes that `basic-auth` accepts.
const HASHES: &[&str] = &["$2a$", "$2b$", "$2y$", "$argon2"];

/// Reads the password files that directives name by an absolute path.
pub(in crate::nginx) fn find_password_files(
    site: &mut Site,
    directives: &[Directive],
    included: Included<'_>,
) {
    for directive in directives {
        find_password_files(site, directive.children(), included);
        let name = directive
            .word(0)
            .filter(|it| directive.name == "auth_basic_user_file" && it.starts_with('/'));
        let Some(name) = name.filter(|name| !site.password_files.contains(*name)) else {
            continue;
        };
        let files = included(name).unwrap_or_default();
        if files.len() == 1 && files.iter().all(|file| is_usable(&file.text)) {
            site.password_files.insert(name.to_owned());
        }
    }
}

/// Returns true if a file has users, and all hashes are accepted.
fn is_usable(text: &str) -> bool {
    let lines = text.lines().map(str::trim);
    let mut users = lines.filter(|line| !(line.is_empty() || line.starts_with('#')));
    let has_hash = |line: &str| {
        let hash = line.split_once(':').map_or("", |(_, hash)| hash);
        HASHES.iter().any(|kind| hash.starts_with(kind))
    };
    users.clone().next().is_some() && users.all(has_hash)
}

/// The block `basic-auth` for the `auth_basic` in effect in a scope; `None` without one, or if it
/// cannot be converted.
pub(super) fn read(site: &Site, scope: &Scope<'_>) -> Option<Node> {
    let realm = scope.word("auth_basic").filter(|it| *it != "off")?;
    let file = scope.word("auth_basic_user_file")?;
    let is_text = |c: char| c.is_ascii_graphic() || c == ' ';
    let is_realm = !has_variables(realm) && realm.chars().all(is_text) && !realm.is_empty();
    (is_realm && site.password_files.contains(file)).then(|| {
        Node::new("basic-auth")
            .child(Node::text("realm", realm))
            .child(Node::text("users-file", file))
            // nginx forwards the credentials to the upstream.
            .child(Node::new("forward-credentials").word("#true"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_weak_hashes_are_not_used() {
        for (text, expected) in [
            ("ann:$2y$05$abc\n", true),
            ("# users\nann:$2y$05$abc\nbob:$argon2id$v=19$x\n", true),
            ("ann:$apr1$x$y\n", false),
            ("ann:$2y$05$abc\nbob:{SHA}x\n", false),
            ("ann\n", false),
            ("", false),
        ] {
            assert_eq!(is_usable(text), expected, "{text}");
        }
    }
}
