//! What becomes of each row's bytes: what the client is told, and what the upstream gets.

use crate::rows::{self, Row, Want};
use proxy_testkit::{Broken, Proxyd, RawClient, Upstream, Wire};
use std::time::Duration;

const BINARY: &str = env!("CARGO_BIN_EXE_proxyd");
/// Longer than any row takes; a row that hangs is a fault of its own.
const ROW_PATIENCE: Duration = Duration::from_secs(3);

#[test]
fn each_request_is_refused_or_reaches_the_upstream_as_it_should() {
    let upstream = Upstream::saying("ok");
    let address = upstream.address();
    let proxyd = Proxyd::start(
        BINARY,
        &format!(
            r#"
            listeners {{ listener "main" {{ address "127.0.0.1:0" }} }}
            routes {{ route "all" {{ upstream "u" }} }}
            upstreams {{ upstream "u" {{ target "{address}" }} }}
            system {{ worker-threads 1 }}
            "#
        ),
    );
    let rows = rows::all();
    println!("{} rows of requests", rows.len());
    assert!(300 <= rows.len(), "only {} rows", rows.len());

    let wrong: Vec<String> = rows
        .iter()
        .filter_map(|row| {
            let fault = judge(&proxyd, &upstream, row).err()?;
            Some(format!("{}: {fault}", row.name))
        })
        .collect();

    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    // What came late would be here.
    let passed = rows.iter().map(|row| match row.want {
        Want::Refused(_) | Want::CutOff => 0,
        Want::Passed { .. } => 1,
    });
    assert_eq!(upstream.requests().len(), passed.sum::<usize>());
}

fn judge(proxyd: &Proxyd, upstream: &Upstream, row: &Row) -> Result<(), String> {
    let before = upstream.requests().len();
    let mut client = RawClient::connect(proxyd.address());
    client.be_patient_for(ROW_PATIENCE);
    // Refused early, a row need not be taken whole.
    Wire::send(&mut client, &row.bytes).ok();
    if row.want == Want::CutOff {
        client.finish();
    }
    let answer = client.try_response();
    let seen = upstream.requests();
    let seen = seen.get(before..).unwrap_or_default();
    match &row.want {
        Want::CutOff => {
            if let Err(Broken::Silent) = answer {
                return Err("neither answered nor closed".to_owned());
            }
            if let Ok(answer) = answer
                && answer.status < 400
            {
                return Err(format!("answered {}", answer.status));
            }
            none_seen(seen)
        }
        Want::Refused(status) => {
            let answer = answer.map_err(|broken| format!("{broken}"))?;
            if answer.status != *status {
                return Err(format!("answered {}, not {status}", answer.status));
            }
            if *status == 400 && answer.error_code() != "PARSE" {
                return Err(format!("code {}", answer.error_code()));
            }
            none_seen(seen)?;
            closed(&mut client)
        }
        Want::Passed { target, body } => {
            let answer = answer.map_err(|broken| format!("{broken}"))?;
            if answer.status != 200 {
                return Err(format!("answered {}: {}", answer.status, answer.text()));
            }
            let [one] = seen else {
                return Err(format!("the upstream saw {} requests", seen.len()));
            };
            if one.target != *target || one.body != body.as_bytes() {
                let text = String::from_utf8_lossy(&one.raw);
                return Err(format!("the upstream saw {text:?}"));
            }
            Ok(())
        }
    }
}

fn none_seen(seen: &[proxy_testkit::Request]) -> Result<(), String> {
    match seen {
        [] => Ok(()),
        [one, ..] => Err(format!(
            "the upstream saw {:?}",
            String::from_utf8_lossy(&one.raw)
        )),
    }
}

fn closed(client: &mut RawClient) -> Result<(), String> {
    match client.rest() {
        Ok((bytes, _)) if bytes.is_empty() => Ok(()),
        Ok((bytes, _)) => Err(format!("then {:?}", String::from_utf8_lossy(&bytes))),
        Err(broken) => Err(format!("not closed: {broken}")),
    }
}
