//! An HTTP/3 client that writes its frames by itself, over QUIC.

use super::certificates::{Authority, Identity};
use super::config::{over_tls, start, to};
use bytes::{Buf, Bytes};
use proxy_http3::{FieldSection, RequestPart, RequestReader, SectionLimits};
use proxy_testkit::{Proxyd, Upstream};
use quinn::crypto::rustls::QuicClientConfig;
use quinn::{ClientConfig, Connection, ConnectionError, Endpoint, RecvStream, SendStream};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use tokio_rustls::rustls;

/// The beginning of a client's control stream: its type, and empty SETTINGS.
const CONTROL: &[u8] = &[0x0, 0x4, 0x0];

/// A listener with HTTP/3 for `a.test`, in front of an upstream.
pub(crate) struct Site {
    pub(crate) authority: Authority,
    pub(crate) proxyd: Proxyd,
}

/// A client with one UDP socket.
pub(crate) struct Http3Client {
    pub(crate) endpoint: Endpoint,
}

/// One connection.
pub(crate) struct Http3 {
    pub(crate) connection: Connection,
    pub(crate) control: SendStream,
}

/// A whole response.
#[derive(Debug)]
pub(crate) struct Http3Answer {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
    pub(crate) trailers: Vec<(String, String)>,
    /// Statuses of interim responses.
    pub(crate) interim: Vec<u16>,
}

impl Site {
    /// A listener with these further settings, and one route to `upstream`.
    pub(crate) fn to(upstream: &Upstream, settings: &str) -> Self {
        Self::with(&to(
            upstream,
            &format!("{}; http3 #true; {settings}", over_tls("")),
        ))
    }

    /// With this configuration, in which the certificate is `site`.
    pub(crate) fn with(kdl: &str) -> Self {
        let authority = Authority::new("root");
        let site = authority.issue(&["a.test"]);
        Self {
            proxyd: start(kdl, &[("site", &site)]),
            authority,
        }
    }

    /// A connection.
    pub(crate) async fn connect(&self) -> Http3 {
        let client = Http3Client::trusting(&self.authority, None);
        client.connect(self.proxyd.address()).await.unwrap()
    }
}

impl Http3Client {
    /// A client that trusts `authority`, and shows `identity`.
    pub(crate) fn trusting(authority: &Authority, identity: Option<&Identity>) -> Self {
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let trusting = rustls::ClientConfig::builder_with_provider(provider)
            .with_protocol_versions(&[&rustls::version::TLS13])
            .unwrap()
            .with_root_certificates(authority.roots());
        let mut tls = match identity {
            None => trusting.with_no_client_auth(),
            Some(identity) => trusting
                .with_client_auth_cert(vec![identity.der()], identity.key())
                .unwrap(),
        };
        tls.alpn_protocols = vec![b"h3".to_vec()];
        tls.enable_early_data = true;
        let local = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mut endpoint = Endpoint::client(local).unwrap();
        let crypto = QuicClientConfig::try_from(tls).unwrap();
        endpoint.set_default_client_config(ClientConfig::new(Arc::new(crypto)));
        Self { endpoint }
    }

    /// A connection with a control stream.
    pub(crate) async fn connect(&self, to: SocketAddr) -> Result<Http3, ConnectionError> {
        let connection = self.endpoint.connect(to, "a.test").unwrap().await?;
        let mut control = connection.open_uni().await?;
        control.write_all(CONTROL).await.unwrap();
        Ok(Http3 {
            connection,
            control,
        })
    }
}

impl Http3 {
    /// Requests `path` at `a.test`.
    pub(crate) async fn get(&self, path: &str) -> Http3Answer {
        self.ask("GET", path, &[], b"").await
    }

    /// Sends a request, and waits for the whole response.
    pub(crate) async fn ask(
        &self,
        method: &str,
        path: &str,
        fields: &[(&str, &str)],
        body: &[u8],
    ) -> Http3Answer {
        let mut bytes = head_of(method, path, fields);
        if !body.is_empty() {
            bytes.extend(frame_of(0x0, body));
        }
        self.send(&bytes).await.unwrap()
    }

    /// Sends a request of these bytes, and waits for the whole response.
    pub(crate) async fn send(&self, bytes: &[u8]) -> Result<Http3Answer, String> {
        let (mut send, receive) = self.open().await;
        // A client may be refused while it writes.
        drop(send.write_all(bytes).await);
        drop(send.finish());
        Http3Answer::read(receive).await
    }

    /// A request stream.
    pub(crate) async fn open(&self) -> (SendStream, RecvStream) {
        self.connection.open_bi().await.unwrap()
    }

    /// The code with which the proxy closes the connection.
    pub(crate) async fn closed(&self) -> u64 {
        let error = self.connection.closed().await;
        let ConnectionError::ApplicationClosed(close) = error else {
            panic!("not closed by the proxy: {error}");
        };
        close.error_code.into_inner()
    }

