//! State machines as tables, read by the code, the tests and the documentation alike.

/// A row of a state machine: in state `from`, `event` leads to state `to`. Events without a row are
/// refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition<S, E> {
    /// State in which the event is accepted.
    pub from: S,
    /// Event that an operator or a job causes.
    pub event: E,
    /// State after the event.
    pub to: S,
}

impl<S, E> Transition<S, E> {
    pub(crate) const fn new(from: S, event: E, to: S) -> Self {
        Self { from, event, to }
    }
}

/// State that `event` leads to from state `from`; `None` if the event is refused.
pub fn next_state<S, E>(table: &[Transition<S, E>], from: S, event: E) -> Option<S>
where
    S: Copy + PartialEq,
    E: Copy + PartialEq,
{
    let row = table
        .iter()
        .find(|row| row.from == from && row.event == event);
    row.map(|row| row.to)
}
