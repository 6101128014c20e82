//! Decoding of chunked bodies, which a validator has accepted before. [RFC 9112 §7.1]

use crate::fields::{self, Fields};
use bytes::{Buf, Bytes, BytesMut};
use http::HeaderMap;
use http_body::Frame;
use proxy_framing::Lines;

/// State within a chunked body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChunkedDecoder {
    /// Before a line with a chunk size.
    Size,
    /// Within a chunk, with the number of remaining bytes.
    Data(u64),
    /// After a chunk's data, before its line break.
    DataEnd,
    /// In the trailer section, after the last chunk.
    Trailers,
    /// After the trailers.
    End,
}

/// Size of a piece below which the chunks after it are copied to it: a body in chunks of a byte would else
/// cost each layer a frame for each byte.
const JOINED_BELOW_BYTES: usize = 512;
/// Size of a joined piece from which no further chunk is copied to it.
const JOINED_BYTES: usize = 16 * 1024;

impl ChunkedDecoder {
    /// Takes the next data, or the trailers, as far as `unread` contains them. Small chunks are joined.
    pub(crate) fn next(&mut self, unread: &mut BytesMut) -> Option<Frame<Bytes>> {
        loop {
            match self {
                Self::Size => {
                    let end = memchr::memchr(b'\n', unread)? + 1;
                    *self = match size(&unread.split_to(end)) {
                        0 => Self::Trailers,
                        size => Self::Data(size),
                    };
                }
                Self::Data(left) => {
                    let piece = take(unread, left)?;
                    if *left == 0 {
                        *self = Self::DataEnd;
                    }
                    return Some(Frame::data(self.join(piece, unread)));
                }
                Self::DataEnd => {
                    if unread.len() < 2 {
                        return None;
                    }
                    unread.advance(2);
                    *self = Self::Size;
                }
                Self::Trailers => {
                    let mut lines = Lines::default();
                    fields::find(&mut lines, unread, 0)?;
                    let section = unread.split_to(lines.end).freeze();
                    *self = Self::End;
                    let mut trailers = Fields::new(HeaderMap::new(), true);
                    trailers.take(&section, &lines)?;
                    let trailers = trailers.headers;
                    return (!trailers.is_empty()).then(|| Frame::trailers(trailers));
                }
                Self::End => return None,
            }
        }
    }

    /// Appends the chunks behind a small `piece` that have arrived.
    fn join(&mut self, piece: Bytes, unread: &mut BytesMut) -> Bytes {
        if JOINED_BELOW_BYTES <= piece.len() || !self.begin_chunk(unread) {
            return piece;
        }
        let mut joined = BytesMut::from(&*piece);
        while let Self::Data(left) = self {
            let most = usize::try_from(*left).unwrap_or(usize::MAX);
            let count = unread.len().min(most);
            joined.extend_from_slice(unread.get(..count).unwrap_or_default());
            unread.advance(count);
            *left -= count as u64;
            if *left > 0 {
                break;
            }
            *self = Self::DataEnd;
            if JOINED_BYTES <= joined.len() || !self.begin_chunk(unread) {
                break;
            }
        }
        joined.freeze()
    }

    /// Enters the chunk after the current one, if its size has arrived and it is not the last one.
    fn begin_chunk(&mut self, unread: &mut BytesMut) -> bool {
        if *self != Self::DataEnd {
            return false;
        }
        let line = unread.get(2..).unwrap_or_default();
        let Some(end) = memchr::memchr(b'\n', line) else {
            return false;
        };
        let size = size(line.get(..end).unwrap_or_default());
        if size > 0 {
            unread.advance(2 + end + 1);
            *self = Self::Data(size);
        }
        size > 0
    }

    /// Consumes the line break after the last data, and the end of a body without trailers, if they
    /// have arrived, so that the reader of the last data learns of the end.
    pub(crate) fn consume_end(&mut self, unread: &mut BytesMut) {
        if *self == Self::DataEnd && unread.starts_with(b"\r\n0\r\n\r\n") {
            unread.advance(7);
            *self = Self::End;
        }
    }
}

