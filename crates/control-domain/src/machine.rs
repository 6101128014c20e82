//! State machines as tables: the code, the tests and the documentation read the same rows.

/// One row: in state `from`, `event` changes the state to `to`. A pair without a row is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transition<S, E> {
    /// State in which the event is accepted.
    pub from: S,
    /// Event that an operator or a job causes.
    pub event: E,
    /// State afterwards.
    pub to: S,
}

impl<S, E> Transition<S, E> {
    pub(crate) const fn new(from: S, event: E, to: S) -> Self {
        Self { from, event, to }
    }
}

/// The next state by `table` for `event` in state `from`.
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
