//! HTTP/1.x messages, parsed strictly: input that a lenient parser would accept is an error here.

use crate::http::fields::Fields;
use crate::http::wire::{Broken, End, Wire};

/// Source of a body's end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Framing {
    /// There is no body.
    None,
    /// By `Content-Length`.
    Length(usize),
    /// By `Transfer-Encoding: chunked`, with chunks of these sizes.
    Chunked(Vec<usize>),
    /// By the end of the connection.
    UntilClose,
}

/// A request as an upstream received it.
#[derive(Clone, Debug)]
pub struct Request {
    /// Index of the upstream's connection that it arrived on, from 0.
    pub connection: usize,
    /// Number among the upstream's requests in the order of their records, from 1.
    pub number: usize,
    /// The method.
    pub method: String,
    /// The target, unchanged.
    pub target: String,
    /// `HTTP/1.1` or `HTTP/1.0`.
    pub version: String,
    /// The header fields.
    pub fields: Fields,
    /// The body without its framing.
    pub body: Vec<u8>,
    /// The framing of the body.
    pub framing: Framing,
    /// The trailer fields.
    pub trailers: Fields,
    /// All raw bytes.
    pub raw: Vec<u8>,
}

/// A response as a client received it.
#[derive(Clone, Debug)]
pub struct Response {
    /// `HTTP/1.1` or `HTTP/1.0`.
    pub version: String,
    /// The status.
    pub status: u16,
    /// The reason phrase.
    pub reason: String,
    /// The header fields.
    pub fields: Fields,
    /// The body without its framing.
    pub body: Vec<u8>,
    /// The framing of the body.
    pub framing: Framing,
    /// The trailer fields.
    pub trailers: Fields,
    /// All raw bytes.
    pub raw: Vec<u8>,
}

impl Request {
    /// Reads the head of a request.
    pub(crate) fn read_head(wire: &mut Wire, connection: usize) -> Result<Self, Broken> {
        wire.verbatim();
        let line = text(wire.line()?);
        let parts: Vec<&str> = line.split(' ').collect();
        let [method, target, version] = parts.as_slice() else {
            return Err(Broken::Malformed("a request line has three parts"));
        };
        let (method, target) = ((*method).to_owned(), (*target).to_owned());
        let version = known(version)?;
        let fields = fields(wire)?;
        let framing = framing(&fields)?.unwrap_or(Framing::None);
        Ok(Self {
            connection,
            number: 0,
            method,
            target,
            version,
            fields,
            body: Vec::new(),
            framing,
            trailers: Fields::default(),
            raw: wire.verbatim(),
        })
    }

    /// Reads the rest after the head.
    pub(crate) fn read_body(&mut self, wire: &mut Wire) -> Result<(), Broken> {
        let (body, trailers) = body(wire, &mut self.framing)?;
        self.body = body;
        self.trailers = trailers;
        self.raw.extend(wire.verbatim());
        Ok(())
    }
}

impl Response {
    /// Reads a head; the framing assumes a response to a request other than HEAD.
    pub(crate) fn read_head(wire: &mut Wire) -> Result<Self, Broken> {
        wire.verbatim();
        let line = text(wire.line()?);
        let mut parts = line.splitn(3, ' ');
        let version = known(parts.next().unwrap_or_default())?;
        let status = parts.next().unwrap_or_default();
        let Some(reason) = parts.next() else {
            return Err(Broken::Malformed("a status line has three parts"));
        };
        if status.len() != 3 || !status.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Broken::Malformed("a status has three digits"));
        }
        let status = status.parse().unwrap_or_default();
        let reason = reason.to_owned();
        let fields = fields(wire)?;
        let framing = match status {
            100..=199 | 204 | 304 => Framing::None,
            _ => framing(&fields)?.unwrap_or(Framing::UntilClose),
        };
        Ok(Self {
            version,
            status,
            reason,
            fields,
            body: Vec::new(),
            framing,
            trailers: Fields::default(),
            raw: wire.verbatim(),
        })
    }

    /// Reads the rest after the head.
    pub(crate) fn read_body(&mut self, wire: &mut Wire) -> Result<(), Broken> {
        let (body, trailers) = body(wire, &mut self.framing)?;
        self.body = body;
        self.trailers = trailers;
        self.raw.extend(wire.verbatim());
        Ok(())
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// The body as JSON.
    #[must_use]
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        match serde_json::from_slice(&self.body) {
            Ok(value) => value,
            Err(error) => panic!("not JSON ({error}): {}", self.text()),
        }
    }

    /// The `code` of the error body; empty if there is none.
    #[must_use]
    pub fn error_code(&self) -> String {
        let body: serde_json::Value = serde_json::from_slice(&self.body).unwrap_or_default();
        let code = body
            .pointer("/error/code")
            .and_then(serde_json::Value::as_str);
        code.unwrap_or_default().to_owned()
    }

    /// The correlation ID of the response.
    #[must_use]
    #[track_caller]
    pub fn correlation_id(&self) -> String {
        let id = self.fields.get("x-correlation-id");
        id.expect("every response bears a correlation ID")
            .to_owned()
    }
}

fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        // One char for each byte, without loss or validation.
        error.into_bytes().into_iter().map(char::from).collect()
    })
}

fn known(version: &str) -> Result<String, Broken> {
    match version {
        "HTTP/1.1" | "HTTP/1.0" => Ok(version.to_owned()),
        _ => Err(Broken::Malformed("no version that is known")),
    }
}

fn fields(wire: &mut Wire) -> Result<Fields, Broken> {
    let mut fields = Fields::default();
    loop {
        let line = text(wire.line()?);
        if line.is_empty() {
            return Ok(fields);
        }
        let Some((name, value)) = line.split_once(':') else {
            return Err(Broken::Malformed("a field has a colon"));
        };
        if name.is_empty() || !name.bytes().all(is_name_byte) {
            return Err(Broken::Malformed("a field's name is a token"));
        }
        if value
            .bytes()
            .any(|byte| byte != b'\t' && byte.is_ascii_control())
        {
            return Err(Broken::Malformed("a field's value has a control character"));
        }
        fields.push(name, value.trim_matches([' ', '\t']));
    }
}

fn is_name_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn framing(fields: &Fields) -> Result<Option<Framing>, Broken> {
    let lengths = fields.all("content-length");
    let codings = fields.all("transfer-encoding");
    match (lengths.as_slice(), codings.as_slice()) {
        ([], []) => Ok(None),
        ([], [coding]) if coding.eq_ignore_ascii_case("chunked") => {
            Ok(Some(Framing::Chunked(Vec::new())))
        }
        ([length], []) if is_number(length) => {
            let length = length
                .parse()
                .map_err(|_| Broken::Malformed("a length too long"))?;
            Ok(Some(Framing::Length(length)))
        }
        _ => Err(Broken::Malformed("the length of the body is in doubt")),
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn body(wire: &mut Wire, framing: &mut Framing) -> Result<(Vec<u8>, Fields), Broken> {
    let none = Fields::default();
    match framing {
        Framing::None => Ok((Vec::new(), none)),
        Framing::Length(length) => Ok((wire.exactly(*length)?, none)),
        Framing::UntilClose => match wire.rest()? {
            (bytes, End::Closed) => Ok((bytes, none)),
            (_, End::Reset) => Err(Broken::Reset),
        },
        Framing::Chunked(sizes) => {
            let mut whole = Vec::new();
            while let Some(chunk) = chunk(wire)? {
                sizes.push(chunk.len());
                whole.extend(chunk);
            }
            Ok((whole, fields(wire)?))
        }
    }
}

/// The next chunk; `None` for the last one.
fn chunk(wire: &mut Wire) -> Result<Option<Vec<u8>>, Broken> {
    let size = text(wire.line()?);
    if size.is_empty() || !size.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return Err(Broken::Malformed("a chunk's size is a hexadecimal number"));
    }
    let size =
        usize::from_str_radix(&size, 16).map_err(|_| Broken::Malformed("a chunk too large"))?;
    if size == 0 {
        return Ok(None);
    }
    let data = wire.exactly(size)?;
    if !wire.line()?.is_empty() {
        return Err(Broken::Malformed("a chunk ends in CRLF"));
    }
    Ok(Some(data))
}
