//! The preference in an `Accept` field. [RFC 9110 §12.5.1]

/// The preference for a media type: first the weight, then the specificity of the matching range.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
struct Preference {
    /// In thousandths, 0 to 1000.
    weight: u16,
    exactness: u8,
}

/// Returns true if `text/html` is preferred to `application/json`: by weight, or at the same weight
/// by the more specific range. `*/*` alone matches both, so it states no preference.
pub(crate) fn prefers_html(accept: &[u8]) -> bool {
    let html = preference(accept, b"text", b"html");
    let json = preference(accept, b"application", b"json");
    0 < html.weight && json < html
}

/// The most specific range that matches the type decides; among equal ones, the first.
fn preference(accept: &[u8], kind: &[u8], subtype: &[u8]) -> Preference {
    let mut best = Preference::default();
    for range in unquoted_split(accept, b',') {
        let mut parts = unquoted_split(range, b';');
        let name = parts.next().unwrap_or_default().trim_ascii();
        let exactness = exactness(name, kind, subtype);
        if exactness <= best.exactness {
            continue;
        }
        let weight = parts.find_map(weight).unwrap_or(1000);
        best = Preference { weight, exactness };
    }
    best
}

fn exactness(range: &[u8], kind: &[u8], subtype: &[u8]) -> u8 {
    let mut halves = range.splitn(2, |byte| *byte == b'/');
    let (Some(left), Some(right)) = (halves.next(), halves.next()) else {
        return 0;
    };
    let any = |half: &[u8]| half == b"*";
    if left.eq_ignore_ascii_case(kind) && right.eq_ignore_ascii_case(subtype) {
        3
    } else if left.eq_ignore_ascii_case(kind) && any(right) {
        2
    } else {
        u8::from(any(left) && any(right))
    }
}

/// The thousandths of a `q` parameter; a malformed one counts as 0.
fn weight(parameter: &[u8]) -> Option<u16> {
    let [b'q' | b'Q', b'=', value @ ..] = parameter.trim_ascii() else {
        return None;
    };
    let thousandths = match value {
        [b'1'] => 1000,
        [b'1', b'.', zeros @ ..] if zeros.len() <= 3 && zeros.iter().all(|zero| *zero == b'0') => {
            1000
        }
        [b'0', b'.', digits @ ..] if digits.len() <= 3 && digits.iter().all(u8::is_ascii_digit) => {
            let padded = digits.iter().chain(b"000").take(3);
            padded.fold(0, |sum, digit| sum * 10 + u16::from(digit - b'0'))
        }
        _ => 0,
    };
    Some(thousandths)
}

/// Splits at `mark` outside quoted strings.
fn unquoted_split(text: &[u8], mark: u8) -> impl Iterator<Item = &[u8]> {
    let mut quoted = false;
    let mut escaped = false;
    text.split(move |byte| {
        let was_escaped = std::mem::take(&mut escaped);
        match byte {
            b'\\' if quoted && !was_escaped => escaped = true,
            b'"' if !was_escaped => quoted = !quoted,
            _ => {}
        }
        !quoted && *byte == mark
    })
}
