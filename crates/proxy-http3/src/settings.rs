//! SETTINGS of both sides, and GOAWAY. [RFC 9114 §7.2.4, §5.2]

use crate::code::{ErrorCode, Http3Error};
use crate::frame::FrameType;
use crate::varint;

/// Stream type of the control stream.
pub(crate) const CONTROL_STREAM: u64 = 0x0;

const QPACK_MAX_TABLE_CAPACITY: u64 = 0x1;
const MAX_FIELD_SECTION_SIZE: u64 = 0x6;
const QPACK_BLOCKED_STREAMS: u64 = 0x7;

/// HTTP/2 settings that are reserved in HTTP/3. [RFC 9114 §11.2.2]
const FORBIDDEN: [u64; 5] = [0x0, 0x2, 0x3, 0x4, 0x5];

/// Maximum number of settings in a frame: each is remembered to detect duplicates.
const MAX_SETTINGS: usize = 64;

/// Settings that this server sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settings {
    /// Maximum size of a decoded header section, including 32 bytes per field.
    pub max_field_section_bytes: u64,
}

impl Settings {
    /// Start of this server's control stream: stream type and SETTINGS. Offers neither a dynamic
    /// table nor extended CONNECT.
    #[must_use]
    pub fn control_stream(self) -> Vec<u8> {
        let Self {
            max_field_section_bytes,
        } = self;
        let mut payload = Vec::new();
        for (id, value) in [
            (QPACK_MAX_TABLE_CAPACITY, 0),
            (
                MAX_FIELD_SECTION_SIZE,
                max_field_section_bytes.min(varint::MAX),
            ),
            (QPACK_BLOCKED_STREAMS, 0),
        ] {
            varint::write(id, &mut payload);
            varint::write(value, &mut payload);
        }
        let mut out = Vec::new();
        varint::write(CONTROL_STREAM, &mut out);
        varint::write(FrameType::SETTINGS, &mut out);
        varint::write(payload.len() as u64, &mut out);
        out.extend_from_slice(&payload);
        out
    }
}

/// Appends GOAWAY: requests on `stream` and later streams are not processed.
pub fn write_goaway(stream: u64, out: &mut Vec<u8>) {
    let mut payload = Vec::new();
    varint::write(stream.min(varint::MAX), &mut payload);
    varint::write(FrameType::GOAWAY, out);
    varint::write(payload.len() as u64, out);
    out.extend_from_slice(&payload);
}

/// Validates the client's settings. Their values are not used, because responses are encoded
/// without a dynamic table.
pub(crate) fn check(mut payload: &[u8]) -> Result<(), Http3Error> {
    let malformed = Http3Error::connection(ErrorCode::FRAME_ERROR, "SETTINGS end within a setting");
    let invalid = |rule| Err(Http3Error::connection(ErrorCode::SETTINGS_ERROR, rule));
    let mut seen = Vec::new();
    while !payload.is_empty() {
        let (id, used) = varint::read(payload).ok_or(malformed)?;
        let rest = payload.get(used..).unwrap_or_default();
        let (_, used) = varint::read(rest).ok_or(malformed)?;
        payload = rest.get(used..).unwrap_or_default();
        if FORBIDDEN.contains(&id) {
            return invalid("a setting of HTTP/2");
        }
        if seen.contains(&id) {
            return invalid("a setting occurs twice");
        }
        if seen.len() == MAX_SETTINGS {
            let rule = "more settings than any client has";
            return Err(Http3Error::connection(ErrorCode::EXCESSIVE_LOAD, rule));
        }
        seen.push(id);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_settings_are_valid() {
        let bytes = Settings {
            max_field_section_bytes: 65_536,
        }
        .control_stream();
        assert_eq!(bytes[..2], [0x0, 0x4]);
        assert_eq!(usize::from(bytes[2]), bytes.len() - 3);
        assert_eq!(check(&bytes[3..]), Ok(()));
    }

    #[test]
    fn settings_are_checked() {
        let code = |payload: &[u8]| check(payload).map_err(|error| error.code);
        assert_eq!(code(&[0x6, 0x40, 0x64, 0x21, 0x1]), Ok(()));
        assert_eq!(code(&[0x6, 0x1, 0x6, 0x1]), Err(ErrorCode::SETTINGS_ERROR));
        for id in [0x0, 0x2, 0x3, 0x4, 0x5] {
            assert_eq!(code(&[id, 0x1]), Err(ErrorCode::SETTINGS_ERROR), "{id}");
        }
        assert_eq!(code(&[0x6]), Err(ErrorCode::FRAME_ERROR));
        assert_eq!(code(&[0x6, 0x40]), Err(ErrorCode::FRAME_ERROR));
        let many: Vec<u8> = (0..65).flat_map(|id| [0x40, 0x80 + id, 0x0]).collect();
        assert_eq!(code(&many), Err(ErrorCode::EXCESSIVE_LOAD));
    }

    #[test]
    fn goaway_names_a_stream() {
        let mut out = Vec::new();
        write_goaway(4, &mut out);
        assert_eq!(out, [0x7, 0x1, 0x4]);
        out.clear();
        write_goaway(u64::MAX, &mut out);
        assert_eq!(out.len(), 10);
    }
}
