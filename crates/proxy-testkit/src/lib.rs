//! Fake upstreams, a raw client and the real binary, for black-box tests.
