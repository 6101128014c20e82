//! Listening sockets that outlive plans and processes: inherited at the start, assigned to workers,
//! and handed over in an upgrade.

pub(crate) mod handover;
pub(crate) mod inherited_sockets;
pub(crate) mod listener_set;
pub(crate) mod socket_assignment;
