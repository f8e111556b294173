//! Hours of a team's server in a minute: callers of all kinds, logs that are sent, clients that dawdle, and ends of all kinds, in turns.
//!
//! Promises: what the server said that it took is there after every end, a kill too; memory and descriptors are flat; whatever a client was refused stands
//! in /metrics, to the number.
//! Does not: measure speed; the pace is such that tests beside it have a machine too.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
    time::{Duration, Instant},
};

use nix::sys::signal::Signal::{self, SIGKILL, SIGTERM};
use serde_json::{Value, json};

use crate::{
    http::{
        service::{Service, wait_for},
        wire::{Connection, Request},
    },
    logs::Log,
    push::house::{House, post},
};

/// How long each life is worked at.
const LIFE: Duration = Duration::from_secs(17);
/// Between two requests of one caller.
const PACE: Duration = Duration::from_millis(12);

/// What clients were answered.
#[derive(Default)]
struct Tally {
    /// Refused requests, by status.
    refused: Mutex<BTreeMap<u16, u64>>,
    /// Tool calls that came to an answer, whatever it said.
    calls: AtomicUsize,
    /// Those of them that were told to come later.
    rated: AtomicUsize,
}

/// The runs that the server said it took.
#[derive(Default)]
struct Taken {
    next: AtomicUsize,
    runs: Mutex<BTreeSet<String>>,
}

impl Tally {
    fn status(&self, status: u16) {
        if status >= 400 {
            *self.refused.lock().unwrap().entry(status).or_default() += 1;
        }
    }

    fn of(&self, status: u16) -> f64 {
        self.refused.lock().unwrap().get(&status).copied().unwrap_or(0) as f64
    }
}

/// Sends one log; whether the server took it. None where it was not there.
fn sent(service: &Service, key: &str, taken: &Taken) -> Option<u16> {
    let number = taken.next.load(Relaxed);
    let run = format!("s{number:05}");
    let text = Log::new(&run, "t", "2026-11-15T09:00:00+00:00").all(4, if number.is_multiple_of(3) { "I" } else { "C" }).text();
    let stream = std::net::TcpStream::connect(("127.0.0.1", service.port)).ok()?;
    let mut connection = Connection::over(stream);
    if !connection.try_send(post(service, key, &format!("?name={run}.json"), text).and("connection", "close").bytes()) {
        return None;
    }
    let answer = connection.try_answer().ok()?;
    if answer.status == 200 {
        taken.runs.lock().unwrap().insert(run);
        // Only now the next: what was not answered for is sent again.
        taken.next.fetch_add(1, Relaxed);
    }
    Some(answer.status)
}

/// One caller's questions, in turns.
fn asks(service: &Service, key: &str, tally: &Tally, until: Instant) {
    let questions: [(&str, Value); 8] = [
        ("runs_list", json!({"limit": 5})),
        ("history", json!({})),
        ("failures", json!({})),
        ("compare", json!({})),
        ("overview", json!({})),
        ("query", json!({"sql": "SELECT count(*) FROM attempts"})),
        ("history", json!({"limit": 0})),
        ("no_such_tool", json!({})),
    ];
    let mut connection = service.connect();
    for (tool, arguments) in questions.iter().cycle() {
        if Instant::now() > until {
            return;
        }
        let answer = connection.ask(&Request::call(service.port, tool, arguments).bearer(key));
        tally.status(answer.status);
        std::thread::park_timeout(PACE);
        if answer.status == 429 {
            // Its organization has asked enough for a while: no call was made.
            assert_eq!(answer.reason(), "tenant_rate", "{answer:?}");
            continue;
        }
        tally.calls.fetch_add(1, Relaxed);
        let text = answer.text();
        if text.contains("a minute from one caller") {
            tally.rated.fetch_add(1, Relaxed);
        } else {
            assert!(answer.status == 200 && !text.contains("-32603"), "{tool}: {answer:?}");
        }
    }
}

/// One who may not, in every way that the door knows.
fn trespasses(service: &Service, tally: &Tally, until: Instant) {
    while Instant::now() < until {
        let ping = || Request::legacy(service.port, "ping", &json!({}));
        let all = [
            ping().bearer("rlk_nobody"),
            ping().with("host", "evil.example"),
            ping().to("/metrics"),
            ping().by("PUT"),
            ping().with("content-type", "text/plain").without("authorization"),
            Request::raw(service.port, "{").without("authorization"),
            Request::raw(service.port, vec![b' '; 70_000]).without("authorization"),
        ];
        for request in all {
            let answer = service.ask(&request);
            assert!(answer.status >= 400, "{answer:?}");
            tally.status(answer.status);
            std::thread::park_timeout(PACE * 4);
        }
    }
}

/// Half a head, then half a body, and silence: each is ended by the server.
fn dawdles(service: &Service, tally: &Tally) {
    let mut half = service.connect();
    half.send("POST /mcp HTTP/1.1\r\nhost: ");
    let mut slow = service.connect();
    let request = Request::legacy(service.port, "ping", &json!({}));
    slow.send(request.head());
    let answer = slow.answer();
    assert_eq!(answer.status, 408, "{answer:?}");
    tally.status(answer.status);
    half.until_closed(Duration::from_secs(20));
}

