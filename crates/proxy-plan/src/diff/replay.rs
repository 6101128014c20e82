//! Recorded requests, decided on by two plans in virtual time.

mod answer;
mod recorded_head;
mod recording;
mod side;

pub use answer::ReplayedAnswer;
pub use recorded_head::RecordedHead;
pub use recording::Recording;

use crate::plan::Plan;
use side::ReplaySide;
use std::collections::HashMap;

/// Maximum number of distinguished kinds of requests; requests of further kinds are only counted.
const MAX_KINDS: usize = 10_000;

/// Requests with the same pair of different answers.
#[derive(Clone, Debug)]
pub struct ReplayDifference {
    /// Answer of the older plan.
    pub before: ReplayedAnswer,
    /// Answer of the newer plan.
    pub after: ReplayedAnswer,
    /// Number of requests.
    pub requests: u64,
    /// The first of the requests: its method, host and path.
    pub example: String,
}

/// The result of a replay.
#[derive(Clone, Debug, Default)]
pub struct ReplayReport {
    /// Number of requests that were decided on.
    pub requests: u64,
    /// Number of requests that are answered differently.
    pub different: u64,
    /// Number of kinds of requests, each with an answer before and one after; at most 10 000.
    pub kinds: usize,
    /// The differences, most frequent first.
    pub differences: Vec<ReplayDifference>,
    /// Number of requests for which the recording names another route than the plan before.
    pub unlike_recorded: u64,
    /// The first such request.
    pub unlike_example: Option<String>,
}

/// A replay of recorded requests, in the order of their times.
#[derive(Debug)]
pub struct Replay<'p> {
    before: ReplaySide<'p>,
    after: ReplaySide<'p>,
    report: ReplayReport,
    /// Index of a kind's difference; `None` if both answers are the same.
    known: HashMap<[ReplayedAnswer; 2], Option<usize>>,
}

impl<'p> Replay<'p> {
    /// A replay with full buckets and closed breakers. All targets count as healthy; nothing is
    /// sent.
    #[must_use]
    pub fn new(before: &'p Plan, after: &'p Plan) -> Self {
        Self {
            before: ReplaySide::new(before),
            after: ReplaySide::new(after),
            report: ReplayReport::default(),
            known: HashMap::new(),
        }
    }

    /// Decides on the next request.
    pub fn push(&mut self, head: &RecordedHead) {
        let answers = [self.before.answer(head), self.after.answer(head)];
        self.report.requests += 1;
        let route = answers[0].route();
        let recorded = head.recorded_route.as_ref();
        if recorded.is_some_and(|recorded| recorded.as_deref() != route) {
            self.report.unlike_recorded += 1;
            let example = || format!("{head}, now {}", answers[0]);
            self.report.unlike_example.get_or_insert_with(example);
        }
        let is_different = answers[0] != answers[1];
        self.report.different += u64::from(is_different);
        let differences = &mut self.report.differences;
        match self.known.get(&answers) {
            Some(at) => {
                if let Some(difference) = at.and_then(|at| differences.get_mut(at)) {
                    difference.requests += 1;
                }
            }
            None if self.known.len() < MAX_KINDS => {
                let at = is_different.then_some(differences.len());
                if is_different {
                    let [before, after] = answers.clone();
                    differences.push(ReplayDifference {
                        before,
                        after,
                        requests: 1,
                        example: head.to_string(),
                    });
                }
                self.known.insert(answers, at);
            }
            None => {}
        }
    }

    /// Ends the replay and summarizes its differences.
    #[must_use]
    pub fn finish(self) -> ReplayReport {
        let mut report = self.report;
        report.kinds = self.known.len();
        report
            .differences
            .sort_by_key(|one| std::cmp::Reverse(one.requests));
        report
    }
}
