//! A request to be explained, as given by operators and programs.

use super::explanation::Explanation;
use crate::decide::{RELAYED_METHOD, RequestHead, read_target};
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
    /// A path with or without a query, or an absolute `http` or `https` URL; for a relayed
    /// connection `tcp://address:port`, or `tls://server-name:port`.
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
    #[error("`{0}` is neither a path that begins with `/` nor an http, https, tcp or tls URL")]
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
    /// The scheme of the URL does not match the listener's protocol.
    #[error("listener `{name}` has the protocol `{protocol}`; write `{write}`")]
    Protocol {
        /// The listener's name.
        name: String,
        /// Protocol of the listener, which has no HTTP requests.
        protocol: ListenerProtocol,
        /// The form of a URL that it takes.
        write: &'static str,
    },
    /// No listener has this name.
    #[error("there is no listener `{name}`; there are: {}", known.join(", "))]
    Listener {
        /// Name that no listener has.
        name: String,
        /// All names.
        known: Vec<String>,
    },
}

/// A parsed URL.
#[derive(Debug)]
struct Parts {
    scheme: Option<Scheme>,
    authority: String,
    // `None` for `CONNECT`, and for a relayed connection.
    target: Option<PathAndQuery>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scheme {
    Http,
    Https,
    /// A connection that is relayed.
    Tcp,
    /// A connection that is relayed by the server name of its TLS handshake.
    Tls,
}

impl Scheme {
    fn parse(text: &str) -> Option<Self> {
        Some(match text.to_ascii_lowercase().as_str() {
            "http" => Self::Http,
            "https" => Self::Https,
            "tcp" => Self::Tcp,
            "tls" => Self::Tls,
            _ => return None,
        })
    }

    /// Returns true if `listener` accepts connections of this scheme.
    fn is_of(self, listener: &Listener) -> bool {
        self == match *listener.protocol {
            ListenerProtocol::Http => Self::Http,
            ListenerProtocol::Https => Self::Https,
            ListenerProtocol::Tcp if listener.tls.is_none() => Self::Tcp,
            ListenerProtocol::Tcp | ListenerProtocol::TlsPassthrough => Self::Tls,
        }
    }

    fn is_relayed(self) -> bool {
        matches!(self, Self::Tcp | Self::Tls)
    }
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

    /// Explains without the routes that do not take the request: giving their reasons costs time
    /// for each route.
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
        let listener = listener_position(plan, listener.as_deref(), &parts)?;
        let method = match parts.scheme {
            Some(Scheme::Tcp | Scheme::Tls) => relayed_method(),
            Some(Scheme::Http | Scheme::Https) | None => method,
        };
        let host = match headers.get(HOST) {
            Some(host) => String::from_utf8_lossy(host.as_bytes()).into_owned(),
            None => parts.host(),
        };
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
        let target = |text: &str| read_target(text).ok_or_else(fault);
        if *method == Method::CONNECT {
            return Ok(Self {
                scheme: None,
                authority: url.to_owned(),
                target: None,
            });
        }
        if url.starts_with('/') || url == "*" {
            return Ok(Self {
                scheme: None,
                authority: String::new(),
                target: Some(target(url)?),
            });
        }
        let (scheme, rest) = url.split_once("://").ok_or_else(fault)?;
        let scheme = Scheme::parse(scheme).ok_or_else(fault)?;
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, rest) = rest.split_at(end);
        if authority.is_empty() {
            return Err(fault());
        }
        if scheme.is_relayed() {
            if !matches!(rest, "" | "/") {
                return Err(fault());
            }
            return Ok(Self {
                scheme: Some(scheme),
                authority: authority.to_owned(),
                target: None,
            });
        }
        let rest = if rest.starts_with('/') {
            target(rest)?
        } else {
            target(&format!("/{rest}"))?
        };
        Ok(Self {
            scheme: Some(scheme),
            authority: authority.to_owned(),
            target: Some(rest),
        })
    }

    /// The port that a client would connect to, if the URL determines it.
    fn port(&self) -> Option<u16> {
        let default = match self.scheme? {
            Scheme::Http => Some(80),
            Scheme::Https | Scheme::Tls => Some(443),
            Scheme::Tcp => None,
        };
        let host = proxy_routing::normal_host(&self.authority).ok()?;
        host.port.or(default)
    }

    /// The host that routes are matched against. For a relayed connection: the server name, which
    /// exists only with TLS and is never an address. [RFC 6066 §3]
    fn host(&self) -> String {
        let name = || {
            let host = proxy_routing::normal_host(&self.authority).ok()?.name;
            let is_address = host.starts_with('[') || host.parse::<IpAddr>().is_ok();
            (!is_address).then(|| host.into_owned())
        };
        match self.scheme {
            Some(Scheme::Tcp) => String::new(),
            Some(Scheme::Tls) => name().unwrap_or_default(),
            Some(Scheme::Http | Scheme::Https) | None => self.authority.clone(),
        }
    }
}

/// The method of relayed connections in explanations and logs.
fn relayed_method() -> Method {
    Method::from_bytes(RELAYED_METHOD.as_bytes()).unwrap_or_default()
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
    // White space around a value is not part of it. [RFC 9110 §5.5]
    let value = value.trim_matches([' ', '\t']);
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
    let is_relayed = parts.scheme.is_some_and(Scheme::is_relayed);
    if let Some(name) = name {
        let position = listeners.iter().position(|listener| listener.name == name);
        let position = position.ok_or_else(|| ExplainError::Listener {
            name: name.to_owned(),
            known: listeners
                .iter()
                .map(|listener| listener.name.clone())
                .collect(),
        })?;
        let named = listeners.get(position);
        return match named.filter(|named| named.protocol.is_relayed() != is_relayed) {
            Some(named) => Err(other_protocol(named)),
            None => Ok(position),
        };
    }
    let speaks = |listener: &Listener| parts.scheme.is_some_and(|scheme| scheme.is_of(listener));
    let at_port = |listener: &Listener| match &*listener.address {
        BindAddress::Tcp(address) => parts.port() == Some(address.port()),
        BindAddress::Unix(_) => false,
    };
    let exact = listeners.iter().position(|one| speaks(one) && at_port(one));
    let position = exact.or_else(|| listeners.iter().position(speaks));
    let takes = |listener: &&Listener| listener.protocol.is_relayed() == is_relayed;
    let first = listeners.iter().position(|one| takes(&one));
    match (position.or(first), listeners.first()) {
        (None, Some(other)) => Err(other_protocol(other)),
        (position, _) => Ok(position.unwrap_or_default()),
    }
}

/// The fault of a URL that does not select `listener`.
fn other_protocol(listener: &Listener) -> ExplainError {
    ExplainError::Protocol {
        name: listener.name.clone(),
        protocol: *listener.protocol,
        write: match *listener.protocol {
            ListenerProtocol::Http => "http://host/path",
            ListenerProtocol::Https => "https://host/path",
            ListenerProtocol::Tcp if listener.tls.is_none() => "tcp://address:port",
            ListenerProtocol::Tcp | ListenerProtocol::TlsPassthrough => "tls://server-name:port",
        },
    }
}
