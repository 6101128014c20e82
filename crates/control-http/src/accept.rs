//! The kind of answer that a client prefers.

use axum::http::{HeaderMap, header};

/// Returns true if `Accept` prefers HTML over JSON. Equal weights, no field, or only `*/*`, as of
/// most programs: JSON.
pub fn prefers_html(headers: &HeaderMap) -> bool {
    let lines = headers.get_all(header::ACCEPT).iter();
    let lines = lines.filter_map(|line| line.to_str().ok());
    let ranges: Vec<(String, f32)> = lines.flat_map(|line| line.split(',')).map(range).collect();
    let weight = |names: [&str; 3]| {
        let found = names.iter().find_map(|name| {
            let mut of_name = ranges.iter().filter(|(range, _)| range == name);
            of_name.next().map(|(_, weight)| *weight)
        });
        found.unwrap_or(0.0)
    };
    weight(["application/json", "application/*", "*/*"]) < weight(["text/html", "text/*", "*/*"])
}

/// A media range and its weight, 0 to 1. [RFC 9110 §12.4.2]
fn range(element: &str) -> (String, f32) {
    let mut parts = element.split(';').map(str::trim);
    let name = parts.next().unwrap_or_default().to_ascii_lowercase();
    let weight = parts.find_map(|part| part.strip_prefix("q=").or_else(|| part.strip_prefix("Q=")));
    let weight = weight.map_or(1.0, |text| text.parse().unwrap_or(0.0));
    (name, weight)
}

#[cfg(test)]
mod tests {
    use super::*;
    use axum::http::HeaderValue;

    #[test]
    fn browsers_get_html_and_programs_json() {
        for (accept, expected) in [
            (
                "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8",
                true,
            ),
            ("text/html", true),
            ("text/*;q=0.5", true),
            ("*/*", false),
            ("", false),
            ("application/json", false),
            ("application/json, text/html", false),
            ("application/json, text/html;q=0.9", false),
            ("application/json;q=0.9, TEXT/HTML", true),
            ("text/html;q=0", false),
        ] {
            let mut headers = HeaderMap::new();
            headers.insert(header::ACCEPT, HeaderValue::from_static(accept));
            assert_eq!(prefers_html(&headers), expected, "{accept}");
        }
        assert!(!prefers_html(&HeaderMap::new()));
    }
}
