//! The JSON document of `/admin/explain`: the route of a described request, which is not sent.

use crate::json_body::parse_members;
use proxy_errors::{Detail, Problem, Reason};
use proxy_plan::{ExplainRequest, KnownHealth, Plan, render};
use serde_json::{Map, Value};

const MEMBERS: [&str; 5] = ["method", "url", "headers", "client_ip", "listener"];

/// Explains the decision of `plan` on the request in `body`, with the current health of targets.
pub(crate) fn document(plan: &Plan, body: &[u8]) -> Result<Value, Problem> {
    let refuse = |wrong| Problem::new(Reason::AdminBodyInvalid, Detail::text(wrong));
    let request = read(body).map_err(refuse)?;
    let explanation = request.ask(plan, &KnownHealth::new(plan));
    explanation
        .map(|explanation| render::json(&explanation))
        .map_err(|error| refuse(error.to_string()))
}

fn read(body: &[u8]) -> Result<ExplainRequest, String> {
    let members = parse_members(body)?;
    let is_known = |name: &&String| !MEMBERS.contains(&name.as_str());
    if let Some(unknown) = members.keys().find(is_known) {
        let known = MEMBERS.join("`, `");
        return Err(format!("`{unknown}` is not known; there are `{known}`"));
    }
    let client_ip = text(&members, "client_ip")?;
    let client_ip = client_ip.map(|address| {
        let parsed = address.parse();
        parsed.map_err(|_| format!("`client_ip`: `{address}` is not an address"))
    });
    Ok(ExplainRequest {
        method: text(&members, "method")?.unwrap_or("GET").to_owned(),
        url: text(&members, "url")?.ok_or("write `url`")?.to_owned(),
        headers: headers(&members)?,
        client_ip: client_ip.transpose()?,
        listener: text(&members, "listener")?.map(str::to_owned),
    })
}

fn text<'m>(members: &'m Map<String, Value>, name: &str) -> Result<Option<&'m str>, String> {
    match members.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(format!("`{name}` is text")),
    }
}

/// Parses `{"name": "value"}`; a list is a repeated field.
fn headers(members: &Map<String, Value>) -> Result<Vec<(String, String)>, String> {
    let wrong = || "`headers` is an object of names with a text or a list of texts".to_owned();
    let written = match members.get("headers") {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::Object(written)) => written,
        Some(_) => return Err(wrong()),
    };
    let mut headers = Vec::new();
    for (name, value) in written {
        let values = value
            .as_array()
            .map_or(std::slice::from_ref(value), Vec::as_slice);
        for value in values {
            let value = value.as_str().ok_or_else(wrong)?;
            headers.push((name.clone(), value.to_owned()));
        }
    }
    Ok(headers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_describes_one_request() {
        let body = r#"{"method": "POST", "url": "/a?b", "client_ip": "2001:db8::1", "listener": "edge",
            "headers": {"X-One": "1", "X-Two": ["2", "3"]}}"#;
        let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = ExplainRequest {
            method: "POST".to_owned(),
            url: "/a?b".to_owned(),
            headers: vec![
                header("X-One", "1"),
                header("X-Two", "2"),
                header("X-Two", "3"),
            ],
            client_ip: Some("2001:db8::1".parse().unwrap()),
            listener: Some("edge".to_owned()),
        };
        assert_eq!(read(body.as_bytes()), Ok(expected));
        assert_eq!(read(br#"{"url": "/"}"#).unwrap().method, "GET");
    }

    #[test]
    fn other_bodies_are_refused() {
        for wrong in [
            "",
            "[]",
            "{}",
            r#"{"url": 7}"#,
            r#"{"url": "/", "url": "/"}"#,
            r#"{"url": "/", "headers": {"A": "1", "A": "2"}}"#,
            r#"{"url": "/", "metod": "GET"}"#,
            r#"{"url": "/", "client_ip": "here"}"#,
            r#"{"url": "/", "headers": ["A: b"]}"#,
            r#"{"url": "/", "headers": {"A": 1}}"#,
        ] {
            assert!(read(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }
}
