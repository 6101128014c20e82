//! Properties of HTTP/3 streams for any input, checked by the fuzz targets and by a test that
//! replays their corpora.

use bytes::Bytes;
use http::{HeaderMap, StatusCode};
use proxy_http3::{
    FieldSection, Http3Error, PeerStreams, RequestHead, RequestPart, RequestReader, SectionLimits,
    UniStream, read_trailers, write_head,
};

const LIMITS: SectionLimits = SectionLimits {
    max_bytes: 16_384,
    max_fields: 200,
};

/// Property: a request stream's meaning does not depend on how it is divided. Field sections within
/// the limits stay within them when decoded, and valid heads can be written and read again.
pub(crate) fn request(data: &[u8]) {
    let whole = read([data]);
    let (first, second) = data.split_at(data.len() / 2);
    assert_eq!(whole, read([first, second]));
    let pieces: Vec<&[u8]> = data.chunks(1).collect();
    assert_eq!(whole, read(pieces));
    let Ok(Message { sections, .. }) = whole else {
        return;
    };
    for section in &sections {
        let Ok(section) = FieldSection::decode(section, LIMITS) else {
            continue;
        };
        let bytes: usize = section
            .fields()
            .map(|field| field.name.len() + field.value.len() + 32)
            .sum();
        assert!(bytes <= LIMITS.max_bytes && section.len() <= LIMITS.max_fields);
        if let Ok(head) = RequestHead::read(&section) {
            assert!(head.path.is_some_and(|path| path.is_ascii()) || head.method == "CONNECT");
            assert_eq!(written_again(&head.fields), head.fields);
        }
        if let Ok(trailers) = read_trailers(&section) {
            assert_eq!(written_again(&trailers), trailers);
        }
    }
}

/// Property: a unidirectional stream's meaning does not depend on how it is divided.
pub(crate) fn peer_stream(data: &[u8]) {
    let read = |pieces: Vec<&[u8]>| -> Result<u32, Http3Error> {
        let (mut streams, mut stream) = (PeerStreams::default(), UniStream::default());
        for piece in pieces {
            stream.read(&mut streams, Bytes::copy_from_slice(piece))?;
        }
        Ok(stream.take_events())
    };
    assert_eq!(read(vec![data]), read(data.chunks(1).collect()));
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Message {
    sections: Vec<Bytes>,
    data: Vec<u8>,
}

fn read<'d>(pieces: impl IntoIterator<Item = &'d [u8]>) -> Result<Message, Http3Error> {
    let mut reader = RequestReader::new(LIMITS.max_bytes);
    let mut message = Message::default();
    for piece in pieces {
        let mut input = Bytes::copy_from_slice(piece);
        while let Some(part) = reader.read(&mut input)? {
            match part {
                RequestPart::Head(section) | RequestPart::Trailers(section) => {
                    message.sections.push(section);
                }
                RequestPart::Data(data) => message.data.extend_from_slice(&data),
            }
        }
    }
    reader.finish()?;
    Ok(message)
}

/// Writes the fields as a response, and reads it.
fn written_again(fields: &HeaderMap) -> HeaderMap {
    let mut frame = Vec::new();
    write_head(StatusCode::OK, fields, &mut frame);
    let mut reader = RequestReader::new(1 << 20);
    let limits = SectionLimits {
        max_bytes: 1 << 20,
        max_fields: 1000,
    };
    let mut input = Bytes::from(frame);
    let Ok(Some(RequestPart::Head(section))) = reader.read(&mut input) else {
        return HeaderMap::new();
    };
    let mut read = HeaderMap::new();
    let section = FieldSection::decode(&section, limits);
    let fields = section.iter().flat_map(FieldSection::fields);
    for field in fields.filter(|field| !field.name.starts_with(b":")) {
        let name = http::HeaderName::from_lowercase(&field.name);
        let value = http::HeaderValue::from_maybe_shared(field.value);
        if let (Ok(name), Ok(value)) = (name, value) {
            read.append(name, value);
        }
    }
    read
}
