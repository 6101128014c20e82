//! The reasons for refusing a message.

/// The reason for refusing a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
pub enum FramingError {
    /// A line feed that no carriage return precedes. [RFC 9112 §2.2]
    #[error("bare line feed")]
    BareLf,
    /// A carriage return that no line feed follows. [RFC 9112 §2.2]
    #[error("bare carriage return")]
    BareCr,
    /// A zero byte in a head, a chunk's line or a trailer. [RFC 9110 §5.5]
    #[error("zero byte")]
    NulByte,
    /// A field line continued on the next line. [RFC 9112 §5.2]
    #[error("folded field line")]
    ObsFold,
    /// Whitespace between the start line and the first field. [RFC 9112 §2.2]
    #[error("whitespace before the first field")]
    SpaceBeforeFields,
    /// Whitespace between a field's name and its colon. [RFC 9112 §5.1]
    #[error("whitespace before a colon")]
    SpaceBeforeColon,
    /// A field line that begins with its colon. [RFC 9110 §5.1]
    #[error("empty field name")]
    EmptyName,
    /// A byte in a field's name that a token cannot hold. [RFC 9110 §5.6.2]
    #[error("illegal byte in a field name")]
    BadNameByte,
    /// A control byte other than a tab in a field's value or a reason phrase. [RFC 9110 §5.5]
    #[error("control byte in a field value")]
    ControlByteInValue,

    /// A request line that ends early, has too many parts, or follows too many empty lines.
    /// [RFC 9112 §3]
    #[error("malformed request line")]
    BadRequestLine,
    /// A method that is not a token of 1 to 32 bytes. [RFC 9110 §9.1]
    #[error("malformed method")]
    BadMethod,
    /// A target that has no legal form, or not the form that its method requires. [RFC 9112 §3.2]
    #[error("malformed request target")]
    BadTarget,
    /// A version other than `HTTP/1.0` and `HTTP/1.1`, case included. [RFC 9112 §2.3]
    #[error("unknown protocol version")]
    BadVersion,
    /// The preface of HTTP/2 where HTTP/1.1 is expected. [RFC 9113 §3.4]
    #[error("http/2 connection preface")]
    Http2Preface,
    /// An HTTP/1.1 request without `Host`. [RFC 9112 §3.2]
    #[error("no host field")]
    MissingHost,
    /// A request with two `Host` lines. [RFC 9112 §3.2]
    #[error("repeated host field")]
    RepeatedHost,
    /// A `Host` that is not a host with an optional port. [RFC 9112 §3.2]
    #[error("malformed host field")]
    BadHost,

    /// Two `Content-Length` lines that differ. [RFC 9112 §6.3]
    #[error("conflicting content-length fields")]
    ConflictingContentLength,
    /// Two `Content-Length` lines that agree, or a list in one. [RFC 9112 §6.3]
    #[error("repeated content-length field")]
    RepeatedContentLength,
    /// A `Content-Length` that is not decimal digits below 2⁶³. [RFC 9110 §8.6]
    #[error("malformed content-length field")]
    BadContentLength,
    /// Both `Content-Length` and `Transfer-Encoding`. [RFC 9112 §6.1]
    #[error("content-length beside transfer-encoding")]
    ContentLengthWithTransferEncoding,
    /// A `Transfer-Encoding` other than a single `chunked`. [RFC 9112 §6.1]
    #[error("transfer-encoding other than chunked")]
    TransferEncodingNotChunked,
    /// A `Transfer-Encoding` in an HTTP/1.0 message. [RFC 9112 §6.1]
    #[error("transfer-encoding in an http/1.0 message")]
    TransferEncodingInHttp10,

    /// A chunk size that is not 1 to 16 hexadecimal digits. [RFC 9112 §7.1]
    #[error("malformed chunk size")]
    BadChunkSize,
    /// A malformed chunk extension, or more than 4096 bytes of them in one body.
    /// [RFC 9112 §7.1.1]
    #[error("malformed or oversized chunk extension")]
    BadChunkExtension,
    /// A chunk without a CRLF after its data. [RFC 9112 §7.1]
    #[error("chunk data without line end")]
    ChunkDataNotTerminated,
    /// A trailer that would change framing, routing or the connection. [RFC 9110 §6.5.1]
    #[error("forbidden trailer field")]
    BadTrailer,

