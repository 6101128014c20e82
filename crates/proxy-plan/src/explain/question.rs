//! A request to be explained, as given by operators and programs.

use super::explanation::Explanation;
use crate::decide::RequestHead;
use crate::plan::Plan;
use crate::upstream_states::UpstreamStates;
use http::header::{CONTENT_LENGTH, HOST};
use http::uri::PathAndQuery;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use proxy_model::{BindAddress, Listener, ListenerProtocol};
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

/// A request to be explained.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ExplainRequest {
    /// The method, in upper case.
    pub method: String,
    /// A path with or without a query, or an absolute `http` or `https` URL.
    pub url: String,
    /// Header fields. A `Host` here has precedence over the URL's.
    pub headers: Vec<(String, String)>,
    /// The client's address.
    pub client_ip: Option<IpAddr>,
    /// The listener's name. Without one it is the first listener of the URL's port and scheme, else
    /// of its scheme, else the first of all.
    pub listener: Option<String>,
}

/// The reason why a request cannot be explained.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ExplainError {
    /// The method is not a token.
    #[error("`{0}` is not a method")]
    Method(String),
    /// The URL is neither a path nor an absolute URL.
    #[error("`{0}` is neither a path that begins with `/` nor an http or https URL")]
    Url(String),
    /// A header is not `Name: value`.
    #[error("`{0}` is not a header; write `Name: value`")]
    Header(String),
    /// There are two `Host` fields.
    #[error("there are two `Host` headers")]
    TwoHosts,
    /// `Content-Length` is not a number.
    #[error("`{0}` is not a content length")]
    ContentLength(String),
    /// No listener has this name.
    #[error("there is no listener `{name}`; there are: {}", known.join(", "))]
    Listener {
        /// The given name.
        name: String,
        /// All names.
        known: Vec<String>,
    },
}

/// A parsed URL.
#[derive(Debug)]
struct Parts {
    protocol: Option<ListenerProtocol>,
    authority: String,
    // `None` for `CONNECT`.
    target: Option<PathAndQuery>,
}

impl ExplainRequest {
    /// Parses `Name: value`, as given by `-H`.
    ///
    /// # Errors
    /// [`ExplainError::Header`] without a colon, or for an invalid name or value.
    pub fn header(line: &str) -> Result<(String, String), ExplainError> {
        let fault = || ExplainError::Header(line.to_owned());
        let (name, value) = line.split_once(':').ok_or_else(fault)?;
        let pair = (name.to_owned(), value.trim().to_owned());
        read_header(&pair)?;
        Ok(pair)
    }

    /// Explains the decision of `plan` on the request.
    ///
    /// # Errors
    /// [`ExplainError`] if no client could send the request.
    pub fn ask(
        &self,
        plan: &Plan,
        states: &impl UpstreamStates,
    ) -> Result<Explanation, ExplainError> {
        let explained = self.with_head(plan, |head| plan.explain(head, states, Duration::ZERO));
        let mut explanation = explained?;
        explanation.client_ip = self.client_ip;
        Ok(explanation)
    }

    /// The explanation without the routes that do not take the request: their reasons cost as much as the plan has
    /// routes.
    ///
    /// # Errors
    /// As [`Self::ask`].
    pub(crate) fn ask_briefly(
        &self,
        plan: &Plan,
        states: &impl UpstreamStates,
    ) -> Result<Explanation, ExplainError> {
        let explained = self.with_head(plan, |head| {
            plan.explain_briefly(head, states, Duration::ZERO)
        });
        let mut explanation = explained?;
        explanation.client_ip = self.client_ip;
        Ok(explanation)
    }

