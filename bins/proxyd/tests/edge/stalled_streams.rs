//! One client with many stalled streams over HTTP/2, and another client.

use crate::support::{Http2, Http2Upstream, get, live, start};
use proxy_testkit::{Upstream, ok};
use std::future::pending;
use std::net::{Ipv4Addr, SocketAddr};
use tokio::net::TcpSocket;

const CONNECTIONS: usize = 20;
const STREAMS: usize = 100;
/// Places of a worker that one client is left at the default limits.
const SHARE: usize = 945;

/// A connection of the client at `127.0.0.2`.
async fn other_client(to: SocketAddr) -> Http2 {
    let socket = TcpSocket::new_v4().unwrap();
    socket
        .bind((Ipv4Addr::new(127, 0, 0, 2), 0).into())
        .unwrap();
    Http2::over(socket.connect(to).await.unwrap()).await
}

#[test]
fn stalled_streams_of_one_client_leave_places_to_another() {
    let hung = Http2Upstream::start(|request| async move {
        pending::<()>().await;
        drop(request);
    });
    let well =
        Upstream::start(|served| while served.head().is_some() && served.send(ok("well")) {});
    let kdl = format!(
        r#"
        listeners {{ listener "main" {{ address "127.0.0.1:0"; h2c #true }} }}
        routes {{
            route "well" {{ matches {{ path "/" }}; upstream "well" }}
            route "hung" {{ matches {{ path-prefix "/hung" }}; upstream "hung" }}
        }}
        upstreams {{
            upstream "well" {{ target "{}" }}
            upstream "hung" {{ target "{}"; protocol "h2" }}
        }}
        system {{ worker-threads 1 }}
        "#,
        well.address(),
        hung.address
    );
    let proxyd = start(&kdl, &[]);

    live(async {
        let mut stalled = Vec::new();
        let mut connections = Vec::new();
        for _ in 0..CONNECTIONS {
            let mut http = Http2::knowing(proxyd.address()).await;
            for _ in 0..STREAMS {
                stalled.push(http.send(get("/hung")).await);
            }
            connections.push(http);
        }
        hung.requests.wait_for(SHARE);
        for _ in 0..100 {
            let mut http = other_client(proxyd.address()).await;
            assert_eq!(http.get("/").await.text(), "well");
        }
        assert_eq!(hung.requests.len(), SHARE);
        drop((stalled, connections));
    });
}
