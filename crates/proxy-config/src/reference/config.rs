//! The reference page of settings.

use proxy_model::registry::{self, Presence, SettingSpec, Shape, Word, show_size};

const INTRODUCTION: &str = "\
# Configuration

Made from the registry in `proxy-model`; do not edit.

A configuration is a [KDL](https://kdl.dev) file, version 2 or 1. Blocks may stand in any order and
more than once: lists are joined; a single setting that is there twice is a fault, and so is a value
that a list has twice. Nothing is ignored: a name, a word or a value that is not known here is a fault with its place.

- A setting with one value may be written as a property as well: `access-log path=\"access.log\"`.
- Times end in `-secs` or `-ms`, and either may be written for the other: `connect-ms 250`.
- Sizes are bytes, or text with a unit: `\"500MB\"` is 500 × 10^6, `\"500MiB\"` is 500 × 2^20.
- In words, `-` and `_` are the same: `round_robin`, `round-robin`.
- Files and folders are relative to the folder of the file that names them.
- `{$NAME}` in a value is the environment variable of that name when the file is read, `{$NAME:default}` with a
  default: `address \"0.0.0.0:{$PORT:8080}\"`. A setting that takes only a number or only a switch takes one from a text with
  variables. A variable that is not set is a fault unless it has a default. A raw text, `#\"…\"#`, is taken as it
  is, and bundles of a control plane hold no variables.

This is what holds without a file:

```kdl
";

/// `docs/reference/config.md`: every setting, by block.
pub fn config_md() -> String {
    let mut page = INTRODUCTION.to_owned();
    page.push_str(include_str!("../embedded.kdl"));
    page.push_str("```\n");
    let settings = registry::all();
    page.push_str(&section("The top of a file", "", &settings));
    for block in &settings {
        if let Shape::Block { argument } = block.shape {
            let path = block.path.replace('.', " > ");
            let argument = argument.map_or(String::new(), |what| format!(" \"{what}\""));
            page.push_str(&section(
                &format!("`{path}{argument}`"),
                block.path,
                &settings,
            ));
        } else if settings.iter().any(|setting| setting.block() == block.path) {
            let path = block.path.replace('.', " > ");
            page.push_str(&section(&format!("`{path}`"), block.path, &settings));
        }
    }
    page
}

fn section(heading: &str, block: &str, settings: &[SettingSpec]) -> String {
    let within: Vec<&SettingSpec> = settings
        .iter()
        .filter(|s| s.block() == block && !s.path.is_empty())
        .collect();
    if within.is_empty() {
        return String::new();
    }
    let about = settings.iter().find(|setting| setting.path == block);
    let about = about.map_or(String::new(), |about| {
        format!("{}\n\n", one_line(&about.doc))
    });
    let rows: String = within.into_iter().map(row).collect();
    let columns = "| setting | value | without it | meaning |\n|---|---|---|---|";
    format!("\n## {heading}\n\n{about}{columns}\n{rows}")
}

fn row(setting: &SettingSpec) -> String {
    let aliases = setting.aliases.iter().map(String::as_str);
    let names: Vec<String> = std::iter::once(setting.name())
        .chain(aliases)
        .map(|name| format!("`{name}`"))
        .collect();
    let deprecated = setting.deprecated;
    let deprecated = deprecated.map_or(String::new(), |new| {
        format!("*Deprecated*: write `{new}`. ")
    });
    let places = setting.also.iter().map(|block| match *block {
        "" => " Allowed at the top of a file.".to_owned(),
        block => format!(" Allowed in `{}`.", block.replace('.', " > ")),
    });
    let places: String = places.collect();
    let meaning = format!(
        "{deprecated}{}{places}{}",
        one_line(&setting.doc),
        words(&setting.shape)
    );
    let absent = match &setting.presence {
        Presence::Required => "a fault".to_owned(),
        Presence::Unset(means) => (*means).to_owned(),
        Presence::Repeatable => "none".to_owned(),
        Presence::Default(value) => format!("`{value}`"),
    };
    let value = value(setting);
    let cells = [names.join(", "), value, absent, meaning].map(|cell| cell.replace('|', "\\|"));
    format!("| {} |\n", cells.join(" | "))
}

/// Description of the values that a setting accepts.
fn value(setting: &SettingSpec) -> String {
    let many = matches!(setting.presence, Presence::Repeatable);
    let value = match &setting.shape {
        Shape::Flag => "`#true` or `#false`".to_owned(),
        Shape::Integer {
            least,
            greatest,
            unit,
            words,
        } => {
            let words: Vec<String> = words
                .iter()
                .map(|(word, _)| format!(", `{word}`"))
                .collect();
            let words = words.concat();
            with_unit(&format!("{least} to {greatest}{words}"), unit)
        }
        Shape::Decimal {
            least,
            greatest,
            unit,
        } => with_unit(&format!("{least:?} to {greatest:?}"), unit),
        Shape::Size { least, greatest } => {
            format!("{} to {}", show_size(*least), show_size(*greatest))
        }
        Shape::Time {
            least_ms,
            greatest_ms,
        } => {
            let in_ms = setting.name().ends_with("-ms");
            let (unit, per) = if in_ms {
                ("milliseconds", 1)
            } else {
                ("seconds", 1_000)
            };
            format!("{} to {} {unit}", least_ms.div_ceil(per), greatest_ms / per)
        }
        Shape::Choice(words) => {
            let words: Vec<String> = words
                .iter()
                .map(|word| format!("`{}`", word.name))
                .collect();
            words.join(", ")
        }
        Shape::Text { what, example, .. } => format!("{what}, as `\"{example}\"`"),
        Shape::Pair { what, example } => format!("{what}, as `{example}`"),
        Shape::Block {
            argument: Some(what),
        } => format!("{what}, and a block"),
        Shape::Block { argument: None } => "a block".to_owned(),
    };
    if many && !matches!(setting.shape, Shape::Block { .. }) {
        return format!("any number of: {value}");
    }
    value
}

fn with_unit(range: &str, unit: &str) -> String {
    match unit {
        "" => range.to_owned(),
        unit => format!("{range} {unit}"),
    }
}

/// The meaning of each word that a setting accepts.
fn words(shape: &Shape) -> String {
    let row = |word: &Word| format!(" `{}`: {}.", word.name, word.doc);
    match shape {
        Shape::Choice(words) => words.iter().map(row).collect(),
        Shape::Text { .. }
        | Shape::Flag
        | Shape::Integer { .. }
        | Shape::Decimal { .. }
        | Shape::Size { .. }
        | Shape::Time { .. }
        | Shape::Pair { .. }
        | Shape::Block { .. } => String::new(),
    }
}

fn one_line(text: &str) -> String {
    text.replace('\n', " ")
}
