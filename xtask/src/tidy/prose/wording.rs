//! Check: no file contains paths of one machine or hosts of package registries.

use crate::tidy::tree::Tree;
use crate::tidy::violation::Violation;

/// Paths of one machine. Each is split, so that this file contains none.
const MACHINE_PATHS: &[&str] = &[
    concat!("/wo", "rk/"),
    concat!("/ro", "ot/"),
    concat!("/ho", "me/"),
];

/// Hosts that only package clients may access.
const REGISTRY_HOSTS: &[&str] = &[
    concat!("crates", ".io"),
    concat!("pypi", ".org"),
    concat!("python", "hosted.org"),
    concat!("npmjs", ".org"),
    concat!("npmjs", ".com"),
    concat!("debian", ".org"),
    concat!("proxy", ".golang.org"),
];

/// Files that `cargo` generates, with the registry's name.
const EXEMPT: &[&str] = &["Cargo.lock"];

/// Returns lines with a forbidden string.
pub(in crate::tidy) fn violations(tree: &Tree) -> Vec<Violation> {
    let files = tree.files.iter().filter(|file| {
        let name = file.path.rsplit('/').next().unwrap_or_default();
        !EXEMPT.contains(&name)
    });
    let mut faults = Vec::new();
    for file in files {
        for (index, line) in file.text.lines().enumerate() {
            faults.extend(named(line).map(|what| Violation::on_line(&file.path, index, what)));
        }
    }
    faults
}

fn named(line: &str) -> impl Iterator<Item = String> {
    let standing = |names: &'static [&str], what: &'static str| {
        let found = names.iter().filter(move |name| line.contains(**name));
        found.map(move |name| format!("names {what}: {name}"))
    };
    standing(MACHINE_PATHS, "a machine's folder").chain(standing(REGISTRY_HOSTS, "a registry"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violation::rendered;

    #[test]
    fn folders_and_registries_are_found_and_the_lock_file_is_not() {
        let path = concat!("see /ho", "me/me/notes\n");
        let host = concat!("https://crates", ".io/crates/http\n");
        let tree = Tree::from_files(&[
            ("README.md", &format!("fine\n{path}{host}")),
            ("Cargo.lock", host),
            ("a.md", "the /network/ and the home/ of it\n"),
        ]);

        assert_eq!(
            rendered(&violations(&tree)),
            [
                concat!("README.md:2: names a machine's folder: /ho", "me/"),
                concat!("README.md:3: names a registry: crates", ".io"),
            ]
        );
    }
}
