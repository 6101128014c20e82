//! A coarse clock per worker, and the deadlines that it checks.
//!
//! A runtime timer for each request costs about 5 % of a small request. Here a worker moves one
//! clock every [`TICK`], checks every registered [`Deadline`] and wakes the expired ones. Setting a
//! deadline is one store; this crate does not allocate on the request path, reads no clock and
//! shares nothing between threads. Shared state uses the time of a [`ProcessClock`].

mod clock;
mod deadline;
mod min_data_rate;
mod process_clock;
mod request_timers;
mod timer_registry;

pub use clock::{Clock, TICK, Tick};
pub use deadline::{Deadline, Timer};
pub use min_data_rate::MinDataRate;
pub use process_clock::ProcessClock;
pub use request_timers::RequestTimers;
pub use timer_registry::{TimerGuard, TimerRegistry};
