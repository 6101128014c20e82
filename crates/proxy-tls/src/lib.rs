//! Certificates in, rustls configurations out.
