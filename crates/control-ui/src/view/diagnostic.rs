//! Converts nodes' diagnostics, which span several lines, to a single sentence.

/// Prefixes of a diagnostic's message line, for terminals with and without Unicode.
const MESSAGE: [&str; 2] = ["x ", "× "];
const PLACE: [&str; 2] = [",-[", "╭─["];
const LABEL: [&str; 2] = ["`-- ", "╰── "];
const END: [&str; 2] = ["`----", "╰────"];

/// Replaces each multi-line error by `message: label (file:line:column)`; other text stays
/// unchanged.
pub(crate) fn in_one_line(text: &str) -> String {
    let mut whole = String::new();
    let mut rest = text;
    while let Some((before, drawn)) = rest.split_once("error[") {
        let Some((sentence, after)) = sentence(drawn) else {
            break;
        };
        whole.push_str(before);
        whole.push_str(&sentence);
        rest = after;
    }
    whole.push_str(rest);
    whole
        .split_whitespace()
        .collect::<Vec<_>>()
        .join(" ")
        .replace(" ;", ";")
        .replace(") help: ", "). Help: ")
}

/// Sentence for a multi-line error, and the text after it.
fn sentence(drawn: &str) -> Option<(String, &str)> {
    let end = END.iter().filter_map(|end| {
        let at = drawn.find(end)?;
        Some(at + end.len())
    });
    let end = end.min()?;
    let (drawn, after) = drawn.split_at_checked(end)?;
    let after_begin = |begins: &[&str], line: &str| {
        let found = begins.iter().find_map(|begin| line.split_once(begin));
        found.map(|(_, rest)| rest.trim().to_owned())
    };
    let mut message = None;
    let (mut place, mut label) = (None, None);
    for line in drawn.lines() {
        let own = line.trim_start();
        if message.is_none() {
            let mut begins = MESSAGE.iter();
            message = begins
                .find_map(|begin| own.strip_prefix(begin))
                .map(str::to_owned);
        }
        place = place.or_else(|| after_begin(&PLACE, line));
        label = label.or_else(|| after_begin(&LABEL, line));
    }
    let mut sentence = message?;
    if let Some(label) = label {
        sentence = format!("{sentence}: {label}");
    }
    if let Some(place) = place {
        let place = place.trim_end_matches(']');
        let file = place.rsplit('/').next().unwrap_or(place);
        sentence = format!("{sentence} ({file})");
    }
    Some((sentence, after))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DRAWN: &str = "error[address-in-use]\n\n  x cannot listen on 0.0.0.0:8080\n   \
        ,-[/var/lib/proxyd/active/1-1/proxy.kdl:2:31]\n 2 |     listener \"http\" { address \"0.0.0.0:8080\" }\n   \
        :                               ^^^^^^|^^^^^^\n   \
        :                                     `-- the port is in use by another process\n   `----\n";

    #[test]
    fn a_drawn_error_is_a_sentence_with_its_place() {
        let reason = format!("node a rejected the bundle: {DRAWN}; 2 nodes had no former bundle");
        assert_eq!(
            in_one_line(&reason),
            "node a rejected the bundle: cannot listen on 0.0.0.0:8080: the port is in use by another process \
             (proxy.kdl:2:31); 2 nodes had no former bundle"
        );
        assert_eq!(
            in_one_line(&format!("{DRAWN}{DRAWN}"))
                .matches("(proxy.kdl:2:31)")
                .count(),
            2
        );
    }

    #[test]
    fn the_help_of_an_error_is_a_sentence_of_its_own() {
        let help = format!("{DRAWN}  help: choose another port\n");
        let shown = in_one_line(&help);
        assert!(
            shown.ends_with("(proxy.kdl:2:31). Help: choose another port"),
            "{shown}"
        );
    }

    #[test]
    fn other_texts_stay() {
        for text in [
            "no such upstream",
            "error[",
            "error[x] without a drawing",
            "",
        ] {
            assert_eq!(in_one_line(text), text);
        }
    }
}
