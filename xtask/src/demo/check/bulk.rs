//! Transfers far larger than the memory that the proxy may take for them.

use super::ensure;
use crate::clock::Stopwatch;
use crate::demo::curl;
use crate::demo::stage::Stage;
use crate::task_error::TaskError;
use std::time::Duration;

const GIB: u64 = 1 << 30;
const MIB: u64 = 1 << 20;
/// Most RSS that proxyd may ever have held, in bytes.
const MOST_RSS_BYTES: u64 = 64 * MIB;

pub(super) fn download(stage: &mut Stage) -> Result<String, TaskError> {
    let url = stage.web(&format!("/one/download?bytes={GIB}"));
    let watch = Stopwatch::start();
    let seen = curl::transfer(&url, "%{http_code} %{size_download}", &[])?;
    ensure(seen == format!("200 {GIB}"), || seen.clone())?;
    told(stage, watch.elapsed())
}

pub(super) fn upload(stage: &mut Stage) -> Result<String, TaskError> {
    let file = stage.zeros(GIB)?;
    let watch = Stopwatch::start();
    let file = file.to_string_lossy();
    let answer = curl::get(&stage.web("/upload"), &["--upload-file", &file])?;
    let whole = answer.status == 200 && answer.body.trim() == GIB.to_string();
    ensure(whole, || format!("{answer:?}"))?;
    told(stage, watch.elapsed())
}

pub(super) fn memory(stage: &mut Stage) -> Result<String, TaskError> {
    let peak = stage.proxy.peak_rss_bytes()?;
    ensure(peak < MOST_RSS_BYTES, || format!("{} MiB", peak / MIB))?;
    Ok(format!("at most {} MiB", peak / MIB))
}

fn told(stage: &Stage, time: Duration) -> Result<String, TaskError> {
    let peak = stage.proxy.peak_rss_bytes()? / MIB;
    let seconds = time.as_secs_f64();
    Ok(format!("{seconds:.1} s, RSS at most {peak} MiB so far"))
}
