//! Every key of the config, once: its struct field, meaning, default, bounds, unit and reason are one declaration.
//!
//! Promises: a key cannot exist without its default, bounds and reason; a default or bound that does not fit the field's type does not
//! compile; the checks, `config/default.toml` and `config/reference.md` read the same rows.
//! Does not: read files. Secrets are never keys: they come from files or the environment.

use serde::Deserialize;

/// What a key may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// A whole number within bounds, both included.
    Number {
        /// Its value where the config says nothing.
        default: u64,
        /// The least that is taken.
        min: u64,
        /// The most that is taken.
        max: u64,
        /// What it counts.
        unit: &'static str,
    },
    /// Yes or no.
    Flag {
        /// Its value where the config says nothing.
        default: bool,
    },
}

/// One key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Row {
    /// The table that it stands in, such as `limits`.
    pub section: &'static str,
    /// Its name, such as `rows_limit`.
    pub key: &'static str,
    /// What it does, line by line.
    pub meaning: &'static [&'static str],
    /// Its type, default and bounds.
    pub shape: Shape,
    /// Why the default is what it is.
    pub reason: &'static str,
}

/// One table of the config.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// Its name.
    pub name: &'static str,
    /// What it is about, line by line.
    pub about: &'static [&'static str],
    /// Its keys, in order.
    pub rows: &'static [Row],
}

macro_rules! shape {
    ($default:expr) => {
        Shape::Flag { default: $default }
    };
    ($default:expr, $min:expr, $max:expr, $unit:literal) => {
        Shape::Number { default: $default as u64, min: $min as u64, max: $max as u64, unit: $unit }
    };
}

macro_rules! bounds_fit {
    ($kind:ty; $default:expr) => {};
    ($kind:ty; $default:expr, $min:expr, $max:expr, $unit:literal) => {
        const _: () = {
            let (min, default, max): ($kind, $kind, $kind) = ($min, $default, $max);
            assert!(min <= default && default <= max && max as u64 <= i64::MAX as u64);
        };
    };
}

