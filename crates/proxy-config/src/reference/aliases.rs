//! The reference page of aliases.

use crate::aliases::{Alias, Change, all};

const INTRODUCTION: &str = "\
# Aliases

Made from `proxy-config`; do not edit.

Settings that have another name or place in the system that this configuration language follows. Each is read as
the setting in the second column, with the warning `alias`; `proxyd config migrate FILE -o OUT` replaces it in the
file, and keeps comments and layout. A setting that is written both ways with different values is a fault.
";

/// `docs/reference/aliases.md`: every alias, and every setting without a counterpart.
pub fn aliases_md() -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str("\n## Other names and places\n\n| alias | setting | remark |\n|---|---|---|\n");
    for alias in all().filter(|alias| alias.target().is_some()) {
        let target = alias.target().unwrap_or_default();
        page.push_str(&row(alias, &[&target, alias.remark]));
    }
    page.push_str(
        "\n## Settings with a single accepted value\n\nThe value is the behaviour without the setting. Any other value is a fault.\n\n\
         | setting | remark |\n|---|---|\n",
    );
    for alias in all().filter(|alias| is_implied(alias)) {
        page.push_str(&row(alias, &[alias.remark]));
    }
    page.push_str(
        "\n## Settings without a counterpart\n\nEach is the fault `no-counterpart`.\n\n\
         | setting | workaround |\n|---|---|\n",
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
