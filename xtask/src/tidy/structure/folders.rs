//! Check: the number of entries in source folders is limited.

use crate::tidy::tree::Tree;
use crate::tidy::violation::Violation;
use std::collections::{BTreeMap, BTreeSet};

/// Maximum number of entries. A module and the folder of its children are one entry.
const MAX_ENTRIES: usize = 16;

/// Permitted folders above the limit, with their own maximum, which may only decrease. A change
/// that removes entries from a folder must lower its number.
const KNOWN_FOLDERS: &[(&str, usize)] = &[
    ("crates/proxy-config/src/decode", 31),
    ("crates/proxy-model/src", 25),
    ("crates/proxy-model/src/registry", 25),
    ("crates/proxy-plan/src", 22),
];

/// Returns folders above their limit, and listed folders that no longer exceed the general one.
pub(in crate::tidy) fn violations(tree: &Tree) -> Vec<Violation> {
    excesses(&entries(tree), KNOWN_FOLDERS)
}

fn excesses(entries: &BTreeMap<&str, BTreeSet<&str>>, known: &[(&str, usize)]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (folder, entries) in entries {
        let known = known.iter().find(|(known, _)| known == folder);
        let most = known.map_or(MAX_ENTRIES, |(_, most)| *most);
        let count = entries.len();
        if count > most {
            let what = format!("has {count} entries, at most {most}: split it by idea");
            violations.push(Violation::whole(folder, what));
        } else if known.is_some() && count <= MAX_ENTRIES {
            let what = format!("has {count} entries: remove it from the list of known folders");
            violations.push(Violation::whole(folder, what));
        }
    }
    violations
}

/// Returns the entries of each source folder: names of folders, and of files without extension.
fn entries(tree: &Tree) -> BTreeMap<&str, BTreeSet<&str>> {
    let mut folders: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for (file, _) in tree.rust() {
        let Some((crate_folder, _)) = file.path.split_once("/src/") else {
            continue;
        };
        let sources = crate_folder.len() + "/src".len();
        let mut path = file.path.strip_suffix(".rs").unwrap_or(&file.path);
        while let Some((folder, entry)) = path.rsplit_once('/') {
            if folder.len() < sources {
                break;
            }
            folders.entry(folder).or_default().insert(entry);
            path = folder;
        }
    }
    folders
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violation::rendered;

    /// Returns the violations of a crate with this number of modules, one of which has a child.
    fn found(modules: usize, known: &[(&str, usize)]) -> Vec<String> {
        let mut paths: Vec<String> = (0..modules)
            .map(|number| format!("crates/a/src/m{number}.rs"))
            .collect();
        paths.push("crates/a/src/m0/child.rs".to_owned());
        paths.push("crates/a/tests/all.rs".to_owned());
        let files: Vec<(&str, &str)> = paths.iter().map(|path| (path.as_str(), "")).collect();
        let tree = Tree::from_files(&files);
        rendered(&excesses(&entries(&tree), known))
    }

    #[test]
    fn a_module_and_its_folder_are_one_entry() {
        assert_eq!(found(16, &[]), [""; 0]);
        assert_eq!(
            found(17, &[]),
            ["crates/a/src: has 17 entries, at most 16: split it by idea"]
        );
    }

    #[test]
    fn a_known_folder_never_grows_and_leaves_the_list_within_the_limit() {
        let known = &[("crates/a/src", 18)];
        assert_eq!(found(18, known), [""; 0]);
        assert_eq!(
            found(19, known),
            ["crates/a/src: has 19 entries, at most 18: split it by idea"]
        );
        assert_eq!(
            found(16, known),
            ["crates/a/src: has 16 entries: remove it from the list of known folders"]
        );
    }
}
