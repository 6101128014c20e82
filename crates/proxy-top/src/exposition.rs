//! The text format of Prometheus 0.0.4, as the admin interface writes it.

/// A sample of a metric.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Sample<'t> {
    pub(crate) name: &'t str,
    pub(crate) value: f64,
    labels: Vec<(&'t str, String)>,
}

impl Sample<'_> {
    /// The value of a label; empty without it.
    pub(crate) fn label(&self, name: &str) -> &str {
        let mut labels = self.labels.iter();
        let label = labels.find(|(known, _)| *known == name);
        label.map_or("", |(_, value)| value)
    }
}

/// The samples of a page with finite values. Comments, and lines of another form, are left out.
pub(crate) fn samples(page: &str) -> impl Iterator<Item = Sample<'_>> {
    page.lines().filter_map(sample)
}

fn sample(line: &str) -> Option<Sample<'_>> {
    if line.starts_with('#') {
        return None;
    }
    let (name, rest) = line.split_at_checked(line.find(['{', ' '])?)?;
    let (labels, rest) = match rest.strip_prefix('{') {
        Some(rest) => labels(rest)?,
        None => (Vec::new(), rest),
    };
    let value: f64 = rest.trim_start().split(' ').next()?.parse().ok()?;
    value.is_finite().then_some(Sample {
        name,
        value,
        labels,
    })
}

/// The labels up to the brace, and the text after it.
fn labels(mut rest: &str) -> Option<(Vec<(&str, String)>, &str)> {
    let mut labels = Vec::new();
    loop {
        rest = rest.strip_prefix(',').unwrap_or(rest);
        if let Some(after) = rest.strip_prefix('}') {
            return Some((labels, after));
        }
        let (name, after) = rest.split_once("=\"")?;
        let (value, after) = quoted(after)?;
        labels.push((name, value));
        rest = after;
    }
}

/// A value up to its quotation mark, without escapes, and the text after it.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut chars = text.chars();
    loop {
        match chars.next()? {
            '"' => return Some((value, chars.as_str())),
            '\\' => match chars.next()? {
                'n' => value.push('\n'),
                escaped => value.push(escaped),
            },
            plain => value.push(plain),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "# HELP a Requests.\n# TYPE a counter\n\
        a{route=\"x\\\"y\\\\z\\nw\",status=\"200\"} 12\nb 0.500000000\nc_bucket{le=\"+Inf\"} 3 1700000000\n";

    #[test]
    fn samples_have_names_labels_and_values() {
        let found: Vec<_> = samples(PAGE).collect();
        let names: Vec<_> = found
            .iter()
            .map(|sample| (sample.name, sample.value))
            .collect();
        assert_eq!(names, [("a", 12.0), ("b", 0.5), ("c_bucket", 3.0)]);
        assert_eq!(found[0].label("route"), "x\"y\\z\nw");
        assert_eq!(found[0].label("status"), "200");
        assert_eq!(found[1].label("route"), "");
        assert_eq!(found[2].label("le"), "+Inf");
    }

    #[test]
    fn lines_of_another_form_are_left_out() {
        for line in [
            "",
            "a",
            "a{",
            "a{b",
            "a{b=\"c",
            "a{b=\"c\\",
            "a{b=\"c\"} x",
            "a NaN",
            "a +Inf",
        ] {
            assert_eq!(samples(line).count(), 0, "{line}");
        }
        for end in (0..PAGE.len()).filter(|end| PAGE.is_char_boundary(*end)) {
            assert!(samples(&PAGE[..end]).count() <= 3);
        }
    }
}
