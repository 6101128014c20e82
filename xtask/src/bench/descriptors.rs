//! How many files and sockets processes may have open.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io;

/// Takes as many as the system gives, for this process and those it starts: thousands of idle
/// connections are more than most shells allow.
pub(super) fn raise_limit() -> io::Result<()> {
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    let most = Rlimit {
        current: maximum,
        maximum,
    };
    setrlimit(Resource::Nofile, most).map_err(io::Error::from)
}
