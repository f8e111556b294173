//! Calls that stay in flight for as long as a test wants: the test holds the store's write lock, and a new log waits to be written.
//!
//! Promises: a call made while the lock is held ends only after `release`.
//! Does not: change the server: any writer may hold this lock, and the call waits for it within `store.busy_timeout_ms`.

use serde_json::json;

use super::{
    service::{Service, wait_for},
    wire::{Connection, Request},
};
use crate::{harness::Project, logs::Log};

/// The lock.
pub struct Held(rusqlite::Connection);

/// A server whose next calls will wait, and the lock that they wait for.
pub fn service(http: &str, flags: &[&str]) -> (Service, Held) {
    let project = Project::demo();
    project.write(
        ".runlore/config.toml",
        format!("[index]\nrescan_s = 0\nwait_ms = 60000\n[store]\nbusy_timeout_ms = 60000\n[http]\n{http}\n"),
    );
    // What is there is imported on the command line, and the new log is put before the server's first look: that look waits, and every
    // call waits for it.
    project.json(&["runs-list"]);
    let held = rusqlite::Connection::open(project.path().join(".runlore/history.db")).unwrap();
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    Log::new("fresh", "t", "2026-11-29T09:00:00+00:00").all(1, "C").put(&project);
    let service = Service::with(project, "", flags);
    (service, Held(held))
}

impl Held {
    /// Lets the calls go on.
    pub fn release(self) {
        self.0.execute_batch("ROLLBACK").unwrap();
    }
}

/// Sends a call and waits until the server has it in flight.
pub fn in_flight(service: &Service, request: &Request) -> Connection {
    let before = in_flight_now(service);
    let mut connection = service.connect();
    connection.send(request.bytes());
    wait_for("the call to be in flight", || (in_flight_now(service) > before).then_some(()));
    connection
}

/// Tool calls that the server works on.
pub fn in_flight_now(service: &Service) -> f64 {
    service.metric(super::metrics::CALLS_IN_FLIGHT, &[])
}

/// A call of a tool that reads.
pub fn call(service: &Service) -> Request {
    Request::call(service.port, "runs_list", &json!({}))
}
