//! The load process: clients and upstream of the proxy that is measured, alone on a core.

mod backend;
mod capture;
mod connection;
mod crowd;
mod driver;
mod fault;
mod frame;
mod head;
mod http1;
mod http2;
mod intake;
mod poller;
mod script;
mod stream;
mod tally;
mod trust;

use self::driver::Driver;
use super::cores;
use super::order::{Order, Reply};
use crate::task_error::TaskError;
use crate::terminal::say;
use std::io;

/// Follows the orders on standard input, on one core, until there are no more. The first line it
/// says is the address of its upstream.
pub(super) fn serve(core: usize, backend_port: u16) -> Result<(), TaskError> {
    let system = |deed| move |source| TaskError::System { deed, source };
    cores::stay_on(core).map_err(system("stay on one core"))?;
    let mut driver = Driver::new(backend_port).map_err(|cause| {
        TaskError::Failed(format!(
            "the load process cannot listen on port {backend_port}: {cause}; is another bench running? \
             `ss -ltnp 'sport = :{backend_port}'` shows it"
        ))
    })?;
    let address = driver.backend_address();
    say(address.map_err(system("tell the upstream's address"))?);
    for line in io::stdin().lines() {
        let line = line.map_err(system("read an order"))?;
        let reply = match serde_json::from_str(&line) {
            Ok(order) => follow(&mut driver, &order),
            Err(cause) => Reply::Failed(format!("not an order: {cause}")),
        };
        let told = serde_json::to_string(&reply);
        say(told.map_err(|source| TaskError::Json {
            program: "the load process",
            source,
        })?);
    }
    Ok(())
}

fn follow(driver: &mut Driver, order: &Order) -> Reply {
    let done = match order {
        Order::Drive(drive) => driver
            .drive(drive)
            .map(|sample| Reply::Driven(Box::new(sample))),
        Order::Respond(time) => driver.respond(*time).map(|()| Reply::Responded),
    };
    done.unwrap_or_else(|cause| Reply::Failed(cause.to_string()))
}
