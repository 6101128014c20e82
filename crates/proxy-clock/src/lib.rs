//! A coarse clock per worker, and the deadlines it sweeps.
//!
//! A timer for each request costs about 5 % of a small request. Here a worker moves one clock
//! every [`TICK`], looks at every registered [`Deadline`] and wakes those that have passed. Setting
//! a deadline is one store; nothing here allocates on the request path, reads a clock, or is shared
//! between threads. What threads do share takes its time from a [`ProcessClock`].
#![cfg_attr(doctest, doc = include_str!("../README.md"))]

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
