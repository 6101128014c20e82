//! The reference page of aliases.

use crate::aliases::{Alias, Change, all};

const INTRODUCTION: &str = "\
# Aliases

Made from `proxy-config`; do not edit.

Settings that have another name or another place in the system that this one follows. They are read as the
settings here, each with the warning `alias`; `proxyd config migrate FILE -o OUT` writes ours into the file, and
keeps comments and layout. A setting that is written both ways with different values is a fault.
";

/// `docs/reference/aliases.md`: every alias, and every setting without a counterpart.
pub fn aliases_md() -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n## Other names and places\n\n| there | here | remark |\n|---|---|---|\n");
    for alias in all().filter(|alias| alias.target().is_some()) {
        let target = alias.target().unwrap_or_default();
        page.push_str(&row(alias, &[&target, alias.remark]));
    }
    page.push_str(
        "\n## Settings that say what holds without them\n\nWith any other value they are faults.\n\n\
         | there | remark |\n|---|---|\n",
    );
    for alias in all().filter(|alias| is_implied(alias)) {
        page.push_str(&row(alias, &[alias.remark]));
    }
    page.push_str(
        "\n## Settings without a counterpart\n\nEach is the fault `no-counterpart`.\n\n\
         | there | instead |\n|---|---|\n",
    );
    for alias in all() {
        if matches!(alias.change, Change::Missing) {
            page.push_str(&row(alias, &[alias.remark]));
        }
    }
    page
}

fn is_implied(alias: &Alias) -> bool {
    matches!(alias.change, Change::Moved([], _))
}

fn row(alias: &Alias, cells: &[&str]) -> String {
    let places = alias.places().join("`, `");
    format!("| `{places}` | {} |\n", cells.join(" | "))
}

/// The places of all settings that are aliases or have no counterpart.
pub fn alias_places() -> Vec<String> {
    let aliases = all().filter(|alias| !matches!(alias.change, Change::Group));
    aliases.flat_map(Alias::places).collect()
}
