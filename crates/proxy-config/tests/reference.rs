//! The generated pages hold every setting and every code, and their examples are valid.

use proxy_config::reference::{config_md, faults_md, schema_json};
use proxy_config::{DiagnosticCode, parse};
use proxy_model::registry;
use serde_json::Value;

#[test]
fn every_setting_has_a_row() {
    let page = config_md();
    for spec in registry::all() {
        assert!(
            page.contains(&format!("\n| `{}`", spec.name())),
            "{}",
            spec.path
        );
    }
    let rows = page.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, registry::all().len());
    let columns = |line: &&str| line.replace("\\|", "").matches('|').count();
    let tables = page.lines().filter(|line| line.starts_with('|'));
    assert!(tables.into_iter().all(|line| columns(&line) == 5));
}

#[test]
fn every_example_of_the_page_can_be_loaded() {
    let page = config_md();
    let mut examples = page.split("```kdl\n").skip(1).peekable();
    assert!(examples.peek().is_some());
    for example in examples {
        let (text, _) = example.split_once("```").unwrap();
        assert!(parse(text, "example.kdl").is_ok(), "{text}");
    }
}

#[test]
fn every_fault_has_a_row_and_a_name_of_its_own() {
    let page = faults_md();
    for code in DiagnosticCode::ALL.iter().copied() {
        assert_eq!(page.matches(&format!("| `{code}` |")).count(), 1, "{code}");
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        assert!(code.name().chars().all(is_plain), "{code}");
    }
}

#[test]
fn the_schema_holds_every_setting_with_its_range() {
    let schema: Value = serde_json::from_str(&schema_json()).unwrap();
    assert_eq!(
        schema["$schema"],
        "https://json-schema.org/draft/2020-12/schema"
    );
    let listener = &schema["properties"]["listeners"]["properties"]["listener"];
    let header =
        &listener["additionalProperties"]["properties"]["timeouts"]["properties"]["header-secs"];
    assert_eq!(header["minimum"], 1);
    assert_eq!(header["maximum"], 3600);
    assert_eq!(header["default"], 30);
    assert_eq!(
        listener["additionalProperties"]["required"],
        serde_json::json!(["address"])
    );

    let text = schema.to_string();
    for spec in registry::all() {
        assert!(
            text.contains(&format!("{:?}:", spec.name())),
            "{}",
            spec.path
        );
    }
}