/// Takes at most `left` bytes of `unread`; `None` if `unread` is empty.
pub(crate) fn take(unread: &mut BytesMut, left: &mut u64) -> Option<Bytes> {
    let most = usize::try_from(*left).unwrap_or(usize::MAX);
    let count = unread.len().min(most);
    if count == 0 {
        return None;
    }
    *left -= count as u64;
    Some(unread.split_to(count).freeze())
}

fn size(line: &[u8]) -> u64 {
    line.iter()
        .map_while(|byte| char::from(*byte).to_digit(16))
        .fold(0, |size, digit| size << 4 | u64::from(digit))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(pieces: &[&[u8]]) -> (Vec<u8>, Vec<String>, ChunkedDecoder) {
        let (mut unread, mut reader) = (BytesMut::new(), ChunkedDecoder::Size);
        let (mut data, mut trailers) = (Vec::new(), Vec::new());
        for piece in pieces {
            unread.extend_from_slice(piece);
            while let Some(frame) = reader.next(&mut unread) {
                match frame.into_data() {
                    Ok(bytes) => data.extend_from_slice(&bytes),
                    Err(frame) => {
                        let map = frame.into_trailers().unwrap();
                        trailers.extend(map.keys().map(ToString::to_string));
                    }
                }
                reader.consume_end(&mut unread);
            }
        }
        (data, trailers, reader)
    }

    const BODY: &[u8] =
        b"5;a=b\r\nhello\r\n1\r\n \r\nA\r\n0123456789\r\n0\r\nx-a: 1\r\nx-b: 2\r\n\r\n";

    #[test]
    fn a_body_is_the_same_however_it_is_cut() {
        let bytes: Vec<&[u8]> = BODY.chunks(1).collect();
        for pieces in [&[BODY][..], &bytes] {
            let (data, trailers, reader) = read(pieces);
            assert_eq!(data, b"hello 0123456789");
            assert_eq!(trailers, ["x-a", "x-b"]);
            assert_eq!(reader, ChunkedDecoder::End);
        }
    }

    #[test]
    fn the_end_is_known_with_the_last_data_if_it_is_there() {
        let (data, _, reader) = read(&[b"2\r\nab\r\n0\r\n\r\n"]);

        assert_eq!(data, b"ab");
        assert_eq!(reader, ChunkedDecoder::End);
    }

    #[test]
    fn small_chunks_that_have_arrived_are_one_piece() {
        let (mut unread, mut reader) = (BytesMut::new(), ChunkedDecoder::Size);
        let large = [b"400\r\n", &[b'z'; 0x400][..], b"\r\n"].concat();
        let chunks = [&b"1\r\na\r\n".repeat(3)[..], &large, b"1\r\nb\r\n3\r\nc"].concat();
        unread.extend_from_slice(&chunks);

        let mut pieces = Vec::new();
        while let Some(frame) = reader.next(&mut unread) {
            pieces.push(frame.into_data().unwrap().len());
        }

        assert_eq!(pieces, [3 + 0x400 + 1 + 1]);
        assert_eq!(reader, ChunkedDecoder::Data(2));
    }

    #[test]
    fn a_joined_piece_has_a_bound() {
        let (mut unread, mut reader) = (BytesMut::new(), ChunkedDecoder::Size);
        unread.extend_from_slice(&b"1\r\na\r\n".repeat(2 * JOINED_BYTES));

        for _ in 0..2 {
            let frame = reader.next(&mut unread).unwrap();
            assert_eq!(frame.into_data().unwrap().len(), JOINED_BYTES);
        }
        assert!(reader.next(&mut unread).is_none());
    }

    #[test]
    fn missing_bytes_are_awaited() {
        assert_eq!(read(&[b"2\r\nab\r\n0\r\n"]).2, ChunkedDecoder::Trailers);
        assert_eq!(read(&[b"2\r\nab"]).2, ChunkedDecoder::DataEnd);
        assert_eq!(read(&[b"2\r\na"]).2, ChunkedDecoder::Data(1));
    }
}
