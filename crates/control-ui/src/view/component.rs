//! Components of pages: icons, states, times, bars, links to next pages.

use crate::view::phrase::{ago, date_time, minute, sentence};
use askama::Template;
use askama::filters::HtmlSafe;
use jiff::Timestamp;
use std::borrow::Cow;

/// Tone of a state, shown as a colour together with an icon and a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Ok,
    Warn,
    Bad,
    Busy,
    Off,
}

impl Tone {
    /// Class in the style sheet.
    pub(crate) fn class(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Bad => "bad",
            Self::Busy => "busy",
            Self::Off => "off",
        }
    }
}

/// A decorative icon; a word is always next to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Template)]
#[template(
    ext = "html",
    source = r##"<svg class="i" viewBox="0 0 16 16" aria-hidden="true"><use href="#icon-{{ name }}"/></svg>"##
)]
pub(crate) struct Icon {
    name: &'static str,
}

pub(crate) fn icon(name: &'static str) -> Icon {
    Icon { name }
}

/// Text in which parts between backticks are shown as code.
#[derive(Clone, Debug, PartialEq, Eq, Template)]
#[template(
    ext = "html",
    source = r#"{% for (text, is_code) in parts %}{% if *is_code %}<code>{{ text }}</code>{% else %}{{ text }}{% endif %}{% endfor %}"#
)]
pub(crate) struct Prose<'a> {
    parts: Vec<(&'a str, bool)>,
}

/// Marks the parts between backticks as code. A single backtick is shown unchanged.
pub(crate) fn prose(text: &str) -> Prose<'_> {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return Prose {
            parts: vec![(text, false)],
        };
    }
    let parts = parts.into_iter().enumerate();
    Prose {
        parts: parts
            .map(|(index, part)| (part, !index.is_multiple_of(2)))
            .collect(),
    }
}

/// A complete sentence with parts shown as code.
#[derive(Debug, Template)]
#[template(ext = "html", source = "{{ crate::view::component::prose(text) }}")]
pub(crate) struct ProseSentence {
    text: String,
}

/// Adds a capital letter and a full stop to `text`, and marks its code.
pub(crate) fn prose_sentence(text: &str) -> ProseSentence {
    ProseSentence {
        text: sentence(text),
    }
}

/// A state as an icon and a word.
#[derive(Clone, Debug, PartialEq, Eq, Template)]
#[template(
    ext = "html",
    source = r#"<span class="is {{ tone.class() }}{% if is_pill %} pill{% endif %}">{{ icon }}{{ word }}</span>"#
)]
pub(crate) struct Status {
    pub(crate) tone: Tone,
    icon: Icon,
    pub(crate) word: Cow<'static, str>,
    is_pill: bool,
}

impl Status {
    /// A state with this icon.
    pub(crate) fn new(tone: Tone, icon: &'static str, word: impl Into<Cow<'static, str>>) -> Self {
        Self {
            tone,
            icon: Icon { name: icon },
            word: word.into(),
            is_pill: false,
        }
    }

    /// The icon without the word.
    pub(crate) fn sign(&self) -> Icon {
        self.icon
    }

    /// Shows the state as a pill, for the top of a page.
    pub(crate) fn pill(self) -> Self {
        Self {
            is_pill: true,
            ..self
        }
    }
}

/// A time, relative and exact.
#[derive(Clone, Debug, Template)]
#[template(
    ext = "html",
    source = r#"<time datetime="{{ iso }}"><span class="nowrap">{{ ago }}</span> <span class="small muted nowrap">{{ exact }}</span></time>"#
)]
pub(crate) struct RelativeTime {
    iso: String,
    ago: String,
    exact: String,
}

/// A time relative to the present.
pub(crate) fn when(at: Timestamp, now: Timestamp) -> RelativeTime {
    RelativeTime {
        iso: at.to_string(),
        ago: ago(at, now),
        exact: date_time(at, now),
    }
}

/// A time of day, for lists of a single day.
#[derive(Clone, Debug, Template)]
#[template(
    ext = "html",
    source = r#"<time datetime="{{ iso }}" title="{{ exact }}">{{ minute }}</time>"#
)]
pub(crate) struct AbsoluteTime {
    iso: String,
    minute: String,
    exact: String,
}

/// A time of day, with the date if it is not today.
pub(crate) fn moment(at: Timestamp, now: Timestamp) -> AbsoluteTime {
    AbsoluteTime {
        iso: at.to_string(),
        minute: minute(at, now),
        exact: date_time(at, now),
    }
}