macro_rules! sections {
    ($(
        $(#[doc = $about:literal])+
        $section:ident: $struct:ident {$(
            $(#[doc = $meaning:literal])+
            $key:ident: $kind:ty = ($($shape:tt)+), $reason:literal;
        )+}
    )+) => {
        $(
            $(#[doc = $about])+
            #[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
            #[serde(default, deny_unknown_fields)]
            pub struct $struct {
                $($(#[doc = $meaning])+ pub $key: $kind,)+
            }

            impl Default for $struct {
                fn default() -> Self {
                    Self { $($key: first!($($shape)+),)+ }
                }
            }

            $(bounds_fit!($kind; $($shape)+);)+
        )+

        /// The whole configuration; each key has its default where the file says nothing.
        #[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct Config {
            $($(#[doc = $about])+ pub $section: $struct,)+
        }

        /// Every table of the config, in the order of the documents.
        pub const SECTIONS: &[Section] = &[$(Section {
            name: stringify!($section),
            about: &[$($about),+],
            rows: &[$(Row {
                section: stringify!($section),
                key: stringify!($key),
                meaning: &[$($meaning),+],
                shape: shape!($($shape)+),
                reason: $reason,
            }),+],
        }),+];
    };
}

macro_rules! first {
    ($default:expr $(, $rest:expr)*) => {
        $default
    };
}

const KIB: u64 = 1024;
const MIB: u64 = 1024 * KIB;
const GIB: u64 = 1024 * MIB;

sections! {
    /// What reading one log may cost. A log over a limit is refused with a complaint; nothing of it is kept.
    import: Import {
        /// Entries that an archive may hold.
        entries_max: usize = (60_000, 1, 10_000_000, "entries"),
            "an Inspect log has one entry per sample, and the largest public ones have some 10,000; the list of entries is held in memory";
        /// Bytes that one entry of an archive, or one sample of a JSON log, may inflate to; counted while it inflates.
        entry_bytes_max: u64 = (64 * MIB, 64 * KIB, GIB, "bytes"),
            "an entry is held in memory while it is read; long agent transcripts take some 10 MiB";
        /// Bytes that all entries of one log together may inflate to.
        log_bytes_max: u64 = (64 * GIB, MIB, 1024 * GIB, "bytes"),
            "stops archives made to inflate for ever; memory does not depend on it";
        /// Bytes of a case's input, target or output, of a check's reason and of an error that are kept in the tables; the rest is cut.
        text_bytes_max: usize = (2048, 64, 65_536, "bytes"),
            "long text makes every query slow, and the transcript keeps the whole";
        /// Bytes that a log may take on disk.
        file_bytes_max: u64 = (16 * GIB, 64 * KIB, 1024 * GIB, "bytes"),
            "a larger file is a mistake more often than a log, and its digest alone keeps the index busy for tens of seconds";
    }

    /// When and how far a local project's directories are searched for logs.
    index: Index {
        /// A call looks at the directories again when the last look is older than this; 0 looks before every call.
        rescan_s: u64 = (2, 0, 86_400, "seconds"),
            "an agent sees a run that has just ended, and a burst of calls looks once";
        /// How long a call waits for logs that are being imported before it answers from what is there.
        wait_ms: u64 = (2000, 0, 600_000, "milliseconds"),
            "a new log or two are read within it; a first import of thousands goes on while calls are answered";
        /// Files that one look may meet; those beyond are not imported, and a warning says so.
        walk_files_max: usize = (100_000, 1, 10_000_000, "files"),
            "more than any project's logs; a directory of millions of other files must not hold up every call";
        /// Directories below the log directory that a look goes down.
        walk_depth_max: usize = (16, 1, 256, "levels"),
            "deeper than tools write logs, and shallow enough to stop at a loop of mounts";
    }

    /// The local store, one SQLite file per project.
    store: Store {
        /// How long a write waits while another process writes.
        busy_timeout_ms: u64 = (5000, 1, 600_000, "milliseconds"),
            "editors start several servers on one project at once; an import commits log by log, well within it";
        /// Connections that read at the same time.
        readers_max: usize = (4, 1, 64, "connections"),
            "an agent calls a few tools at once, and reads are short; each connection has a cache of its own";
        /// Page cache of each connection.
        cache_kib: u64 = (16_384, 256, 4_194_304, "KiB"),
            "holds the cells and attempts of a usual project; the system's file cache holds the rest";
    }

    /// What one call may cost and answer.
    limits: Limits {
        /// Bytes of a tool's result; a larger one is an error that names the tool's own filters.
        result_bytes: usize = (1_048_576, 16_384, 67_108_864, "bytes"),
            "more than any model's context takes; clients cut or refuse what is larger";
        /// How long a call on this machine may run (over HTTP the server's timeout holds).
        call_timeout_s: u64 = (30, 1, 3600, "seconds"),
            "under the minute at which clients give up, so that the caller reads why";
        /// Rows that a tool answers with, whatever the call asks for.
        rows_limit: usize = (500, 1, 10_000, "rows"),
            "more than a reader uses; lists say how many there are in all";
        /// Bytes of one transcript line in a tool's answer; the rest is cut and the line says so.
        line_bytes: usize = (32_768, 256, 1_048_576, "bytes"),
            "one huge tool output must not crowd out the page; the resource gives the line whole";
        /// Bytes of one transcript line among the last lines that `failures` shows of an attempt; the rest is cut.
        tail_line_bytes: usize = (1024, 64, 32_768, "bytes"),
            "the tail says how an attempt ended; many attempts stand in one answer";
    }

    /// Secrets in text become `[REDACTED]`; on the way out always.
    redaction: Redaction {
        /// Whether they are replaced already when a log is imported, so that the store never holds one.
        at_import: bool = (true),
            "no later path, and no copy of the file, can leak what was never kept";
    }
}

impl Section {
    /// The section called `name`.
    #[must_use]
    pub fn named(name: &str) -> Option<&'static Self> {
        SECTIONS.iter().find(|section| section.name == name)
    }

    /// Its key called `key`.
    #[must_use]
    pub fn row(&self, key: &str) -> Option<&'static Row> {
        self.rows.iter().find(|row| row.key == key)
    }
}
