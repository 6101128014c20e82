//! Suggestions for misspelt names.

/// The known name nearest to `written`, if one is near enough.
pub(crate) fn nearest<'a>(
    written: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> Option<&'a str> {
    let written = plain(written);
    let allowed = (written.chars().count() / 3).clamp(1, 4);
    known
        .into_iter()
        .map(|name| (strsim::osa_distance(&written, &plain(name)), name))
        .filter(|(distance, name)| *distance <= allowed && *distance < name.chars().count())
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, name)| name)
}

/// `name` without the commonest mistakes: case, `_` for `-` and a trailing `:`.
fn plain(name: &str) -> String {
    // Bounds the cost: an edit distance costs the product of the lengths, and no name has 64
    // characters.
    let name: String = name.chars().take(64).collect();
    name.trim_end_matches([':', '='])
        .to_lowercase()
        .replace('_', "-")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_name_finds_the_nearest_one() {
        let known = ["upstream", "priority", "policies", "host"];
        let cases = [
            ("upsteam", Some("upstream")),
            ("Upstream:", Some("upstream")),
            ("proirity", Some("priority")),
            ("hots", Some("host")),
            ("polices", Some("policies")),
            ("banana", None),
            ("x", None),
        ];
        for (written, meant) in cases {
            assert_eq!(nearest(written, known), meant, "{written}");
        }
    }
}
