//! Detection of the HTTP/2 preface without TLS.

use crate::connection::client_socket::ClientSocket;
use crate::connection::negotiated::HttpVersion;
use bytes::{Bytes, BytesMut};
use std::io;
use tokio::io::AsyncReadExt;

/// The preface of a client with prior knowledge. [RFC 9113 §3.4]
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Reads until the version is known. Returns the input too.
pub(crate) async fn read(stream: &mut ClientSocket) -> io::Result<(HttpVersion, Bytes)> {
    let mut seen = BytesMut::new();
    loop {
        if !PREFACE.starts_with(&seen) {
            return Ok((HttpVersion::Http1, seen.freeze()));
        }
        if seen.len() == PREFACE.len() {
            return Ok((HttpVersion::Http2, seen.freeze()));
        }
        // Until the client sends, no buffer is allocated for it.
        stream.readable().await?;
        let left = PREFACE.len() - seen.len();
        let mut some = [0; PREFACE.len()];
        let place = some.get_mut(..left).unwrap_or_default();
        let count = stream.read(place).await?;
        if count == 0 {
            return Ok((HttpVersion::Http1, seen.freeze()));
        }
        seen.extend_from_slice(some.get(..count).unwrap_or_default());
    }
}