fn descriptors(service: &Service) -> usize {
    std::fs::read_dir(format!("/proc/{}/fd", service.id())).unwrap().count()
}

/// Memory and descriptors once nobody asks.
fn quiet(service: &Service) -> (u64, usize) {
    wait_for("the connections to end", || (service.metric("runlore_connections_open", &[]) < 1.0).then_some(()));
    (service.resident_kib(), descriptors(service))
}

/// What the server tells of it is what its clients saw.
fn agrees(service: &Service, tally: &Tally) {
    let step = |name: &str| service.metric("runlore_refusals_total", &["list=\"door\"", &format!("step=\"{name}\"")]);
    let all = service.metric("runlore_refusals_total", &["list=\"door\""]);
    let told: u64 = tally.refused.lock().unwrap().values().sum();
    assert_eq!(all, told as f64, "{:?}", service.metrics());
    assert_eq!((step("host"), step("unauthenticated")), (tally.of(421), tally.of(401)), "{:?}", service.metrics());
    let calls = service.metric("runlore_calls_total", &[]);
    assert_eq!(calls, tally.calls.load(Relaxed) as f64);
    assert_eq!(service.metric("runlore_calls_total", &["outcome=\"rate\""]), tally.rated.load(Relaxed) as f64);
    assert_eq!(service.metric("runlore_calls_total", &["outcome=\"error\""]), 0.0);
    assert_eq!(service.metric("runlore_calls_in_flight", &[]), 0.0);
    assert_eq!(service.metric("runlore_hook_dropped_total", &[]), 0.0);
}

/// The runs that are there.
fn there(service: &Service, key: &str) -> BTreeSet<String> {
    let (mut all, mut cursor) = (BTreeSet::new(), Value::Null);
    loop {
        let mut asked = json!({"limit": 100});
        if !cursor.is_null() {
            asked["cursor"] = cursor;
        }
        let page = crate::push::house::call(service, key, "runs_list", &asked);
        all.extend(page["runs"].as_array().unwrap().iter().map(|run| run["runId"].as_str().unwrap().to_owned()));
        cursor = page["nextCursor"].clone();
        if cursor.is_null() {
            return all;
        }
    }
}

/// A server's life; `end` comes while logs are being sent.
fn lived(house: &House, keys: &[String; 4], taken: &Taken, end: Signal) {
    let mut service = house.serve();
    let [sender, busy, calm, checker] = keys;
    let before = taken.runs.lock().unwrap().clone();
    let found = there(&service, checker);
    // One that was being answered for may be there too; none is missing.
    assert!(before.is_subset(&found) && found.len() <= before.len() + 1, "{} of {} are there", found.len(), before.len());
    let tally = Tally::default();
    tally.calls.fetch_add(service.metric("runlore_calls_total", &[]) as usize, Relaxed);
    let round = |seconds: Duration| {
        let until = Instant::now() + seconds;
        std::thread::scope(|threads| {
            threads.spawn(|| asks(&service, busy, &tally, until));
            threads.spawn(|| asks(&service, calm, &tally, until));
            threads.spawn(|| trespasses(&service, &tally, until));
            threads.spawn(|| dawdles(&service, &tally));
            threads.spawn(|| {
                while Instant::now() < until {
                    let status = sent(&service, sender, taken).expect("it is up");
                    tally.status(status);
                    assert!(matches!(status, 200 | 429 | 503), "{status}");
                    std::thread::park_timeout(PACE * 4);
                }
            });
        });
        quiet(&service)
    };
    let (memory, open) = round(LIFE / 2);
    let (later, still) = round(LIFE / 2);
    agrees(&service, &tally);
    assert!(later < memory + 24 * 1024, "{memory} KiB, then {later}");
    assert!(still <= open + 6, "{open} descriptors, then {still}");
    // And the end, while something is being taken.
    let count = taken.runs.lock().unwrap().len();
    std::thread::scope(|threads| {
        threads.spawn(|| while sent(&service, sender, taken).is_some() {});
        wait_for("logs to be taken", || (taken.runs.lock().unwrap().len() >= count + 3).then_some(()));
        service.signal(end);
    });
    let code = service.ended();
    assert_eq!(code, if end == SIGTERM { Some(0) } else { None }, "{}", service.log());
}

#[test]
fn nothing_is_lost_and_nothing_grows() {
    let house = House::new("[query]\nworkers_max = 2\n");
    let keys = [house.sender(), house.reader(), house.reader(), house.reader()];
    let taken = Taken::default();
    for end in [SIGKILL, SIGTERM, SIGKILL] {
        lived(&house, &keys, &taken, end);
    }
    let service = house.serve();
    let found = there(&service, &keys[3]);
    let all = taken.runs.lock().unwrap();
    assert!(all.len() > 30 && all.is_subset(&found) && found.len() <= all.len() + 1, "{} of {}", found.len(), all.len());
    let counts = crate::push::house::call(&service, &keys[3], "query", &json!({"sql": "SELECT count(*), sum(passed + failed) FROM cells"}));
    assert_eq!(
        (counts["rows"][0][0].as_u64(), counts["rows"][0][1].as_u64()),
        (Some(found.len() as u64), Some(4 * found.len() as u64)),
        "{counts}"
    );
}
