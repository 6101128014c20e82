//! Check: modules of a crate do not depend on each other in a circle, directly or indirectly. The
//! same applies to its rooms: the modules of its root with all their contents. Dependencies are the
//! paths in the code, except in tests.

use crate::tidy::source::Source;
use crate::tidy::tree::Tree;
use crate::tidy::violation::Violation;
use std::collections::{BTreeMap, BTreeSet};

/// Names of a module from the crate's root; empty for the root.
type Module = Vec<String>;

/// Modules that a module uses, each with one path as an example.
type Uses = BTreeMap<Module, String>;

/// Permitted circles of rooms, by the crate's folder. Entries are only ever removed.
const KNOWN_CIRCLES: &[(&str, &[&str])] = &[];

/// Returns a violation for each circle, with the paths that form it.
pub(in crate::tidy) fn violations(tree: &Tree) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (folder, uses) in crates(tree) {
        let modules = in_circles(folder, "modules", &uses, &[]);
        // Rooms are not checked then, because a circle of modules is also one of rooms.
        if !modules.is_empty() {
            violations.extend(modules);
            continue;
        }
        let known = KNOWN_CIRCLES.iter().filter(|(known, _)| *known == folder);
        let known: Vec<&[&str]> = known.map(|(_, rooms)| *rooms).collect();
        violations.extend(in_circles(folder, "rooms", &rooms(&uses), &known));
    }
    violations
}

/// Returns a violation for each circle that is not permitted, and for each permitted one that no
/// longer exists.
fn in_circles(
    folder: &str,
    kind: &str,
    uses: &BTreeMap<Module, Uses>,
    known: &[&[&str]],
) -> Vec<Violation> {
    let circles = circles(uses);
    let is = |circle: &[&Module], known: &[&str]| {
        let circle = circle.iter().map(|module| written(module));
        circle.eq(known.iter().map(|room| (*room).to_owned()))
    };
    let mut violations = Vec::new();
    for circle in &circles {
        if !known.iter().any(|known| is(circle, known)) {
            let listed = listed(circle, uses);
            let what = format!("{kind} use each other in a circle: {listed}");
            violations.push(Violation::whole(folder, what));
        }
    }
    for known in known {
        if !circles.iter().any(|circle| is(circle, known)) {
            let what = format!("no longer a circle, remove it from the list: {known:?}");
            violations.push(Violation::whole(folder, what));
        }
    }
    violations
}

/// Returns the uses between rooms. The root itself is not a room.
fn rooms(uses: &BTreeMap<Module, Uses>) -> BTreeMap<Module, Uses> {
    let mut rooms: BTreeMap<Module, Uses> = BTreeMap::new();
    for (module, uses) in uses {
        let Some(room) = module.first() else {
            continue;
        };
        if module.last().is_some_and(|name| name == "tests") {
            continue;
        }
        let used = rooms.entry(vec![room.clone()]).or_default();
        for (target, path) in uses {
            if let Some(target) = target.first().filter(|target| *target != room) {
                used.entry(vec![target.clone()])
                    .or_insert_with(|| path.clone());
            }
        }
    }
    rooms
}

/// Returns the uses of each module, by the crate's folder.
fn crates(tree: &Tree) -> BTreeMap<&str, BTreeMap<Module, Uses>> {
    let mut sources: BTreeMap<&str, BTreeMap<Module, &Source>> = BTreeMap::new();
    for (file, source) in tree.rust() {
        if let Some((folder, module)) = place(&file.path) {
            sources.entry(folder).or_default().insert(module, source);
        }
    }
    let crates = sources.iter();
    crates.map(|(folder, of)| (*folder, uses(of))).collect()
}

/// Lists the uses that form a circle, in the order of its modules.
fn listed(circle: &[&Module], uses: &BTreeMap<Module, Uses>) -> String {
    let mut shown = Vec::new();
    for module in circle {
        let within = uses.get(*module).into_iter().flatten();
        let within = within.filter(|(target, _)| circle.contains(target));
        shown.extend(within.map(|(target, path)| {
            format!("{} → {} by `{path}`", written(module), written(target))
        }));
    }
    shown.join(", ")
}

/// Returns the crate's folder and the module of a file; `None` outside of crates.
fn place(path: &str) -> Option<(&str, Module)> {
    let (folder, inside) = path.split_once("/src/")?;
    let mut names: Module = inside
        .strip_suffix(".rs")?
        .split('/')
        .map(str::to_owned)
        .collect();
    if names.last().is_some_and(|name| name == "mod") {
        names.pop();
    }
    if let [only] = names.as_slice()
        && matches!(only.as_str(), "lib" | "main")
    {
        names.clear();
    }
    Some((folder, names))
}

