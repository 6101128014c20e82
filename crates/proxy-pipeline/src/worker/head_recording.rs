//! The share of requests with a recorded head, and the form of the record.

use proxy_model::{Model, Recording, is_secret_name};
use proxy_telemetry::{AccessFormat, LineSyntax, RecordingFormat};
use std::cell::Cell;
use std::hash::RandomState;
use std::sync::LazyLock;

/// Millionths of all requests.
const WHOLE: u32 = 1_000_000;

/// The key of digests is the same for all workers and plans.
static DIGEST_KEY: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// The recording of one worker under one plan.
#[derive(Debug)]
pub(crate) struct HeadRecording {
    pub(crate) format: RecordingFormat,
    /// Share of requests to record, in millionths.
    share: u32,
    /// Millionths of the next record that requests since the last one add up to.
    due: Cell<u32>,
}

impl HeadRecording {
    /// The recording for requests under `model`; `None` if it records none. Fields with the tokens
    /// of any route are credentials on every route: a client may send them anywhere.
    pub(crate) fn new(model: &Model) -> Option<Self> {
        let observability = &model.observability;
        let Recording {
            sample_percent,
            keep_bytes: _, // The ring's, which all workers share.
            redact,
        } = observability.recording.as_ref()?;
        let redact_query = observability.redact_query.iter();
        let redact = redact.iter().map(|name| &name.value);
        let format = RecordingFormat {
            head: AccessFormat {
                line: LineSyntax::Json,
                fields: Vec::new(),
                redact_query: redact_query.map(|name| name.value.clone()).collect(),
            },
            is_credential: is_secret_name,
            redact_headers: redact
                .chain(model.token_headers())
                .map(ToString::to_string)
                .collect(),
            key: DIGEST_KEY.clone(),
        };
        Some(Self {
            format,
            share: share(**sample_percent),
            due: Cell::new(0),
        })
    }

    /// Returns true if this request is recorded: each n-th one, for a share of one in n.
    #[inline]
    pub(crate) fn takes_next(&self) -> bool {
        let due = self.due.get() + self.share;
        let is_due = WHOLE <= due;
        self.due.set(if is_due { due - WHOLE } else { due });
        is_due
    }
}

/// A percentage from 0 to 100 in millionths.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "the share is positive, and the cast saturates"
)]
fn share(percent: f64) -> u32 {
    (percent * f64::from(WHOLE) / 100.0).round() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_taken_evenly() {
        let recording = |percent: f64| HeadRecording {
            format: RecordingFormat {
                head: AccessFormat::default(),
                is_credential: is_secret_name,
                redact_headers: Vec::new(),
                key: RandomState::new(),
            },
            share: share(percent),
            due: Cell::new(0),
        };
        for (percent, expected) in [(100.0, 1_000), (10.0, 100), (0.1, 1), (0.0, 0)] {
            let recording = recording(percent);
            let taken = (0..1_000).filter(|_| recording.takes_next()).count();
            assert_eq!(taken, expected, "{percent}");
        }
        let tenth = recording(10.0);
        let taken: Vec<bool> = (0..20).map(|_| tenth.takes_next()).collect();
        assert_eq!(taken.iter().position(|one| *one), Some(9));
        assert_eq!(taken.iter().rposition(|one| *one), Some(19));
    }
}
