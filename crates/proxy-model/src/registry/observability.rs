//! The `observability` block.

pub mod otlp;

use super::kind::Block;
use super::number::{Decimal, Integer, Size};
use super::spec::{DefaultValue, MachinePart, Repeatable, Unset};
use super::table::{
    block, choice, decimal, flag, integer, settings, size, text, word, words, written,
};
use super::text::{Text, Written};
use super::word::{Choice, ChoiceWord, Flag};
use crate::observability::{AccessLogFormat, LogLevel, LogTarget};
use http::HeaderName;

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;

const LEVELS: &[ChoiceWord<LogLevel>] = &[
    word("error", LogLevel::Error, "an operator must act"),
    word(
        "warn",
        LogLevel::Warn,
        "a limit was hit, or a fault recovered from",
    ),
    word("info", LogLevel::Info, "starts, reloads, drains"),
    word("debug", LogLevel::Debug, "decisions, for development"),
    word("trace", LogLevel::Trace, "everything"),
];

settings! {
    /// The access log: one line for each request.
    ACCESS_LOG: Block, Unset = block("observability.access-log")
        .optional("each setting has its default")
        .enforced("proxy-config", "every_block_is_decoded");
    /// Writes the access log.
    ACCESS_ENABLED: Flag, DefaultValue<bool> = flag("observability.access-log.enabled")
        .or(true)
        .enforced("proxy-telemetry", "an_access_log_that_is_off_writes_no_line");
    /// Destination: `stdout`, `stderr`, a file, `syslog` (the socket `/dev/log`), or `syslog:` with
    /// the path of a socket or the address and port of a server by UDP. Files are opened again on
    /// reload.
    ACCESS_PATH: Text<LogTarget>, DefaultValue<Written<LogTarget>> = text(
        "observability.access-log.path",
        "`stdout`, `stderr`, a file, or `syslog`",
        "/var/log/proxy/access.log",
        LogTarget::parse,
    )
    .or(written("stdout", || LogTarget::Stdout))
    .names(MachinePart::File)
    .enforced("proxy-telemetry", "logs_go_to_files");
    /// Format of a line: `json`, an object with all fields; `combined`, the Combined Log Format of
    /// Apache and nginx, which `GoAccess`, lnav and fail2ban read; or a line of fields, as
    /// `{client_ip} {method} {path} {status} {duration_ms}`, with `-` for an absent one. Error
    /// records are always JSON.
    ACCESS_FORMAT: Text<AccessLogFormat>, DefaultValue<Written<AccessLogFormat>> = text(
        "observability.access-log.format",
        "`json`, `combined`, or a line with fields of records such as `{client_ip}`",
        "combined",
        AccessLogFormat::parse,
    )
    .or(written("json", || AccessLogFormat::Json))
    .enforced("proxyd", "an_access_log_in_the_combined_format_has_a_line_for_each_request");
    /// Lines that may wait for a slow disk. Further ones are dropped and counted; a request never
    /// waits for its line.
    ACCESS_BUFFER: Integer<u32>, DefaultValue<u32> =
        integer("observability.access-log.buffer-lines", 1, 1_000_000, "lines")
            .or(8_192)
            .enforced(
                "proxy-telemetry",
                "lines_over_the_buffer_are_dropped_and_counted",
            );
    /// The error log: faults, limits and results of reloads, one line of JSON each.
    ERROR_LOG: Block, Unset = block("observability.error-log")
        .optional("each setting has its default")
        .enforced("proxy-config", "every_block_is_decoded");
    /// The lowest level that is written.
    ERROR_LEVEL: Choice<LogLevel>, DefaultValue<LogLevel> = choice("observability.error-log.level", LEVELS)
        .or(LogLevel::Info)
        .enforced("proxy-telemetry", "records_below_the_level_are_not_written");
    /// Destination: `stdout`, `stderr`, a file, `syslog` (the socket `/dev/log`), or `syslog:` with
    /// the path of a socket or the address and port of a server by UDP. Files are opened again on
    /// reload.
    ERROR_PATH: Text<LogTarget>, DefaultValue<Written<LogTarget>> = text(
        "observability.error-log.path",
        "`stdout`, `stderr`, a file, or `syslog`",
        "/var/log/proxy/error.log",
        LogTarget::parse,
    )
    .or(written("stdout", || LogTarget::Stdout))
    .names(MachinePart::File)
    .enforced("proxy-telemetry", "logs_go_to_files");
    /// Names of query parameters to redact, in any case.
    REDACT_QUERY: Text<String>, Repeatable =
        words("observability.redact-query", "a parameter's name", "token")
            .many()
            .enforced("proxy-telemetry", "secrets_are_never_written");
    /// Trace context (W3C). A valid `traceparent` is forwarded unchanged, with `tracestate`, and
    /// its trace's ID is `trace_id` in access and limit records.
    TRACE_CONTEXT: Block, Unset = block("observability.trace-context")
        .optional("each setting has its default")
        .enforced("proxy-config", "every_block_is_decoded");
    /// Begins a trace here for requests without a valid `traceparent`; their `tracestate` is
    /// removed.
    TRACE_BEGIN: Flag, DefaultValue<bool> = flag("observability.trace-context.begin")
        .or(false)
        .enforced("proxy-pipeline", "a_request_without_a_trace_begins_one_where_that_is_set");
    /// Share of the traces begun here that are marked as sampled. The mark of traces begun elsewhere is never changed.
    TRACE_SAMPLE: Decimal, DefaultValue<f64> =
        decimal("observability.trace-context.sample-percent", 0.0, 100.0, "percent")
            .or(100.0)
            .enforced(
                "proxy-pipeline",
                "a_request_without_a_trace_begins_one_where_that_is_set",
            );
    /// Recording of requests' heads in memory, for `proxyd replay`: one access record per request
    /// with its listener and its header fields, never a body. `GET /admin/recording` returns the
    /// newest ones.
    RECORDING: Block, Unset = block("observability.recording")
        .optional("no request is recorded")
        .enforced("proxyd", "recorded_requests_are_decided_again_as_they_were");
    /// Share of requests that is recorded.
    RECORDING_SAMPLE: Decimal, DefaultValue<f64> =
        decimal("observability.recording.sample-percent", 0.0, 100.0, "percent")
            .or(10.0)
            .enforced("proxy-pipeline", "a_share_is_taken_evenly");
    /// Memory for the newest records, about 500 bytes each.
    RECORDING_KEEP: Size, DefaultValue<u64> = size("observability.recording.keep", 64 * KIB, GIB)
        .or(16 * MIB)
        .enforced("proxyd", "a_recording_is_bounded_and_ends_with_its_setting");
    /// Names of header fields with values recorded as digests, with a key of the process. Values of fields with names that
    /// hold `auth`, `cookie`, `credential`, `key`, `password`, `secret`, `session` or `token`, and of fields with tokens by
    /// `jwt { header }` of any route, always are. Query parameters are redacted as in logs, also in URLs in header fields.
    RECORDING_REDACT: Text<HeaderName>, Repeatable =
        text("observability.recording.redact", "a header name", "x-tenant", header_name)
            .many()
            .enforced("proxyd", "a_recording_has_no_credentials");
}

fn header_name(text: &str) -> Result<HeaderName, String> {
    HeaderName::from_bytes(text.as_bytes()).map_err(|error| error.to_string())
}
