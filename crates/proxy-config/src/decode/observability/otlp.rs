//! The `otlp` block.

use crate::decode::block::Block;
use crate::decode::decoder::Decoder;
use crate::decode::field::Field;
use crate::diagnostic::Diagnostic;
use crate::diagnostic_code::DiagnosticCode;
use crate::kdl::Value;
use http::header::{CONNECTION, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HOST};
use http::header::{TRANSFER_ENCODING, UPGRADE};
use http::{HeaderName, HeaderValue};
use proxy_model::registry::observability::otlp as spec;
use proxy_model::{Otlp, OtlpHeader, Setting};

/// Fields that belong to the exporter and its connection.
const OWN_FIELDS: [HeaderName; 7] = [
    CONNECTION,
    CONTENT_ENCODING,
    CONTENT_LENGTH,
    CONTENT_TYPE,
    HOST,
    TRANSFER_ENCODING,
    UPGRADE,
];

pub(super) fn otlp<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Option<Otlp> {
    let b = b.inner(d, &spec::OTLP)?;
    let endpoint = b.required(d, &spec::ENDPOINT);
    let headers = headers(d, &b);
    let ca_file = b.file(d, &spec::OTLP_CA_FILE);
    let service_name = b.setting(d, &spec::SERVICE_NAME);
    let compression = b.setting(d, &spec::COMPRESSION);
    let timeout = b.setting(d, &spec::OTLP_TIMEOUT);
    let traces = b.setting(d, &spec::TRACES);
    let queue_spans = b.setting(d, &spec::QUEUE_SPANS);
    let metrics = b.setting(d, &spec::METRICS);
    let interval = b.setting(d, &spec::INTERVAL);
    b.close(d);
    let endpoint = endpoint?;
    if let Some(file) = ca_file.as_ref().filter(|_| !endpoint.is_tls()) {
        let message = "`ca-file` verifies certificates, and this collector has none";
        let place = file.place().unwrap_or_default();
        let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
        let fault = match endpoint.place() {
            Some(place) => fault.related(place, "a URL without TLS"),
            None => fault,
        };
        d.push(fault.help("write `https://` in `endpoint`, or leave `ca-file` out"));
    }
    if !*traces && !*metrics {
        let place = traces.place().or(metrics.place()).unwrap_or_default();
        let message = "`otlp` exports neither traces nor metrics";
        let fault = Diagnostic::new(DiagnosticCode::Conflict, place, message);
        d.push(fault.help("leave the block out"));
    }
    Some(Otlp {
        endpoint,
        headers,
        ca_file,
        service_name,
        compression,
        timeout,
        traces,
        queue_spans,
        metrics,
        interval,
    })
}

fn headers<'t>(d: &mut Decoder<'t, '_>, b: &Block<'t>) -> Vec<Setting<OtlpHeader>> {
    let fields = b.take(spec::HEADER.path);
    let headers = fields.iter().filter_map(|field| header(d, field));
    headers.collect()
}

/// `header "N" "v"`. A message has no value, which may be a credential.
fn header<'t>(d: &mut Decoder<'t, '_>, field: &Field<'t>) -> Option<Setting<OtlpHeader>> {
    let values = field.values(d)?;
    let [
        (Value::Text(name), place),
        (Value::Text(value), value_place),
    ] = values.as_slice()
    else {
        let message = "`header` takes a name and a value";
        let fault = Diagnostic::new(DiagnosticCode::MissingValue, field.place(d), message);
        d.push(fault.help(format!("write `header {}`", spec::HEADER.kind.example())));
        return None;
    };
    let Ok(name) = HeaderName::from_bytes(name.as_bytes()) else {
        let message = format!("`{name}` is not a header field name");
        d.push(Diagnostic::new(DiagnosticCode::BadValue, *place, message));
        return None;
    };
    if OWN_FIELDS.contains(&name) {
        let message = format!("`{name}` is a field of the exporter itself");
        let fault = Diagnostic::new(DiagnosticCode::BadValue, *place, message);
        d.push(fault.help("leave it out"));
        return None;
    }
    let value = HeaderValue::from_str(value).ok();
    let Some(mut value) = value.filter(|value| !value.is_empty()) else {
        let message = format!("the value of `{name}` is not a header field value");
        let fault = Diagnostic::new(DiagnosticCode::BadValue, *value_place, message);
        d.push(fault.help("write one or more printable ASCII characters"));
        return None;
    };
    value.set_sensitive(true);
    Some(Setting::at(OtlpHeader { name, value }, *place))
}
