# Varnish as a cache: each response is fetched once, and kept in memory.
# `cargo xtask bench` fills in what stands between two at-signs.

vcl 4.1;

backend default {
    .host = "127.0.0.1";
    .port = "@backend-port@";
}

sub vcl_recv {
    set req.http.X-Correlation-Id = req.xid;
}

sub vcl_backend_response {
    set beresp.ttl = 1h;
}
