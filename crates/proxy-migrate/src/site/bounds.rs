//! Ranges of numeric settings. Another server's number outside of a range would make the whole
//! result invalid.

use super::Site;
use crate::kdl::Node;
use crate::migrated::Place;

const SECOND: u64 = 1_000;
const HOUR: u64 = 3_600_000;
const DAY: u64 = 86_400_000;

/// Minimum and maximum of settings; times are in milliseconds, without the unit in the name.
const RANGES: &[(&str, u64, u64)] = &[
    ("base-ejection", SECOND, HOUR),
    ("body-idle", SECOND, HOUR),
    ("burst", 1, 100_000_000),
    ("connect", SECOND, HOUR),
    ("consecutive-failures", 0, 10_000),
    ("gzip-level", 1, 9),
    ("handshake", SECOND, 300_000),
    ("header", SECOND, HOUR),
    ("healthy-threshold", 1, 1_000),
    ("idle", SECOND, 604_800_000),
    ("interval", SECOND, DAY),
    ("keep-alive", SECOND, HOUR),
    ("max-body-size", 0, 1 << 40),
    ("max-body-size-bytes", 0, 1 << 40),
    ("max-header-size-bytes", 256, 1 << 20),
    ("max-header-value-bytes", 64, 1 << 20),
    ("max-idle", 0, 1_000_000),
    ("max-total-connections", 1, 10_000_000),
    ("min-size", 0, 1 << 30),
    ("read", SECOND, DAY),
    ("request", SECOND, DAY),
    ("requests-per-second", 1, 1_000_000),
    ("timeout", SECOND, HOUR),
    ("ttl", SECOND, 31_536_000_000),
    ("unhealthy-threshold", 1, 1_000),
    ("weight", 0, 10_000),
    ("worker-threads", 0, 1_024),
    ("write-idle", SECOND, HOUR),
];

impl Site {
    /// Limits a directive's number to the range of its setting; notes a change.
    pub(crate) fn within(
        &mut self,
        place: &Place,
        directive: &str,
        setting: &str,
        number: u64,
    ) -> u64 {
        let range = RANGES.iter().find(|(name, _, _)| *name == setting);
        let Some((_, least, greatest)) = range else {
            return number;
        };
        let bounded = number.clamp(*least, *greatest);
        if bounded != number {
            self.note(
                place,
                directive,
                &format!(
                    "the number is outside of the range of `{setting}`, and is written as {bounded}"
                ),
            );
        }
        bounded
    }

    /// A setting with a directive's number.
    pub(crate) fn number(
        &mut self,
        place: &Place,
        directive: &str,
        setting: &str,
        number: u64,
    ) -> Node {
        let number = self.within(place, directive, setting, number);
        Node::number(setting, number)
    }

    /// A setting with a directive's time in milliseconds, written in seconds if it is whole.
    pub(crate) fn time(&mut self, place: &Place, directive: &str, setting: &str, ms: u64) -> Node {
        let ms = self.within(place, directive, setting, ms);
        if ms.is_multiple_of(SECOND) {
            Node::number(&format!("{setting}-secs"), ms / SECOND)
        } else {
            Node::number(&format!("{setting}-ms"), ms)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_outside_of_its_range_is_bounded_and_listed() {
        let place = Place {
            file: "x".to_owned(),
            line: 1,
        };
        let mut site = Site::default();
        assert_eq!(site.within(&place, "a", "weight", 10_000), 10_000);
        assert_eq!(site.within(&place, "a", "unbounded", 10_001), 10_001);
        assert!(site.notes.is_empty());
        assert_eq!(site.within(&place, "a", "weight", 10_001), 10_000);
        assert_eq!(site.within(&place, "b", "connect", 1), 1_000);
        assert_eq!(site.notes.len(), 2);
    }
}
