//! Watched directories of a server, from outside.
//!
//! Promises: each test has a data directory, a root and a server of its own.
//! Does not: look inside the library.

use std::{fs, os::unix::fs::symlink, path::PathBuf};

use serde_json::{Value, json};

use crate::{
    harness::fixtures,
    http::{
        service::{Service, wait_for},
        wire::Request,
    },
    push::house::{House, call, runs},
};

struct Watch {
    service: Service,
    key: String,
    /// The place of acme's project below the root.
    place: PathBuf,
    root: tempfile::TempDir,
    house: House,
}

impl Watch {
    fn new() -> Self {
        let root = tempfile::tempdir().unwrap();
        let place = root.path().join("acme/main");
        fs::create_dir_all(&place).unwrap();
        let house = House::new(&format!("[connections]\nroot = \"{}\"\nsync_s = 3600\nlook_ms = 50\n", root.path().display()));
        let service = house.serve();
        let key = house.key("acme", "admin", &["*"]);
        wait_for("the key", || (service.ask(&Request::call(service.port, "whoami", &json!({})).bearer(&key)).status == 200).then_some(()));
        Self { service, key, place, root, house }
    }

    fn write(&self, tool: &str, arguments: &Value) -> Value {
        let asked = call(&self.service, &self.key, tool, arguments);
        let mut arguments = arguments.clone();
        arguments["approval"] = asked["approval"]["handle"].clone();
        call(&self.service, &self.key, tool, &arguments)["result"].clone()
    }

    fn connect(&self, name: &str, path: &str) -> String {
        let made = self.write("connections_create", &json!({"kind": "directory", "name": name, "config": {"path": path}}));
        made["connection"].as_str().unwrap().to_owned()
    }

    /// What the last look at a connection came to.
    fn seen(&self, connection: &str) -> Option<Value> {
        let file = rusqlite::Connection::open(self.house.database()).unwrap();
        let text: Option<String> =
            file.query_row("SELECT health FROM connections_m WHERE id = ?1", [connection], |row| row.get(0)).unwrap();
        text.map(|text| serde_json::from_str(&text).unwrap())
    }

    /// What the first look came to.
    fn first(&self, connection: &str) -> Value {
        wait_for("the first look", || self.seen(connection))
    }

    /// Asks for a look; what it came to.
    fn look(&self, connection: &str) -> Value {
        let before = self.first(connection)["at"].clone();
        self.write("connections_sync", &json!({"connection": connection}));
        wait_for("another look", || self.seen(connection).filter(|health| health["at"] != before))
    }

    fn log(&self, to: &str) {
        let to = self.place.join(to);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        let logs = fs::read_dir(fixtures().join("demo/logs")).unwrap().map(|file| file.unwrap().path());
        let mut logs: Vec<PathBuf> = logs.collect();
        logs.sort();
        fs::copy(&logs[0], to).unwrap();
    }
}

#[test]
fn a_log_that_appears_in_a_watched_directory_is_a_run() {
    let watch = Watch::new();
    fs::create_dir(watch.place.join("logs")).unwrap();
    let connection = watch.connect("nightly", "logs");
    let first = watch.first(&connection);
    assert_eq!((first["logs"].as_u64(), first["error"].is_null(), first["newestFileAt"].is_null()), (Some(0), true, true), "{first}");
    assert!(runs(&watch.service, &watch.key).is_empty());
    watch.log("logs/one.eval");
    let health = watch.look(&connection);
    assert_eq!((runs(&watch.service, &watch.key).len(), health["logs"].as_u64()), (1, Some(1)), "{health}");
    assert!(health["newestFileAt"].is_string() && health["goodAt"] == health["at"], "{health}");
    // A broken log is a complaint by its name below the directory, and stops nothing.
    fs::write(watch.place.join("logs/broken.eval"), "PK no archive").unwrap();
    let health = watch.look(&connection);
    assert_eq!((health["complaintsTotal"].as_u64(), health["logs"].as_u64()), (Some(1), Some(1)), "{health}");
    let health = health.to_string();
    assert!(health.contains("\"broken.eval: ") && !health.contains(&*watch.root.path().to_string_lossy()), "{health}");
    assert_eq!(runs(&watch.service, &watch.key).len(), 1);
    // What goes from the directory goes from the project.
    fs::remove_file(watch.place.join("logs/one.eval")).unwrap();
    watch.look(&connection);
    assert!(runs(&watch.service, &watch.key).is_empty());
}

#[test]
fn nothing_is_read_through_a_link_and_a_lost_directory_takes_nothing_away() {
    let watch = Watch::new();
    watch.log("logs/one.eval");
    let secret = watch.root.path().join("zeta/main");
    fs::create_dir_all(&secret).unwrap();
    fs::copy(watch.place.join("logs/one.eval"), secret.join("other.eval")).unwrap();
    // A link to a file of another project, and one to a directory of it.
    symlink(secret.join("other.eval"), watch.place.join("logs/link.eval")).unwrap();
    symlink(&secret, watch.place.join("theirs")).unwrap();
    let (logs, theirs) = (watch.connect("logs", "logs"), watch.connect("theirs", "theirs"));
    let health = watch.first(&logs).to_string();
    assert!(health.contains("link.eval") && health.contains("leads out"), "{health}");
    let health = watch.first(&theirs).to_string();
    assert!(health.contains("leads out of the project's place"), "{health}");
    assert_eq!(runs(&watch.service, &watch.key).len(), 1);
    fs::rename(watch.place.join("logs"), watch.place.join("gone")).unwrap();
    let health = watch.look(&logs);
    assert_eq!(health["error"], "the directory cannot be read: no such file or directory", "{health}");
    assert!(health["logs"] == 1 && health["goodAt"] != health["at"], "{health}");
    assert_eq!(runs(&watch.service, &watch.key).len(), 1, "the disk may only not be mounted");
    fs::rename(watch.place.join("gone"), watch.place.join("logs")).unwrap();
    let health = watch.look(&logs).to_string();
    assert!(health.contains("\"error\":null"), "{health}");
}
