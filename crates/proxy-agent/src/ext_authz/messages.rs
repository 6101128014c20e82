//! The messages of `envoy.service.auth.v3` that the proxy uses.

use agent_protocol::{Header, HeaderError, RequestHeaders, Text};
use prost::{Message, Oneof};
use std::collections::BTreeMap;

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CheckRequest {
    #[prost(message, optional, tag = "1")]
    attributes: Option<AttributeContext>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AttributeContext {
    #[prost(message, optional, tag = "1")]
    source: Option<Peer>,
    #[prost(message, optional, tag = "4")]
    request: Option<AttributeRequest>,
    #[prost(btree_map = "string, string", tag = "10")]
    context_extensions: BTreeMap<String, String>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Peer {
    #[prost(message, optional, tag = "1")]
    address: Option<Address>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Address {
    #[prost(message, optional, tag = "1")]
    socket_address: Option<SocketAddress>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct SocketAddress {
    #[prost(string, tag = "2")]
    address: String,
    #[prost(uint32, tag = "3")]
    port_value: u32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct AttributeRequest {
    #[prost(message, optional, tag = "2")]
    http: Option<HttpRequest>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HttpRequest {
    #[prost(string, tag = "1")]
    id: String,
    #[prost(string, tag = "2")]
    method: String,
    #[prost(btree_map = "string, string", tag = "3")]
    headers: BTreeMap<String, String>,
    #[prost(string, tag = "4")]
    path: String,
    #[prost(string, tag = "5")]
    host: String,
    #[prost(string, tag = "6")]
    scheme: String,
    #[prost(int64, tag = "9")]
    size: i64,
    #[prost(string, tag = "10")]
    protocol: String,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct CheckResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<Status>,
    #[prost(oneof = "HttpResponse", tags = "2, 3")]
    pub(crate) http_response: Option<HttpResponse>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct Status {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
}

#[derive(Clone, PartialEq, Oneof)]
pub(crate) enum HttpResponse {
    #[prost(message, tag = "2")]
    Denied(DeniedHttpResponse),
    #[prost(message, tag = "3")]
    Ok(OkHttpResponse),
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct DeniedHttpResponse {
    #[prost(message, optional, tag = "1")]
    pub(crate) status: Option<HttpStatus>,
    #[prost(message, repeated, tag = "2")]
    pub(crate) headers: Vec<HeaderValueOption>,
    /// Text; not all servers send valid UTF-8.
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) body: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HttpStatus {
    #[prost(int32, tag = "1")]
    pub(crate) code: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct OkHttpResponse {
    #[prost(message, repeated, tag = "2")]
    pub(crate) headers: Vec<HeaderValueOption>,
    #[prost(string, repeated, tag = "5")]
    pub(crate) headers_to_remove: Vec<String>,
    #[prost(message, repeated, tag = "6")]
    pub(crate) response_headers_to_add: Vec<HeaderValueOption>,
    #[prost(message, repeated, tag = "7")]
    pub(crate) query_parameters_to_set: Vec<QueryParameter>,
    #[prost(string, repeated, tag = "8")]
    pub(crate) query_parameters_to_remove: Vec<String>,
}

/// A parameter of the query, which is ignored.
#[derive(Clone, PartialEq, Message)]
pub(crate) struct QueryParameter {}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HeaderValueOption {
    #[prost(message, optional, tag = "1")]
    pub(crate) header: Option<HeaderValue>,
    #[prost(message, optional, tag = "2")]
    pub(crate) append: Option<BoolValue>,
    #[prost(int32, tag = "3")]
    pub(crate) append_action: i32,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct HeaderValue {
    #[prost(string, tag = "1")]
    pub(crate) key: String,
    /// Text; not all servers send valid UTF-8.
    #[prost(bytes = "vec", tag = "2")]
    pub(crate) value: Vec<u8>,
    #[prost(bytes = "vec", tag = "3")]
    pub(crate) raw_value: Vec<u8>,
}

#[derive(Clone, PartialEq, Message)]
pub(crate) struct BoolValue {
    #[prost(bool, tag = "1")]
    pub(crate) value: bool,
}

impl HeaderValueOption {
    /// Converts the message to a header without surrounding white space. [RFC 9110 §5.5]
    ///
    /// # Errors
    /// The field is missing or cannot be sent.
    pub(crate) fn into_header(self) -> Result<Header<'static>, HeaderError> {
        let HeaderValue {
            key,
            value,
            raw_value,
        } = self.header.unwrap_or_default();
        let value = if raw_value.is_empty() {
            value
        } else {
            raw_value
        };
        let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let begin = value.iter().position(|byte| !is_blank(byte));
        let end = value.iter().rposition(|byte| !is_blank(byte));
        let value = begin
            .zip(end)
            .and_then(|(begin, end)| value.get(begin..=end));
        let value = Text(value.unwrap_or_default().to_vec().into());
        Header::new(key, value)
    }
}

/// The request for a decision. Lines of one field are joined by commas.
impl From<&RequestHeaders<'_>> for CheckRequest {
    fn from(head: &RequestHeaders<'_>) -> Self {
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut headers = BTreeMap::<String, String>::new();
        for field in &head.headers {
            let value = text(field.value().as_bytes());
            headers
                .entry(field.name().to_owned())
                .and_modify(|line| {
                    line.push(',');
                    line.push_str(&value);
                })
                .or_insert(value);
        }
        let host = text(head.authority.as_bytes());
        let path = text(head.target.as_bytes());
        // Envoy sends the parts of the request line among the fields.
        for (name, value) in [
            (":authority", &host),
            (":path", &path),
            (":method", &head.method.clone().into_owned()),
            (":scheme", &head.scheme.clone().into_owned()),
        ] {
            headers.insert(name.to_owned(), value.clone());
        }
        let address = SocketAddress {
            address: head.client_ip.clone().into_owned(),
            port_value: head.client_port.map_or(0, u32::from),
        };
        let http = HttpRequest {
            id: head.correlation_id.clone().into_owned(),
            method: head.method.clone().into_owned(),
            headers,
            path,
            host,
            scheme: head.scheme.clone().into_owned(),
            size: -1,
            protocol: head.http_version.clone().into_owned(),
        };
        let route = ("route".to_owned(), head.route.clone().into_owned());
        Self {
            attributes: Some(AttributeContext {
                source: Some(Peer {
                    address: Some(Address {
                        socket_address: Some(address),
                    }),
                }),
                request: Some(AttributeRequest { http: Some(http) }),
                context_extensions: BTreeMap::from([route]),
            }),
        }
    }
}
