//! Listening sockets across plans and processes: assignment, inheritance, handover.

pub(crate) mod handover;
pub(crate) mod inherited_sockets;
pub(crate) mod listener_set;
pub(crate) mod socket_assignment;
