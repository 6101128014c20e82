//! Placeholders in values.

const PLACEHOLDERS: &[(&str, &str)] = &[
    ("host", "{host}"),
    ("http.request.host", "{host}"),
    ("hostport", "{host}"),
    ("http.request.hostport", "{host}"),
    ("remote_host", "{client_ip}"),
    ("client_ip", "{client_ip}"),
    ("http.request.remote.host", "{client_ip}"),
    ("remote", "{client_ip}"),
    ("scheme", "{scheme}"),
    ("http.request.scheme", "{scheme}"),
    ("method", "{method}"),
    ("path", "{path}"),
    ("uri", "{uri}"),
    ("query", "{query}"),
    ("http.request.uri", "{uri}"),
    ("http.request.uuid", "{correlation_id}"),
    ("tls_version", "{tls_version}"),
    ("tls_client_subject", "{tls_client_subject}"),
    ("tls_client_fingerprint", "{tls_client_fingerprint}"),
];

/// A value with those of this program; `None` if a placeholder has no counterpart. Variables of the
/// environment are written alike.
pub(super) fn converted(value: &str) -> Option<String> {
    let mut text = String::new();
    let mut rest = value;
    while let Some((before, after)) = rest.split_once('{') {
        text.push_str(before);
        let (name, behind) = after.split_once('}')?;
        if name.starts_with('$') {
            text.push_str(&format!("{{{name}}}"));
        } else {
            let (_, ours) = PLACEHOLDERS.iter().find(|(theirs, _)| *theirs == name)?;
            text.push_str(ours);
        }
        rest = behind;
    }
    text.push_str(rest);
    Some(text)
}