    /// The frames of the proxy's control stream, in their order, until one has this type.
    pub(crate) async fn control_until(&self, wanted: u64) -> Bytes {
        let mut control = self.connection.accept_uni().await.unwrap();
        let mut bytes = Vec::new();
        loop {
            let mut rest = bytes.get(1..).unwrap_or_default();
            while let Some((kind, payload)) = take_frame(&mut rest) {
                if kind == wanted {
                    return payload;
                }
            }
            let chunk = control.read_chunk(1024, true).await.unwrap();
            bytes.extend_from_slice(&chunk.unwrap().bytes);
        }
    }
}

impl Http3Answer {
    /// Reads a response to its end.
    pub(crate) async fn read(mut receive: RecvStream) -> Result<Self, String> {
        let bytes = receive.read_to_end(usize::MAX).await;
        Self::parse(bytes.map_err(|error| error.to_string())?.into())
    }

    fn parse(mut bytes: Bytes) -> Result<Self, String> {
        let mut answer = Self {
            status: 0,
            fields: Vec::new(),
            body: Vec::new(),
            trailers: Vec::new(),
            interim: Vec::new(),
        };
        // The frames of responses are those of requests.
        let mut reader = RequestReader::new(1 << 20);
        while let Some(part) = reader.read(&mut bytes).map_err(|error| error.to_string())? {
            match part {
                RequestPart::Head(section) => {
                    answer.fields = fields(&section);
                    answer.status = answer.header(":status").unwrap().parse().unwrap();
                    if answer.status < 200 {
                        answer.interim.push(answer.status);
                        reader = RequestReader::new(1 << 20);
                    }
                }
                RequestPart::Data(data) => answer.body.extend_from_slice(&data),
                RequestPart::Trailers(section) => answer.trailers = fields(&section),
            }
        }
        reader.finish().map_err(|error| error.to_string())?;
        Ok(answer)
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let mut fields = self.fields.iter();
        let field = fields.find(|field| field.0 == name)?;
        Some(&field.1)
    }

    pub(crate) fn text(&self) -> &str {
        std::str::from_utf8(&self.body).unwrap()
    }
}

fn fields(section: &[u8]) -> Vec<(String, String)> {
    let limits = SectionLimits {
        max_bytes: 1 << 20,
        max_fields: 1000,
    };
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let section = FieldSection::decode(section, limits).unwrap();
    let fields = section.fields();
    fields
        .map(|field| (text(&field.name), text(&field.value)))
        .collect()
}

/// The HEADERS frame of a request at `a.test`.
pub(crate) fn head_of(method: &str, path: &str, fields: &[(&str, &str)]) -> Vec<u8> {
    let head = [
        (":method", method),
        (":scheme", "https"),
        (":authority", "a.test"),
        (":path", path),
    ];
    section_of(&[&head, fields].concat())
}

/// The HEADERS frame with these fields, in this order, as literals.
pub(crate) fn section_of(fields: &[(&str, &str)]) -> Vec<u8> {
    let mut section = vec![0, 0];
    for (name, value) in fields {
        prefixed(0x20, 3, name.len(), &mut section);
        section.extend_from_slice(name.as_bytes());
        prefixed(0, 7, value.len(), &mut section);
        section.extend_from_slice(value.as_bytes());
    }
    frame_of(0x1, &section)
}

/// A frame.
pub(crate) fn frame_of(kind: u64, payload: &[u8]) -> Vec<u8> {
    let mut frame = Vec::new();
    for number in [kind, payload.len() as u64] {
        match u32::try_from(number).unwrap() {
            short @ 0..64 => frame.push(u8::try_from(short).unwrap()),
            long => frame.extend_from_slice(&(long | 0x8000_0000).to_be_bytes()),
        }
    }
    frame.extend_from_slice(payload);
    frame
}

fn prefixed(mark: u8, prefix: u32, value: usize, out: &mut Vec<u8>) {
    let mask = (1 << prefix) - 1;
    if value < mask {
        return out.push(mark | u8::try_from(value).unwrap());
    }
    out.push(mark | u8::try_from(mask).unwrap());
    let mut rest = value - mask;
    while rest >= 0x80 {
        out.push(u8::try_from(rest & 0x7f).unwrap() | 0x80);
        rest >>= 7;
    }
    out.push(u8::try_from(rest).unwrap());
}

/// The first frame of `bytes`, if it is whole.
fn take_frame(bytes: &mut &[u8]) -> Option<(u64, Bytes)> {
    let mut rest = *bytes;
    let kind = take_number(&mut rest)?;
    let length = usize::try_from(take_number(&mut rest)?).unwrap();
    let payload = rest.get(..length)?;
    *bytes = &rest[length..];
    Some((kind, Bytes::copy_from_slice(payload)))
}

fn take_number(bytes: &mut &[u8]) -> Option<u64> {
    let first = *bytes.first()?;
    let length = 1 << (first >> 6);
    let number = bytes.get(..length)?;
    let value = number
        .iter()
        .fold(0, |value, byte| value << 8 | u64::from(*byte));
    bytes.advance(length);
    Some(value & ((1 << (8 * length - 2)) - 1))
}
