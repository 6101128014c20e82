//! The resource of exported data, and attributes.

use crate::proto;
use std::time::Duration;

/// The process that the data is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Resource {
    /// `service.name`.
    pub service_name: String,
    /// `service.version`.
    pub service_version: String,
    /// `service.instance.id`, unique among processes of this name.
    pub instance_id: String,
}

impl Resource {
    pub(crate) fn message(&self) -> proto::Resource {
        let Self {
            service_name,
            service_version,
            instance_id,
        } = self;
        proto::Resource {
            attributes: vec![
                text("service.name", service_name),
                text("service.version", service_version),
                text("service.instance.id", instance_id),
            ],
        }
    }

    pub(crate) fn scope(&self) -> proto::InstrumentationScope {
        proto::InstrumentationScope {
            name: "proxyd".to_owned(),
            version: self.service_version.clone(),
        }
    }
}

pub(crate) fn text(key: &str, value: &str) -> proto::KeyValue {
    attribute(key, proto::Value::Text(value.to_owned()))
}

pub(crate) fn integer(key: &str, value: u64) -> proto::KeyValue {
    let value = i64::try_from(value).unwrap_or(i64::MAX);
    attribute(key, proto::Value::Integer(value))
}

/// A time in milliseconds, as in access records.
pub(crate) fn millis(key: &str, time: Duration) -> proto::KeyValue {
    attribute(key, proto::Value::Decimal(time.as_secs_f64() * 1_000.0))
}

fn attribute(key: &str, value: proto::Value) -> proto::KeyValue {
    proto::KeyValue {
        key: key.to_owned(),
        value: Some(proto::AnyValue { value: Some(value) }),
    }
}

/// Nanoseconds since 1970.
pub(crate) fn unix_nanos(time: Duration) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX)
}

/// The bytes of hexadecimal digits; other characters count as 0.
pub(crate) fn bytes(digits: &[u8]) -> Vec<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16).unwrap_or(0);
    let (pairs, _) = digits.as_chunks::<2>();
    let bytes = pairs
        .iter()
        .map(|[high, low]| digit(*high) << 4 | digit(*low));
    bytes
        .map(|byte| u8::try_from(byte).unwrap_or_default())
        .collect()
}
