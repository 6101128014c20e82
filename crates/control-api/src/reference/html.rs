//! The HTML page `/api/docs`. It has no script, so the strictest content security policy applies.

use crate::reference::model::{Answer, Field, Kind, Operation, Reference, Schema};
use serde_json::Value;
use std::fmt::Write as _;

/// The style sheet, at `/api/docs/style.css`.
pub(crate) const STYLE: &str = include_str!("../../assets/docs.css");

/// Renders an `OpenAPI` document as an HTML page.
pub(crate) fn page(document: &Value) -> String {
    let reference = Reference::read(document);
    let Reference {
        title,
        about,
        groups,
        schemas,
    } = &reference;
    let mut html = String::new();
    write!(
        html,
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{0}</title>\n<link rel=\"stylesheet\" href=\"/api/docs/style.css\">\n</head>\n\
         <body>\n<a class=\"skip\" href=\"#main\">To the interface</a>\n<nav aria-label=\"Contents\">\n<p><strong>{0}</strong></p>\n<ul>\n",
        escaped(title)
    )
    .unwrap_or_default();
    for group in groups {
        let name = escaped(&group.name);
        writeln!(html, "<li><a href=\"#{name}\">{name}</a></li>").unwrap_or_default();
    }
    write!(
        html,
        "<li><a href=\"#schemas\">schemas</a></li>\n</ul>\n\
         <p><a href=\"/api/v1/openapi.json\">openapi.json</a></p>\n</nav>\n<main id=\"main\" tabindex=\"-1\">\n\
         <h1>{}</h1>\n<p>{}</p>\n",
        escaped(title),
        escaped(about)
    )
    .unwrap_or_default();
    for group in groups {
        let name = escaped(&group.name);
        writeln!(html, "<section>\n<h2 id=\"{name}\">{name}</h2>").unwrap_or_default();
        for operation in &group.operations {
            describe(&mut html, operation);
        }
        html.push_str("</section>\n");
    }
    html.push_str("<section>\n<h2 id=\"schemas\">schemas</h2>\n");
    for schema in schemas {
        describe_schema(&mut html, schema);
    }
    html.push_str("</section>\n</main>\n</body>\n</html>\n");
    html
}

fn describe(html: &mut String, operation: &Operation) {
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
    write!(
        html,
        "<details>\n<summary><code>{method}</code> <code>{}</code> {}</summary>\n\
         <div id=\"{}\">\n<p>For {}.</p>\n",
        escaped(path),
        escaped(about),
        escaped(id),
        escaped(access)
    )
    .unwrap_or_default();
    if !parameters.is_empty() {
        fields(html, "Parameters", parameters);
    }
    if let Some(body) = body {
        writeln!(html, "<p>Body: {}</p>", kind_text(body)).unwrap_or_default();
    }
    html.push_str("<table>\n<caption>Answers</caption>\n");
    html.push_str(
        "<thead><tr><th scope=\"col\">status</th><th scope=\"col\">body</th>\
         <th scope=\"col\">meaning</th></tr></thead>\n",
    );
    for answer in answers {
        let Answer {
            status,
            about,
            body,
        } = answer;
        let body = body.as_ref().map(kind_text).unwrap_or_default();
        let about = escaped(about);
        writeln!(
            html,
            "<tr><td>{status}</td><td>{body}</td><td>{about}</td></tr>"
        )
        .unwrap_or_default();
    }
    writeln!(
        html,
        "</table>\n<pre tabindex=\"0\" role=\"group\" aria-label=\"As a command\">{}</pre>\n</div>\n</details>",
        command(operation)
    )
    .unwrap_or_default();
}

/// The request as a `curl` command line.
fn command(operation: &Operation) -> String {
    let Operation {
        method, path, body, ..
    } = operation;
    let method = match method.as_str() {
        "GET" => String::new(),
        other => format!(" -X {other}"),
    };
    let data = match body {
        None => "",
        Some(_) => " \\\n  -H 'Content-Type: application/json' -d @body.json",
    };
    let path = escaped(path);
    format!(
        "curl{method} \"$CONTROLD_URL{path}\" \\\n  -H \"Authorization: Bearer $CONTROLD_API_KEY\"{data}"
    )
}

fn describe_schema(html: &mut String, schema: &Schema) {
    let Schema {
        name,
        about,
        fields: properties,
        values,
    } = schema;
    let name = escaped(name);
    writeln!(
        html,
        "<details>\n<summary><code>{name}</code> {}</summary>\n<div id=\"schema-{name}\">",
        escaped(about)
    )
    .unwrap_or_default();
    if !values.is_empty() {
        let values: Vec<String> = values
            .iter()
            .map(|value| format!("<code>{}</code>", escaped(value)))
            .collect();
        writeln!(html, "<p>One of {}.</p>", values.join(", ")).unwrap_or_default();
    }
    if !properties.is_empty() {
        fields(html, "Fields", properties);
    }
    html.push_str("</div>\n</details>\n");
}

fn fields(html: &mut String, caption: &str, fields: &[Field]) {
    writeln!(
        html,
        "<table>\n<caption>{caption}</caption>\n\
         <thead><tr><th scope=\"col\">name</th><th scope=\"col\">type</th>\
         <th scope=\"col\">meaning</th></tr></thead>"
    )
    .unwrap_or_default();
    for field in fields {
        let Field {
            name,
            place,
            kind,
            required,
            about,
        } = field;
        let need = if *required { "" } else { ", may be absent" };
        let place = if place.is_empty() {
            String::new()
        } else {
            format!("in {place}: ")
        };
        writeln!(
            html,
            "<tr><td><code>{}</code></td><td>{place}{}{need}</td><td>{}</td></tr>",
            escaped(name),
            kind_text(kind),
            escaped(about)
        )
        .unwrap_or_default();
    }
    html.push_str("</table>\n");
}

fn kind_text(kind: &Kind) -> String {
    let Kind { words, schema } = kind;
    let words = escaped(words);
    match schema {
        None => words,
        Some(name) => {
            let name = escaped(name);
            format!("{words}<a href=\"#schema-{name}\">{name}</a>")
        }
    }
}

fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}
