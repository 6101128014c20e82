//! The loop of readings, keys and signals.

use crate::client::AdminClient;
use crate::client::error::TopError;
use crate::interval::Interval;
use crate::reading::Reading;
use crate::screen::{Screen, plain_page};
use crate::terminal::{self, Terminal};
use std::io;
use std::time::Duration;
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::mpsc;
use tokio::time::{MissedTickBehavior, interval};

/// Time between the starts of two readings.
const REFRESH_INTERVAL: Duration = Duration::from_secs(1);

/// All tables as plain text: averages since the start of the proxy.
///
/// # Errors
/// The admin interface does not answer, or not as expected.
pub fn page(client: &AdminClient) -> Result<String, TopError> {
    let reading = runtime()?.block_on(client.read())?;
    Ok(plain_page(&Interval::from_start(reading)))
}

/// Checks that the proxy takes traffic, by `/ready`.
///
/// # Errors
/// It is not ready, or the admin interface does not answer.
pub fn ready(client: &AdminClient) -> Result<(), TopError> {
    runtime()?.block_on(client.check_ready())
}

/// Shows the proxy on the terminal of standard input and output, read each second, until `q`, Control-C or a signal. A
/// fault of a later reading is shown, and reading goes on.
///
/// # Errors
/// The first reading fails, before the terminal is changed, or the terminal is lost.
pub fn watch(client: AdminClient) -> Result<(), TopError> {
    runtime()?.block_on(show(client))
}

fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

async fn show(client: AdminClient) -> Result<(), TopError> {
    let first = client.read().await?;
    let mut screen = Screen::new(Some(Interval::from_start(first)));
    let mut signals = Signals::new()?;
    let terminal = Terminal::open()?;
    let mut keys = terminal::keys();
    let mut readings = readings(client);
    loop {
        terminal.draw(&screen.lines(Terminal::size()))?;
        tokio::select! {
            key = keys.recv() => {
                let goes_on = key.is_some_and(|key| screen.press(key, Terminal::size()));
                if !goes_on {
                    return Ok(());
                }
            }
            Some(reading) = readings.recv() => screen.update(reading),
            _ = signals.resized.recv() => {}
            () = Signals::any(&mut signals.ending) => return Ok(()),
        }
    }
}

/// A reading each second, or later where one takes longer.
fn readings(client: AdminClient) -> mpsc::Receiver<Result<Reading, String>> {
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut ticks = interval(REFRESH_INTERVAL);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        // The first one is due at once.
        ticks.tick().await;
        loop {
            ticks.tick().await;
            let reading = client.read().await.map_err(|fault| fault.to_string());
            if sender.send(reading).await.is_err() {
                return;
            }
        }
    });
    receiver
}

/// Signals that end the program or change its terminal.
struct Signals {
    ending: [Signal; 3],
    resized: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            ending: [
                signal(SignalKind::interrupt())?,
                signal(SignalKind::terminate())?,
                signal(SignalKind::hangup())?,
            ],
            resized: signal(SignalKind::window_change())?,
        })
    }

    /// Waits for one of these signals.
    async fn any([one, two, three]: &mut [Signal; 3]) {
        tokio::select! {
            _ = one.recv() => {}
            _ = two.recv() => {}
            _ = three.recv() => {}
        }
    }
}
