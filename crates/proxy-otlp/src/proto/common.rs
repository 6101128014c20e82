//! `opentelemetry.proto.common.v1` and `opentelemetry.proto.resource.v1`.

/// The source of exported data.
#[derive(Clone, PartialEq, prost::Message)]
pub struct Resource {
    /// Attributes that identify the process.
    #[prost(message, repeated, tag = "1")]
    pub attributes: Vec<KeyValue>,
}

/// The program that made the data.
#[derive(Clone, PartialEq, prost::Message)]
pub struct InstrumentationScope {
    /// Name of the instrumentation: the program.
    #[prost(string, tag = "1")]
    pub name: String,
    /// Version of the program.
    #[prost(string, tag = "2")]
    pub version: String,
}

/// An attribute.
#[derive(Clone, PartialEq, prost::Message)]
pub struct KeyValue {
    /// Its name.
    #[prost(string, tag = "1")]
    pub key: String,
    /// Value; absent means unset.
    #[prost(message, optional, tag = "2")]
    pub value: Option<AnyValue>,
}

/// The value of an attribute.
#[derive(Clone, PartialEq, prost::Message)]
pub struct AnyValue {
    /// The value by its type.
    #[prost(oneof = "Value", tags = "1, 2, 3, 4")]
    pub value: Option<Value>,
}

/// A value by its type.
#[derive(Clone, PartialEq, prost::Oneof)]
pub enum Value {
    /// Text.
    #[prost(string, tag = "1")]
    Text(String),
    /// A flag.
    #[prost(bool, tag = "2")]
    Flag(bool),
    /// A whole number.
    #[prost(int64, tag = "3")]
    Integer(i64),
    /// A number.
    #[prost(double, tag = "4")]
    Decimal(f64),
}
