//! The encodings of a payload.

use crate::error::EncodeError;
use crate::frame::{FrameType, LENGTH_BYTES};
use crate::object::Object;
use rmp_serde::decode::{Error as MessagePackError, ReadRefReader};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

/// Maximum nesting of a `MessagePack` value; messages need four levels.
const MAX_DEPTH: usize = 32;

/// Encoding of payloads after the handshake, which is always JSON.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Encoding {
    /// JSON in UTF-8.
    #[default]
    #[serde(rename = "json")]
    Json,
    /// `MessagePack`, with the same field names.
    #[serde(rename = "message-pack")]
    MessagePack,
}

impl Encoding {
    /// The name in a handshake and in configurations.
    pub fn name(self) -> &'static str {
        match self {
            Self::Json => "json",
            Self::MessagePack => "message-pack",
        }
    }

    /// Appends a frame to `out`; an error leaves `out` unchanged.
    pub(crate) fn write<T: Serialize>(
        self,
        frame_type: FrameType,
        value: &T,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let start = out.len();
        let written = self.append(frame_type, value, limit, out);
        if written.is_err() {
            out.truncate(start);
        }
        written
    }

    fn append<T: Serialize>(
        self,
        frame_type: FrameType,
        value: &T,
        limit: usize,
        out: &mut Vec<u8>,
    ) -> Result<(), EncodeError> {
        let start = out.len();
        out.extend_from_slice(&[0; LENGTH_BYTES]);
        out.push(frame_type.code());
        match self {
            Self::Json => {
                serde_json::to_writer(&mut *out, value).map_err(|_| EncodeError::Value)?;
            }
            Self::MessagePack => {
                let mut serializer = rmp_serde::Serializer::new(&mut *out).with_struct_map();
                let written = value.serialize(&mut serializer);
                written.map_err(|_| EncodeError::Value)?;
            }
        }
        let length = out.len() - start - LENGTH_BYTES;
        let claimed = u32::try_from(length).ok().filter(|_| length <= limit);
        let claimed = claimed.ok_or(EncodeError::TooLong { length, limit })?;
        let place = out.get_mut(start..start + LENGTH_BYTES);
        place
            .ok_or(EncodeError::Value)?
            .copy_from_slice(&claimed.to_be_bytes());
        Ok(())
    }

    /// A `MessagePack` deserializer with bounded nesting.
    pub(crate) fn message_pack(payload: &[u8]) -> rmp_serde::Deserializer<ReadRefReader<'_, [u8]>> {
        let mut deserializer = rmp_serde::Deserializer::from_read_ref(payload);
        deserializer.set_max_depth(MAX_DEPTH);
        deserializer
    }

    /// Parses one object, without trailing data. The error is a description of the cause.
    pub(crate) fn read<'de, T: Deserialize<'de>>(self, payload: &'de [u8]) -> Result<T, String> {
        match self {
            Self::Json => {
                let read: Result<Object<T>, _> = serde_json::from_slice(payload);
                read.map(|object| object.0)
                    .map_err(|error| error.to_string())
            }
            Self::MessagePack => read_message_pack(payload),
        }
    }
}

fn read_message_pack<'de, T: Deserialize<'de>>(payload: &'de [u8]) -> Result<T, String> {
    let mut deserializer = Encoding::message_pack(payload);
    let read: Result<Object<T>, _> = Object::deserialize(&mut deserializer);
    let object = read.map_err(|error| error.to_string())?;
    // Every byte is a valid marker, so only the end of the payload fails to parse as one.
    match IgnoredAny::deserialize(&mut deserializer) {
        Err(MessagePackError::InvalidMarkerRead(_)) => Ok(object.0),
        _ => Err("bytes after the object".to_owned()),
    }
}