fn uses(modules: &BTreeMap<Module, &Source>) -> BTreeMap<Module, Uses> {
    let mut all = BTreeMap::new();
    for (module, source) in modules {
        let code = source
            .code
            .get(..source.tests_start)
            .unwrap_or_default()
            .join("\n");
        let mut uses = Uses::new();
        for path in paths(&code) {
            let target = target(modules, module, &path).filter(|target| target != module);
            if let Some(target) = target {
                uses.entry(target).or_insert_with(|| path.join("::"));
            }
        }
        all.insert(module.clone(), uses);
    }
    all
}

/// Returns the module of the same crate that a path refers to.
fn target(modules: &BTreeMap<Module, &Source>, from: &Module, path: &[String]) -> Option<Module> {
    let (first, mut rest) = path.split_first()?;
    let mut at = match first.as_str() {
        "crate" => Module::new(),
        "self" => from.clone(),
        "super" => parent(from),
        child => {
            let mut at = from.clone();
            at.push(child.to_owned());
            modules.contains_key(&at).then_some(at)?
        }
    };
    while let Some((name, more)) = rest.split_first() {
        if name == "super" {
            at = parent(&at);
        } else {
            let mut deeper = at.clone();
            deeper.push(name.clone());
            if !modules.contains_key(&deeper) {
                break;
            }
            at = deeper;
        }
        rest = more;
    }
    Some(at)
}

fn parent(module: &Module) -> Module {
    let mut parent = module.clone();
    parent.pop();
    parent
}

/// Returns all paths with `::`. A group in braces is one path per member.
fn paths(code: &str) -> Vec<Vec<String>> {
    let mut paths = Vec::new();
    let mut rest = code;
    let mut before = ' ';
    while let Some(c) = rest.chars().next() {
        let starts = (c.is_alphabetic() || c == '_') && !matches!(before, ':' | '.' | '\'' | '$');
        if !starts {
            before = c;
            rest = rest.get(c.len_utf8()..).unwrap_or_default();
            continue;
        }
        let consumed = code.len() - rest.len();
        let in_visibility = code
            .get(..consumed)
            .is_some_and(|code| code.ends_with("(in "));
        let mut found = Vec::new();
        rest = tree(rest, &[], &mut found);
        before = 'a';
        if !in_visibility {
            paths.extend(found.into_iter().filter(|path| path.len() > 1));
        }
    }
    paths
}

/// Parses a path or `use` tree, adds its paths to `found`, and returns the rest.
fn tree<'a>(text: &'a str, prefix: &[String], found: &mut Vec<Vec<String>>) -> &'a str {
    let mut path = prefix.to_vec();
    let mut rest = text;
    loop {
        let end = rest
            .find(|c: char| !c.is_alphanumeric() && c != '_')
            .unwrap_or(rest.len());
        let (name, after) = rest.split_at_checked(end).unwrap_or((rest, ""));
        // `{self}` is the module itself.
        if !name.is_empty() && (path.is_empty() || name != "self") {
            path.push(name.to_owned());
        }
        rest = after;
        let Some(after) = rest.strip_prefix("::") else {
            break;
        };
        rest = after;
        if let Some(group) = rest.strip_prefix('{') {
            return self::group(group, &path, found);
        }
    }
    found.push(path);
    rest
}

fn group<'a>(text: &'a str, prefix: &[String], found: &mut Vec<Vec<String>>) -> &'a str {
    let mut rest = text;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',' || c == '*');
        let Some(first) = rest.chars().next() else {
            return rest;
        };
        if first == '}' {
            return rest.get(1..).unwrap_or_default();
        }
        if first.is_alphabetic() || first == '_' {
            rest = tree(rest, prefix, found);
            // Skips the new name in `as Name`.
            let end = rest.find([',', '}']).unwrap_or(rest.len());
            rest = rest.get(end..).unwrap_or_default();
        } else {
            // A block after a path that ends in `::`, which is invalid code.
            return rest;
        }
    }
}

/// Returns the strongly connected components with more than one module, sorted by name.
fn circles(uses: &BTreeMap<Module, Uses>) -> Vec<Vec<&Module>> {
    let reached: BTreeMap<&Module, BTreeSet<&Module>> = uses
        .keys()
        .map(|module| (module, reach(uses, module)))
        .collect();
    let reaches =
        |from: &Module, to: &Module| reached.get(from).is_some_and(|set| set.contains(to));
    let mut placed: BTreeSet<&Module> = BTreeSet::new();
    let mut circles = Vec::new();
    for module in uses.keys() {
        if placed.contains(module) || !reaches(module, module) {
            continue;
        }
        let circle: Vec<&Module> = uses
            .keys()
            .filter(|other| reaches(module, other) && reaches(other, module))
            .collect();
        placed.extend(&circle);
        circles.push(circle);
    }
    circles
}

fn reach<'a>(uses: &'a BTreeMap<Module, Uses>, from: &Module) -> BTreeSet<&'a Module> {
    let mut seen = BTreeSet::new();
    let mut open: Vec<&Module> = uses.get(from).into_iter().flat_map(Uses::keys).collect();
    while let Some(module) = open.pop() {
        if seen.insert(module) {
            open.extend(uses.get(module).into_iter().flat_map(Uses::keys));
        }
    }
    seen
}

