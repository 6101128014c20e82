//! The formats of a metrics page, and the choice between them.

/// The format of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Prometheus text format 0.0.4.
    Prometheus,
    /// `OpenMetrics` 1.0.
    OpenMetrics,
}

impl Format {
    /// The format for the values of `Accept`: `OpenMetrics` if a range names it, or
    /// `application/*`, with at least the weight of `text/plain`. [RFC 9110 §12.5.1]
    pub fn accepted<'a>(accept: impl IntoIterator<Item = &'a str>) -> Self {
        // Weights by precision of the range: any type, any subtype, the format itself.
        let (mut openmetrics, mut prometheus) = ([None; 3], [None; 3]);
        let ranges = accept.into_iter().flat_map(|value| value.split(','));
        for range in ranges {
            let mut parts = range.split(';').map(str::trim);
            let media = parts.next().unwrap_or_default().to_ascii_lowercase();
            let Some(weight) = weight(parts) else {
                continue;
            };
            match media.as_str() {
                "*/*" => prometheus[0] = Some(weight),
                "text/*" => prometheus[1] = Some(weight),
                "text/plain" => raise(&mut prometheus[2], weight),
                "application/*" => openmetrics[1] = Some(weight),
                "application/openmetrics-text" => raise(&mut openmetrics[2], weight),
                _ => {}
            }
        }
        let most_precise = |weights: [Option<f32>; 3]| weights.into_iter().rev().flatten().next();
        let openmetrics = most_precise(openmetrics).unwrap_or_default();
        if 0.0 < openmetrics && most_precise(prometheus).unwrap_or_default() <= openmetrics {
            Self::OpenMetrics
        } else {
            Self::Prometheus
        }
    }

    /// The `Content-Type` of the page.
    pub const fn content_type(self) -> &'static str {
        match self {
            Self::Prometheus => "text/plain; version=0.0.4; charset=utf-8",
            Self::OpenMetrics => "application/openmetrics-text; version=1.0.0; charset=utf-8",
        }
    }
}

/// The weight among the parameters of a range; 1 without one, 0 if it is malformed. `None` if they
/// require a version of the format other than 0 or 1.
fn weight<'a>(parameters: impl Iterator<Item = &'a str>) -> Option<f32> {
    let mut weight = 1.0;
    for parameter in parameters {
        let Some((name, value)) = parameter.split_once('=') else {
            continue;
        };
        if name.eq_ignore_ascii_case("q") {
            let parsed = value.parse().unwrap_or_default();
            weight = if (0.0..=1.0).contains(&parsed) {
                parsed
            } else {
                0.0
            };
        } else if name.eq_ignore_ascii_case("version") {
            let version = value.trim_matches('"');
            if !version.starts_with("0.") && !version.starts_with("1.") {
                return None;
            }
        }
    }
    Some(weight)
}

/// Sets the weight of a format, which may be named with several versions: the highest counts.
fn raise(weight: &mut Option<f32>, other: f32) {
    *weight = Some(weight.map_or(other, |weight| weight.max(other)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn openmetrics_is_sent_only_to_clients_that_accept_it() {
        let prometheus = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.2,*/*";
        let current = "application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.6,\
            application/openmetrics-text;version=0.0.1;q=0.5,text/plain;version=1.0.0;q=0.4,\
            text/plain;version=0.0.4;q=0.3,*/*;q=0.2";
        let cases = [
            (prometheus, Format::OpenMetrics),
            (current, Format::OpenMetrics),
            ("*/*", Format::Prometheus),
            ("", Format::Prometheus),
            ("text/plain;version=0.0.4", Format::Prometheus),
            ("application/openmetrics-text", Format::OpenMetrics),
            ("APPLICATION/OpenMetrics-Text; Q=0.1", Format::OpenMetrics),
            ("application/*", Format::OpenMetrics),
            (
                "text/plain, application/openmetrics-text",
                Format::OpenMetrics,
            ),
            ("application/openmetrics-text; q=0", Format::Prometheus),
            ("application/openmetrics-text; q=0.0000", Format::Prometheus),
            ("application/openmetrics-text; q=high", Format::Prometheus),
            (
                "application/openmetrics-text; version=2.0.0",
                Format::Prometheus,
            ),
            (
                "application/openmetrics-text;q=0.5, text/plain",
                Format::Prometheus,
            ),
            (
                "application/openmetrics-text;q=0.5, text/plain;q=0.6",
                Format::Prometheus,
            ),
            (
                "application/openmetrics-text;q=0.5, text/*;q=0.6",
                Format::Prometheus,
            ),
            (
                "application/openmetrics-text;q=0.5, */*;q=0.6",
                Format::Prometheus,
            ),
            // The most precise range counts, not the highest weight.
            (
                "application/openmetrics-text;q=0.5, text/plain;q=0.1, */*;q=0.6",
                Format::OpenMetrics,
            ),
            (
                "application/openmetrics-text;q=0, application/*;q=0.9, text/plain;q=0.1",
                Format::Prometheus,
            ),
        ];
        for (accept, format) in cases {
            assert_eq!(Format::accepted([accept]), format, "{accept}");
        }
    }

    #[test]
    fn lines_of_accept_are_one_list() {
        let lines = ["text/plain;q=0.5", "application/openmetrics-text"];
        assert_eq!(Format::accepted(lines), Format::OpenMetrics);
    }
}
