//! Feeds a validator with bytes in pieces.

use proxy_framing::{
    FramingError, HeadLimits, RequestKind, RequestValidator, ResponseValidator, Scan, Stop,
};

use crate::cases::Verdict;

/// Number of accepted bytes, and the result.
pub(crate) type Outcome = (usize, Verdict);

/// The interface that both validators share.
pub(crate) trait Guard {
    fn scan(&mut self, bytes: &[u8]) -> Scan;
    fn between_messages(&self) -> bool;
}

impl Guard for RequestValidator {
    fn scan(&mut self, bytes: &[u8]) -> Scan {
        self.scan(bytes)
    }

    fn between_messages(&self) -> bool {
        self.between_messages()
    }
}

impl Guard for ResponseValidator {
    fn scan(&mut self, bytes: &[u8]) -> Scan {
        self.scan(bytes)
    }

    fn between_messages(&self) -> bool {
        self.between_messages()
    }
}

/// A validator that expects a response to a request of `kind`.
pub(crate) fn expecting(kind: RequestKind, limits: HeadLimits) -> ResponseValidator {
    let mut guard = ResponseValidator::new(limits);
    guard.expect(kind);
    guard
}

/// Passes the pieces to a validator until it stops.
pub(crate) fn drive<'a>(
    guard: &mut impl Guard,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> Outcome {
    let mut accepted = 0;
    let mut pieces = pieces.into_iter();
    while let Some(piece) = pieces.next() {
        let scan = guard.scan(piece);
        accepted += scan.accepted;
        let left = piece.len() - scan.accepted;
        match scan.stop {
            None => assert_eq!(left, 0, "all is accepted unless the guard stops"),
            Some(stop) => {
                assert_eq!(
                    guard.scan(b"x"),
                    Scan {
                        accepted: 0,
                        stop: Some(stop)
                    }
                );
                let rest = pieces.map(<[u8]>::len).sum::<usize>();
                return (accepted, stopped(stop, left + rest));
            }
        }
    }
    (
        accepted,
        if guard.between_messages() {
            Verdict::Whole
        } else {
            Verdict::Open
        },
    )
}

fn stopped(stop: Stop, left: usize) -> Verdict {
    match stop {
        Stop::FramingError(fault) => Verdict::Refused(fault),
        Stop::Upgrade => Verdict::Upgrade(left),
    }
}

/// The result for bytes of requests in one piece.
pub(crate) fn request(bytes: &[u8], limits: HeadLimits) -> Outcome {
    drive(&mut RequestValidator::new(limits), [bytes])
}

/// The result for bytes of a response in one piece.
pub(crate) fn response(bytes: &[u8], kind: RequestKind, limits: HeadLimits) -> Outcome {
    drive(&mut expecting(kind, limits), [bytes])
}

/// The error with which requests are refused.
pub(crate) fn refusal(bytes: &[u8], limits: HeadLimits) -> Option<FramingError> {
    match request(bytes, limits).1 {
        Verdict::Refused(fault) => Some(fault),
        Verdict::Whole | Verdict::Open | Verdict::Upgrade(_) => None,
    }
}