    /// A response that does not begin with a status line. [RFC 9112 §4]
    #[error("malformed status line")]
    BadStatusLine,
    /// A status code outside 100 to 599. [RFC 9110 §15]
    #[error("illegal status code")]
    BadStatusCode,
    /// More than 16 interim responses to one request.
    #[error("too many interim responses")]
    TooManyInformational,
    /// A 101 to a request without an upgrade. [RFC 9110 §15.2.2]
    #[error("unrequested upgrade")]
    UnaskedUpgrade,
    /// Bytes from an upstream while no response is expected.
    #[error("unrequested data")]
    UnexpectedData,
    /// The connection closed inside a message. [RFC 9112 §8]
    #[error("message cut short")]
    Truncated,

    /// The field section is larger than `max_head_bytes`.
    #[error("header size {actual} exceeds limit {limit}")]
    HeaderSize {
        /// Bytes, including the first above the limit.
        actual: u32,
        /// The limit, in bytes.
        limit: u32,
    },
    /// The section has more field lines than `max_header_count`.
    #[error("header count {actual} exceeds limit {limit}")]
    HeaderCount {
        /// Lines, including the first above the limit.
        actual: u32,
        /// The limit, in lines.
        limit: u32,
    },
    /// A field's name is longer than `max_name_bytes`.
    #[error("header name size {actual} exceeds limit {limit}")]
    NameSize {
        /// Bytes, including the first above the limit.
        actual: u32,
        /// The limit, in bytes.
        limit: u32,
    },
    /// A field's value is longer than `max_value_bytes`.
    #[error("header value size {actual} exceeds limit {limit}")]
    ValueSize {
        /// Bytes, including the first known to be above the limit.
        actual: u32,
        /// The limit, in bytes.
        limit: u32,
    },
    /// The request target or reason phrase is longer than `max_target_bytes`.
    #[error("target size {actual} exceeds limit {limit}")]
    TargetSize {
        /// Bytes, including the first above the limit.
        actual: u32,
        /// The limit, in bytes.
        limit: u32,
    },
}

/// The class of a [`FramingError`], which decides the status of the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FramingErrorKind {
    /// Malformed or ambiguous: 400 for a client's message, 502 for an upstream's.
    Framing,
    /// Too large.
    Limit,
}

impl FramingError {
    /// The class of this error.
    pub fn group(self) -> FramingErrorKind {
        if matches!(
            self,
            Self::HeaderSize { .. }
                | Self::HeaderCount { .. }
                | Self::NameSize { .. }
                | Self::ValueSize { .. }
                | Self::TargetSize { .. }
        ) {
            FramingErrorKind::Limit
        } else {
            FramingErrorKind::Framing
        }
    }

    /// A stable name in snake case, for logs and metric labels.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::BareLf => "bare_lf",
            Self::BareCr => "bare_cr",
            Self::NulByte => "nul_byte",
            Self::ObsFold => "obs_fold",
            Self::SpaceBeforeFields => "space_before_fields",
            Self::SpaceBeforeColon => "space_before_colon",
            Self::EmptyName => "empty_name",
            Self::BadNameByte => "bad_name_byte",
            Self::ControlByteInValue => "control_byte_in_value",
            Self::BadRequestLine => "bad_request_line",
            Self::BadMethod => "bad_method",
            Self::BadTarget => "bad_target",
            Self::BadVersion => "bad_version",
            Self::Http2Preface => "http2_preface",
            Self::MissingHost => "missing_host",
            Self::RepeatedHost => "repeated_host",
            Self::BadHost => "bad_host",
            Self::ConflictingContentLength => "conflicting_content_length",
            Self::RepeatedContentLength => "repeated_content_length",
            Self::BadContentLength => "bad_content_length",
            Self::ContentLengthWithTransferEncoding => "content_length_with_transfer_encoding",
            Self::TransferEncodingNotChunked => "transfer_encoding_not_chunked",
            Self::TransferEncodingInHttp10 => "transfer_encoding_in_http10",
            Self::BadChunkSize => "bad_chunk_size",
            Self::BadChunkExtension => "bad_chunk_extension",
            Self::ChunkDataNotTerminated => "chunk_data_not_terminated",
            Self::BadTrailer => "bad_trailer",
            Self::BadStatusLine => "bad_status_line",
            Self::BadStatusCode => "bad_status_code",
            Self::TooManyInformational => "too_many_informational",
            Self::UnaskedUpgrade => "unasked_upgrade",
            Self::UnexpectedData => "unexpected_data",
            Self::Truncated => "truncated",
            Self::HeaderSize { .. } => "header_size",
            Self::HeaderCount { .. } => "header_count",
            Self::NameSize { .. } => "name_size",
            Self::ValueSize { .. } => "value_size",
            Self::TargetSize { .. } => "target_size",
        }
    }
}