/// Shares of a whole, as a bar and as text.
#[derive(Clone, Debug, Template)]
#[template(
    ext = "html",
    source = r#"<svg class="bars" viewBox="0 0 100 14" preserveAspectRatio="none" role="img" aria-label="{{ label }}">{% for part in parts %}<rect class="f-{{ part.tone.class() }}" x="{{ part.x }}" width="{{ part.width }}" height="14"/>{% endfor %}</svg>"#
)]
pub(crate) struct Bar {
    label: String,
    parts: Vec<Part>,
}

#[derive(Clone, Debug)]
struct Part {
    tone: Tone,
    x: String,
    width: String,
}

/// Minimum width of a non-zero share, in hundredths.
const MIN_SHARE: f64 = 0.6;
const GAP: f64 = 0.3;

/// Builds a bar of `shares`; `label` is its text alternative.
#[expect(clippy::cast_precision_loss, reason = "counts of nodes fit")]
pub(crate) fn bar(label: String, shares: &[(Tone, i64)]) -> Bar {
    let shares: Vec<(Tone, f64)> = shares
        .iter()
        .filter(|(_, count)| 0 < *count)
        .map(|(tone, count)| (*tone, *count as f64))
        .collect();
    let total: f64 = shares.iter().map(|(_, count)| count).sum();
    let widths = shares
        .iter()
        .map(|(tone, count)| (*tone, (count / total * 100.0).max(MIN_SHARE)));
    let widths: Vec<(Tone, f64)> = widths.collect();
    // Widened small shares and gaps change the sum, which is scaled back to 100.
    let sum: f64 = widths.iter().map(|(_, width)| width + GAP).sum::<f64>() - GAP;
    let scale = 100.0 / sum.max(1.0);
    let mut x = 0.0;
    let mut parts = Vec::new();
    for (tone, width) in widths {
        parts.push(Part {
            tone,
            x: format!("{:.2}", x * scale),
            width: format!("{:.2}", width * scale),
        });
        x += width + GAP;
    }
    Bar { label, parts }
}

/// Link to the next page of a list.
#[derive(Clone, Debug, Template)]
#[template(
    ext = "html",
    source = r#"{% if let Some(href) = next %}<p class="more"><a class="button" rel="next" href="{{ href }}">{{ label }}</a></p>{% endif %}"#
)]
pub(crate) struct NextPage {
    next: Option<String>,
    label: &'static str,
}

/// Builds the link; absent on the last page.
pub(crate) fn more(next: Option<String>, label: &'static str) -> NextPage {
    NextPage { next, label }
}

impl HtmlSafe for Icon {}
impl HtmlSafe for Status {}
impl HtmlSafe for Prose<'_> {}
impl HtmlSafe for ProseSentence {}
impl HtmlSafe for RelativeTime {}
impl HtmlSafe for AbsoluteTime {}
impl HtmlSafe for Bar {}
impl HtmlSafe for NextPage {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_has_an_icon_and_an_escaped_label() {
        let status = Status::new(Tone::Bad, "bad", "<b>".to_owned()).to_string();
        assert!(status.contains("href=\"#icon-bad\"") && status.contains("&#60;b&#62;"));
    }

    #[test]
    fn code_of_a_sentence_stands_in_pairs_of_backticks_and_is_escaped() {
        let text = prose("write `<b>` here").to_string();
        assert_eq!(text, "write <code>&#60;b&#62;</code> here");
        assert_eq!(prose("one ` alone").to_string(), "one ` alone");
        let fault = prose_sentence("`a` is wrong").to_string();
        assert_eq!(fault, "<code>a</code> is wrong.");
    }

    #[test]
    fn a_small_share_is_seen_and_the_bar_ends_at_its_end() {
        let made = bar(
            String::new(),
            &[(Tone::Ok, 9_999), (Tone::Off, 0), (Tone::Bad, 1)],
        );
        assert_eq!(made.parts.len(), 2);
        let ends: Vec<f64> = made
            .parts
            .iter()
            .map(|part| part.x.parse::<f64>().unwrap() + part.width.parse::<f64>().unwrap())
            .collect();
        assert!((99.9..=100.1).contains(&ends[1]), "{ends:?}");
        assert!(0.5 < made.parts[1].width.parse().unwrap());
    }
}