    /// Calls `decide` with the request's head, as a listener of `plan` would read it.
    pub(crate) fn with_head<T>(
        &self,
        plan: &Plan,
        decide: impl FnOnce(&RequestHead<'_>) -> T,
    ) -> Result<T, ExplainError> {
        let Self {
            method,
            url,
            headers,
            client_ip,
            listener,
        } = self;
        let method = Method::from_bytes(method.as_bytes())
            .map_err(|_| ExplainError::Method(method.clone()))?;
        let parts = Parts::read(url, &method)?;
        let headers = read_headers(headers)?;
        let host = match headers.get(HOST) {
            Some(host) => String::from_utf8_lossy(host.as_bytes()).into_owned(),
            None => parts.authority.clone(),
        };
        let listener = listener_position(plan, listener.as_deref(), &parts)?;
        let head = RequestHead {
            listener,
            method: &method,
            host: &host,
            target: parts.target.as_ref(),
            headers: &headers,
            content_length: content_length(&headers)?,
            client_ip: client_ip.unwrap_or(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            is_tls: plan.is_tls(listener),
            is_peer_trusted: false,
        };
        Ok(decide(&head))
    }
}

impl Parts {
    fn read(url: &str, method: &Method) -> Result<Self, ExplainError> {
        let fault = || ExplainError::Url(url.to_owned());
        let target = |text: &str| text.parse::<PathAndQuery>().map_err(|_| fault());
        if *method == Method::CONNECT {
            return Ok(Self {
                protocol: None,
                authority: url.to_owned(),
                target: None,
            });
        }
        if url.starts_with('/') || url == "*" {
            return Ok(Self {
                protocol: None,
                authority: String::new(),
                target: Some(target(url)?),
            });
        }
        let (scheme, rest) = url.split_once("://").ok_or_else(fault)?;
        let protocol = match scheme.to_ascii_lowercase().as_str() {
            "http" => ListenerProtocol::Http,
            "https" => ListenerProtocol::Https,
            _ => return Err(fault()),
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if authority.is_empty() {
            return Err(fault());
        }
        let rest = if rest.starts_with('/') {
            target(rest)?
        } else {
            target(&format!("/{rest}"))?
        };
        Ok(Self {
            protocol: Some(protocol),
            authority: authority.to_owned(),
            target: Some(rest),
        })
    }

    /// The port that a client would connect to, if the URL determines it.
    fn port(&self) -> Option<u16> {
        let default = match self.protocol? {
            ListenerProtocol::Http => 80,
            ListenerProtocol::Https => 443,
        };
        let host = proxy_routing::normal_host(&self.authority).ok()?;
        Some(host.port.unwrap_or(default))
    }
}

fn read_headers(pairs: &[(String, String)]) -> Result<HeaderMap, ExplainError> {
    let mut headers = HeaderMap::new();
    for pair in pairs {
        let (name, value) = read_header(pair)?;
        if name == HOST && headers.contains_key(HOST) {
            return Err(ExplainError::TwoHosts);
        }
        headers.append(name, value);
    }
    Ok(headers)
}

fn read_header(
    (name, value): &(String, String),
) -> Result<(HeaderName, HeaderValue), ExplainError> {
    let fault = || ExplainError::Header(format!("{name}: {value}"));
    let name = HeaderName::from_bytes(name.as_bytes()).map_err(|_| fault())?;
    let value = HeaderValue::from_str(value).map_err(|_| fault())?;
    Ok((name, value))
}

fn content_length(headers: &HeaderMap) -> Result<Option<u64>, ExplainError> {
    let Some(value) = headers.get(CONTENT_LENGTH) else {
        return Ok(None);
    };
    let text = String::from_utf8_lossy(value.as_bytes());
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let number = text.parse().ok().filter(|_| digits);
    match number {
        Some(number) => Ok(Some(number)),
        None => Err(ExplainError::ContentLength(text.into_owned())),
    }
}

fn listener_position(
    plan: &Plan,
    name: Option<&str>,
    parts: &Parts,
) -> Result<usize, ExplainError> {
    let listeners = &plan.model().listeners;
    if let Some(name) = name {
        let position = listeners.iter().position(|listener| listener.name == name);
        return position.ok_or_else(|| ExplainError::Listener {
            name: name.to_owned(),
            known: listeners
                .iter()
                .map(|listener| listener.name.clone())
                .collect(),
        });
    }
    let speaks = |listener: &Listener| parts.protocol == Some(*listener.protocol);
    let at_port = |listener: &Listener| match &*listener.address {
        BindAddress::Tcp(address) => parts.port() == Some(address.port()),
        BindAddress::Unix(_) => false,
    };
    let exact = listeners.iter().position(|one| speaks(one) && at_port(one));
    let position = exact.or_else(|| listeners.iter().position(speaks));
    Ok(position.unwrap_or_default())
}
