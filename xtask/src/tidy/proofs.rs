//! Check: each implemented setting has a test, which exists and uses the setting in a
//! configuration.

use super::items::{self, Item, has_word};
use super::source::Source;
use super::tree::{File, Tree};
use super::violation::Violation;
use proxy_model::registry::{self, SettingSpec};
use std::collections::{BTreeMap, BTreeSet};

const REGISTRY: &str = "crates/proxy-model/src/registry";
/// Maximum number of calls from a test to the helper that contains the setting.
const MAX_CALL_DEPTH: usize = 4;
/// Suffixes of setting names with a unit, which fields of the model lack.
const UNITS: &[&str] = &["-secs", "-bytes"];
/// Settings that are written as the argument of a block, with the block's name.
const ARGUMENTS: &[(&str, &str)] = &[("upstreams.upstream.targets.target.address", "target")];

/// Returns settings with a proof that is missing, is not a test, or does not use the setting.
pub(super) fn violations(tree: &Tree) -> Vec<Violation> {
    let tests = Tests::new(tree);
    let settings = registry::all();
    settings
        .iter()
        .filter_map(|setting| fault(&tests, setting, setting.proof.test))
        .collect()
}

fn fault(tests: &Tests<'_>, setting: &SettingSpec, test: &str) -> Option<Violation> {
    let named = tests.named(test);
    if named.is_empty() {
        let what = format!(
            "{} is proved by `{test}`, which is not a test",
            setting.path
        );
        return Some(Violation::whole(REGISTRY, what));
    }
    let words = words(setting);
    let writes = |place: &&LocatedItem<'_>| {
        let text = tests.text(place);
        words.iter().any(|word| has_word(&text, word))
    };
    (!named.iter().any(writes)).then(|| {
        let what = format!(
            "{} is proved by `{test}`, which writes none of: {}",
            setting.path,
            words.join(", ")
        );
        Violation::whole(REGISTRY, what)
    })
}

/// Returns the names of a setting in tests: its own, aliases, and the model's field.
fn words(setting: &SettingSpec) -> Vec<String> {
    let argument = ARGUMENTS.iter().find(|(path, _)| *path == setting.path);
    let name = setting.path.rsplit('.').next().unwrap_or_default();
    let mut words = vec![name.to_owned()];
    words.extend(argument.map(|(_, block)| (*block).to_owned()));
    words.extend(setting.aliases.iter().cloned());
    let bare = UNITS.iter().find_map(|unit| name.strip_suffix(unit));
    if let Some(bare) = bare.filter(|bare| setting.aliases.is_empty() && bare.contains('-')) {
        words.push(format!("{bare}-ms"));
    }
    let field = bare.unwrap_or(name).replace('-', "_");
    words.extend(field.contains('_').then_some(field));
    words
}

/// All tests, and the functions that they may call.
struct Tests<'a> {
    tree: &'a Tree,
    /// Items by name.
    items: BTreeMap<String, Vec<LocatedItem<'a>>>,
}

/// An item and its file.
struct LocatedItem<'a> {
    file: &'a File,
    source: &'a Source,
    item: Item,
}

impl<'a> Tests<'a> {
    fn new(tree: &'a Tree) -> Self {
        let mut items: BTreeMap<String, Vec<LocatedItem<'a>>> = BTreeMap::new();
        for (file, source) in tree.rust() {
            for item in items::items(source) {
                let place = LocatedItem { file, source, item };
                items
                    .entry(place.item.name.clone())
                    .or_default()
                    .push(place);
            }
        }
        Self { tree, items }
    }

