//! Measured programs, their configurations and processes.

pub(crate) mod bench_agent;
pub(crate) mod certificate;
pub(crate) mod configuration;
pub(crate) mod environment;
pub(crate) mod load_process;
pub(crate) mod proof;
pub(crate) mod running;
pub(crate) mod running_servers;
pub(crate) mod server;