fn written(module: &Module) -> String {
    if module.is_empty() {
        "crate".to_owned()
    } else {
        module.join("::")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tidy::violation::rendered;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: Vec<(String, &str)> = files
            .iter()
            .map(|(name, text)| (format!("crates/a/src/{name}"), *text))
            .collect();
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, text)| (path.as_str(), *text))
            .collect();
        rendered(&violations(&Tree::from_files(&files)))
    }

    /// Formats the violation of a circle.
    fn circle(uses: &str) -> [String; 1] {
        [format!(
            "crates/a: modules use each other in a circle: {uses}"
        )]
    }

    #[test]
    fn modules_that_use_each_other_are_a_cycle() {
        let root = ("lib.rs", "mod b;\nmod c;\nmod d;\n");
        let b = ("b.rs", "use crate::c::{D, e as f};\nfn a() {}\n");
        let d = ("d.rs", "use super::b::A;\n");
        let sound = [root, b, ("c.rs", "use std::fmt;\n"), d];
        assert_eq!(found(&sound), [""; 0]);
        let round = [root, b, ("c.rs", "fn a() {\n    crate::d::go();\n}\n"), d];
        assert_eq!(
            found(&round),
            circle("b → c by `crate::c::D`, c → d by `crate::d::go`, d → b by `super::b::A`")
        );
    }

    #[test]
    fn a_parent_and_its_child_are_two_modules() {
        let parent = (
            "b.rs",
            "mod c;\npub(crate) use self::c::C;\npub(crate) struct B;\n",
        );
        let bare = ("b.rs", "mod c;\nfn go() {\n    c::go();\n}\n");
        let child = ("b/c.rs", "use super::B;\n");
        let up = "b::c → b by `super::B`";
        let down = circle(&format!("b → b::c by `self::c::C`, {up}"));
        assert_eq!(found(&[parent, child]), down);
        let down = circle(&format!("b → b::c by `c::go`, {up}"));
        assert_eq!(found(&[bare, child]), down);
        assert_eq!(
            found(&[parent, ("b/c.rs", "use super::super::d::D;\n")]),
            [""; 0]
        );
    }

    #[test]
    fn rooms_that_use_each_other_are_a_cycle() {
        let root = ("lib.rs", "mod b;\nmod c;\n");
        let rooms = [("b.rs", "mod d;\nmod e;\n"), ("c.rs", "mod f;\n")];
        let down = ("b/d.rs", "use crate::c::f::F;\n");
        let (up, sound) = (("c/f.rs", "use crate::b::e::E;\n"), ("c/f.rs", ""));
        let [b, c] = rooms;
        assert_eq!(found(&[root, b, c, down, sound, ("b/e.rs", "")]), [""; 0]);
        assert_eq!(
            found(&[root, b, c, down, up, ("b/e.rs", "")]),
            [
                "crates/a: rooms use each other in a circle: b → c by `crate::c::f::F`, c → b by \
              `crate::b::e::E`"
            ]
        );
        let test = ("c/tests.rs", "use crate::b::e::E;\n");
        assert_eq!(found(&[root, b, c, down, test]), [""; 0]);
    }

    #[test]
    fn a_known_circle_is_listed_until_it_is_gone() {
        let tree = |text| {
            Tree::from_files(&[
                ("crates/a/src/b.rs", "mod d;\nmod e;\n"),
                ("crates/a/src/b/d.rs", "use crate::c::C;\n"),
                ("crates/a/src/b/e.rs", ""),
                ("crates/a/src/c.rs", text),
            ])
        };
        let found = |text| {
            let tree = tree(text);
            let crates = crates(&tree);
            let uses = rooms(crates.get("crates/a").unwrap());
            rendered(&in_circles("crates/a", "rooms", &uses, &[&["b", "c"]]))
        };
        assert_eq!(found("use crate::b::e::E;\n"), [""; 0]);
        assert_eq!(
            found(""),
            ["crates/a: no longer a circle, remove it from the list: [\"b\", \"c\"]"]
        );
    }

    #[test]
    fn the_root_is_a_module_and_groups_are_followed() {
        let root = ("lib.rs", "mod b;\npub use b::{self, c::{D, E}};\n");
        let leaf = ("b.rs", "use crate::Other;\n");
        let uses = "crate → b by `b::c::D`, b → crate by `crate::Other`";
        assert_eq!(found(&[root, leaf]), circle(uses));
    }

    #[test]
    fn tests_visibility_and_other_crates_make_no_circle() {
        let root = ("lib.rs", "mod b;\nmod c;\nuse b::B;\n");
        let b = "pub(in crate::c) struct B;\nuse other::c::D;\n#[cfg(test)]\nmod tests {\n    use \
                 crate::c::C;\n}\n";
        assert_eq!(
            found(&[root, ("b.rs", b), ("c.rs", "use crate::b::B;\n")]),
            [""; 0]
        );
    }
}