    fn named(&self, name: &str) -> Vec<&LocatedItem<'a>> {
        let items = self.items.get(name).into_iter().flatten();
        items.filter(|place| place.item.is_test).collect()
    }

    /// Returns the text of a test, of the helpers that it calls, and of the files that it reads.
    fn text(&self, test: &LocatedItem<'a>) -> String {
        let mut whole = items::text(test.file, test.source, &test.item);
        let mut seen = BTreeSet::from([test.item.name.clone()]);
        let mut open = whole.clone();
        for _ in 0..MAX_CALL_DEPTH {
            let called = self.called(test, &open, &mut seen);
            whole.push_str(&called);
            open = called;
        }
        for name in fixtures(&whole) {
            let ending = format!("/{name}");
            let files = self.tree.files.iter();
            let fixture = files.filter(|file| file.path.ends_with(&ending));
            let text: String = fixture.map(|file| file.text.as_str()).collect();
            whole.push_str(&text);
        }
        whole
    }

    /// Returns the text of helpers that are called: in the test's file, or shared by the tests of
    /// the crate.
    fn called(&self, test: &LocatedItem<'a>, text: &str, seen: &mut BTreeSet<String>) -> String {
        let mut called = String::new();
        let names: BTreeSet<&str> = text
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| !word.is_empty())
            .collect();
        for name in names {
            let Some(places) = self.items.get(name) else {
                continue;
            };
            if !seen.insert(name.to_owned()) {
                continue;
            }
            let near = places
                .iter()
                .filter(|place| !place.item.is_test && is_near(test.file, place.file));
            for place in near {
                called.push_str(&items::text(place.file, place.source, &place.item));
            }
        }
        called
    }
}

fn is_near(test: &File, helper: &File) -> bool {
    let tests_of = |file: &File| Some(file.path.split_once("/tests/")?.0.to_owned());
    test.path == helper.path || (tests_of(test).is_some() && tests_of(test) == tests_of(helper))
}

/// Finds the names of configuration files in a text.
fn fixtures(text: &str) -> BTreeSet<String> {
    let literals = text.split('"').skip(1).step_by(2);
    let files = literals.filter_map(|literal| literal.rsplit('/').next());
    let files = files.filter(|name| name.split_once('.').is_some_and(|(_, end)| end == "kdl"));
    files.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: &str = "limits.max-header-count";

    fn setting() -> SettingSpec {
        let all = registry::all();
        all.into_iter().find(|one| one.path == PATH).unwrap()
    }

    fn proved_by(test: &str, files: &[(&str, &str)]) -> Option<String> {
        let tree = Tree::from_files(files);
        fault(&Tests::new(&tree), &setting(), test).map(|fault| fault.to_string())
    }

    #[test]
    fn a_function_that_is_not_a_test_proves_nothing() {
        let text = "//! A.\nfn a_b() {\n    start(\"max-header-count 3\");\n}\n";
        let fault = format!("{REGISTRY}: {PATH} is proved by `a_b`, which is not a test");
        assert_eq!(proved_by("a_b", &[("a/tests/a.rs", text)]), Some(fault));
        assert!(proved_by("a_b", &[]).is_some());
    }

    #[test]
    fn a_test_that_never_writes_the_setting_proves_nothing() {
        let text = "//! A.\n#[test]\nfn a_b() {\n    // max-header-count 3\n    start(\"\");\n}\n";
        let fault = format!(
            "{REGISTRY}: {PATH} is proved by `a_b`, which writes none of: max-header-count, \
             max_header_count"
        );
        assert_eq!(proved_by("a_b", &[("a/tests/a.rs", text)]), Some(fault));
    }

    #[test]
    fn a_setting_may_be_written_by_a_helper_or_a_fixture() {
        let direct =
            "//! A.\n#[tokio::test]\nasync fn a_b() {\n    start(\"max-header-count 3\");\n}\n";
        let called =
            "//! A.\n#[test]\nfn a_b() {\n    small();\n}\nfn small() {\n    set(HEADS)\n}\n";
        let support = "//! B.\nconst HEADS: &str = \"max-header-count 3\";\n";
        let read = "//! A.\n#[test]\nfn a_b() {\n    load(\"all.kdl\");\n}\n";
        assert_eq!(proved_by("a_b", &[("a/tests/a.rs", direct)]), None);
        let files = [("a/tests/a.rs", called), ("a/tests/support.rs", support)];
        assert_eq!(proved_by("a_b", &files), None);
        let far = [("a/tests/a.rs", called), ("b/tests/support.rs", support)];
        assert!(proved_by("a_b", &far).is_some());
        let fixture = ("a/tests/fixtures/all.kdl", "limits { max-header-count 3 }");
        assert_eq!(proved_by("a_b", &[("a/tests/a.rs", read), fixture]), None);
    }
}
