//! Properties that hold for any bytes; shared by the fuzz target and the test that replays its
//! corpus.

use proxy_errors::{ResponseForm, ServiceForm};

/// `data` is an `Accept`: it is used only if the route does not decide, and HTML is sent only to
/// clients that accept text.
pub(crate) fn accept(data: &[u8]) {
    let choose = |service| ResponseForm::choose(service, Some(data), None);
    assert_eq!(choose(ServiceForm::Api), ResponseForm::Json);
    assert_eq!(choose(ServiceForm::Web), ResponseForm::Html);
    let chosen = choose(ServiceForm::Unsaid);
    let named = data.to_ascii_lowercase();
    let holds = |name: &[u8]| named.windows(name.len()).any(|at| at == name);
    assert!(chosen == ResponseForm::Json || holds(b"text/") || holds(b"*/*"));
    let spaced = [b" \t", data, b" "].concat();
    let again = ResponseForm::choose(ServiceForm::Unsaid, Some(&spaced), None);
    assert_eq!(again, chosen);
    let first = [b"text/html;q=0, application/json;q=0,", data].concat();
    let refused = ResponseForm::choose(ServiceForm::Unsaid, Some(&first), None);
    assert_eq!(refused, ResponseForm::Json);
    // The same bytes as a content type.
    let by_type = ResponseForm::choose(ServiceForm::Web, None, Some(data));
    assert!(by_type == ResponseForm::Html || named.starts_with(b"application/grpc"));
}
