//! Requests that the two plans answer differently.

use super::answer::Answer;
use super::cells::conditions::{Field, FieldState, FieldStates, lines, other_method};
use super::cells::hosts::HostCell;
use super::cells::paths::{ASTERISK, PathCell};
use crate::decide::RequestHead;
use crate::explain::ExplainRequest;
use crate::plan::Plan;
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use proxy_model::redacted_parameter;
use proxy_routing::{Head, QueryCondition};
use std::fmt::Write;
use std::net::{IpAddr, Ipv4Addr};

/// Requests that one route or service answers before, and another one after.
#[derive(Clone, Debug)]
pub struct Region {
    /// Names of the listeners in the newer plan; empty if neither plan has listeners.
    pub listeners: Vec<String>,
    /// Hosts with the same conditions.
    pub hosts: Vec<HostCell>,
    /// True if every host is among them.
    pub is_every_host: bool,
    /// Paths with the same conditions.
    pub paths: Vec<PathCell>,
    /// True if every path is among them.
    pub is_every_path: bool,
    /// States of fields that all hold; empty for every method, header and query.
    pub fields: Vec<FieldStates>,
    /// Answer of the older plan.
    pub before: Answer,
    /// Answer of the newer plan.
    pub after: Answer,
    /// An example of the requests.
    pub example: ExplainRequest,
}

/// A request of one cell.
#[derive(Clone, Debug)]
pub(super) struct Probe {
    method: Method,
    host: String,
    target: Option<PathAndQuery>,
    headers: HeaderMap,
}

impl Region {
    /// Returns true if a request is in the region: the listener by its name after, host and path
    /// normalized.
    #[must_use]
    pub fn contains(&self, listener: Option<&str>, head: &Head<'_>) -> bool {
        let is_reachable = match listener {
            Some(listener) => self.listeners.iter().any(|one| one == listener),
            None => self.listeners.is_empty(),
        };
        is_reachable
            && self.hosts.iter().any(|host| host.contains(head.host))
            && self.paths.iter().any(|path| path.contains(head.path))
            && self
                .fields
                .iter()
                .all(|field| field.holds(head.method, head.query, head.headers))
    }
}

impl Region {
    /// The URL of the example, with the values of parameters redacted that have a secret's name.
    #[must_use]
    pub fn example_url(&self) -> String {
        let url = &self.example.url;
        let Some((target, query)) = url.split_once('?') else {
            return url.clone();
        };
        let pairs = query.split('&').map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            QueryCondition::equals(name, value).map_or_else(
                |_| pair.to_owned(),
                |condition| redacted_parameter(&condition),
            )
        });
        format!("{target}?{}", pairs.collect::<Vec<_>>().join("&"))
    }
}

impl Probe {
    pub(super) fn new(host: &HostCell, path: &PathCell, fields: &[FieldStates]) -> Self {
        let mut method = if path.example == ASTERISK {
            Method::OPTIONS
        } else {
            Method::GET
        };
        let mut headers = HeaderMap::new();
        let mut query = String::new();
        for FieldStates {
            field,
            states,
            named,
        } in fields
        {
            let state = states.first().unwrap_or(&FieldState::Absent);
            match field {
                Field::Method => {
                    let other = || other_method(named).to_owned();
                    let name = match state {
                        FieldState::Values(values) => values.first().cloned().unwrap_or_else(other),
                        FieldState::Absent | FieldState::Other => other(),
                    };
                    method = Method::from_bytes(name.as_bytes()).unwrap_or(method);
                }
                Field::Header(name) => {
                    let values = lines(state, named).into_iter();
                    let values = values.filter_map(|value| HeaderValue::from_str(&value).ok());
                    if let Ok(name) = HeaderName::from_bytes(name.as_bytes()) {
                        values.for_each(|value| _ = headers.append(name.clone(), value));
                    }
                }
                Field::Query(name) => add_parameters(&mut query, name, &lines(state, named)),
            }
        }
        let target = match query.as_str() {
            "" => path.example.clone(),
            query => format!("{}?{query}", path.example),
        };
        Self {
            method,
            host: host.example.clone(),
            target: target.parse().ok(),
            headers,
        }
    }

    /// The head on the listener of `plan` with this index.
    pub(super) fn head(&self, plan: &Plan, listener: usize) -> RequestHead<'_> {
        RequestHead {
            listener,
            method: &self.method,
            host: &self.host,
            target: self.target.as_ref(),
            headers: &self.headers,
            content_length: None,
            client_ip: IpAddr::V4(Ipv4Addr::LOCALHOST),
            is_tls: plan.is_tls(listener),
            is_peer_trusted: false,
        }
    }

    /// The request in the form of `proxyd explain`.
    pub(super) fn request(&self, listener: Option<&str>, scheme: &str) -> ExplainRequest {
        let target = self.target.as_ref().map_or("/", PathAndQuery::as_str);
        let is_absolute = !self.host.is_empty() && target != ASTERISK;
        let url = if is_absolute {
            format!("{scheme}://{}{target}", self.host)
        } else {
            target.to_owned()
        };
        let own_host =
            (!is_absolute && !self.host.is_empty()).then(|| ("host".to_owned(), self.host.clone()));
        let headers = self.headers.iter().map(|(name, value)| {
            let value = String::from_utf8_lossy(value.as_bytes());
            (name.to_string(), value.into_owned())
        });
        ExplainRequest {
            method: self.method.to_string(),
            url,
            headers: own_host.into_iter().chain(headers).collect(),
            client_ip: None,
            listener: listener.map(str::to_owned),
        }
    }
}

fn add_parameters(query: &mut String, name: &str, values: &[String]) {
    for value in values {
        if !query.is_empty() {
            query.push('&');
        }
        escape(query, name);
        query.push('=');
        escape(query, value);
    }
}

/// Appends `text` with every byte escaped that is not unreserved. [RFC 3986 §2.3]
fn escape(query: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            query.push(char::from(byte));
        } else {
            // Writing to a `String` cannot fail.
            _ = write!(query, "%{byte:02X}");
        }
    }
}
