//! Generates `docs/reference/api.md`.

use crate::reference::model::{Answer, Field, Kind, Operation, Reference, Schema};
use serde_json::Value;
use std::fmt::Write as _;

const OPENING: &str = "\
<!-- Written by `cargo xtask reference` from the handlers; changes here are lost. -->

All paths are below the control plane's address. Answers are JSON, identifiers are UUIDs of version 7,
times are RFC 3339. [Running the control plane](../operate/control-plane.md) describes keys and addresses. The
operations of organizations, projects, nodes and bundles are also commands of [`controld ctl`](ctl.md), which works with an
API key; those of a person's own sign-in, session and account, and those that nodes call, are not. A running `controld` shows this page at
`/api/docs`, and its description in OpenAPI 3.1 at `/api/v1/openapi.json`.

Every operation may answer 400, 429, 500 and 503; one that needs a credential 401 and 403; one that
writes 409, 412, 413, 415 and 422, and a list with `sort` 422. All failures have the body `ErrorResponse`.
";

/// Renders an `OpenAPI` document as Markdown.
pub fn reference_md(description: &Value) -> String {
    let reference = Reference::read(description);
    let mut page = format!("# Interface of the control plane\n\n{OPENING}");
    for group in &reference.groups {
        write!(page, "\n## {}\n", group.name).unwrap_or_default();
        for operation in &group.operations {
            describe(&mut page, operation);
        }
    }
    page.push_str("\n## Schemas\n");
    for schema in &reference.schemas {
        describe_schema(&mut page, schema);
    }
    page
}

fn describe(page: &mut String, operation: &Operation) {
    let Operation {
        id,
        method,
        path,
        about,
        access,
        parameters,
        body,
        answers,
    } = operation;
    write!(page, "\n### {method} `{path}`\n\n{about}\n\n").unwrap_or_default();
    writeln!(page, "`{id}`, for {access}.").unwrap_or_default();
    let own = parameters.iter().filter(|field| field.place == "query");
    let own: Vec<&Field> = own.collect();
    if !own.is_empty() {
        page.push_str("\n| parameter | type | meaning |\n|---|---|---|\n");
        for field in own {
            row(page, field);
        }
    }
    if let Some(body) = body {
        writeln!(page, "\nBody: {}.", kind_text(body)).unwrap_or_default();
    }
    for answer in answers
        .iter()
        .filter(|answer| answer.status.starts_with('2'))
    {
        let Answer {
            status,
            about: _,
            body,
        } = answer;
        let body = body.as_ref().map_or("no body".to_owned(), kind_text);
        writeln!(page, "\nAnswer {status}: {body}.").unwrap_or_default();
    }
}

fn describe_schema(page: &mut String, schema: &Schema) {
    let Schema {
        name,
        about,
        fields,
        values,
    } = schema;
    write!(page, "\n### {name}\n").unwrap_or_default();
    if !about.is_empty() {
        write!(page, "\n{about}\n").unwrap_or_default();
    }
    if !values.is_empty() {
        let values: Vec<String> = values.iter().map(|value| format!("`{value}`")).collect();
        write!(page, "\nOne of {}.\n", values.join(", ")).unwrap_or_default();
    }
    if !fields.is_empty() {
        page.push_str("\n| field | type | meaning |\n|---|---|---|\n");
        for field in fields {
            row(page, field);
        }
    }
}

fn row(page: &mut String, field: &Field) {
    let Field {
        name,
        place: _,
        kind,
        required,
        about,
    } = field;
    let optional = if *required { "" } else { "; may be absent" };
    let about = about.replace('\n', " ").replace('|', "\\|");
    writeln!(
        page,
        "| `{name}` | {}{optional} | {about} |",
        kind_text(kind)
    )
    .unwrap_or_default();
}

fn kind_text(kind: &Kind) -> String {
    let Kind { words, schema } = kind;
    match schema {
        None => words.clone(),
        Some(name) => format!("{words}[{name}](#{})", name.to_lowercase()),
    }
}
