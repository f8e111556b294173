//! Every key of the config, once: its struct field, meaning, default, bounds, unit and reason are one declaration.
//!
//! Promises: the checks, `config/default.toml` and `config/reference.md` read the same rows that the structs are made of.
//! Does not: read files. Secrets are never keys: they come from files or the environment.

use serde::Deserialize;

use super::commands::{COMMAND, Command};
pub use super::{
    shape::{Row, Section, Shape},
    tables::{EXECUTOR, Executor, ISSUER, Issuer},
};

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
        /// Bytes of a resource's body; a larger one is an error that names the tool that gives it in parts.
        resource_bytes: usize = (8_388_608, 65_536, 268_435_456, "bytes"),
            "a resource is the whole of a thing, read by programs rather than by models; each is held in memory while it is sent";
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

    /// Declared goals and their tests.
    goals: Goals {
        /// The file in which p values are kept, relative to the project's root; empty: .runlore/cache/p.jsonl. RUNLORE_P_CACHE comes before it, and
        /// a server of many organizations has one beside each project's file.
        p_cache: String = (text ""),
            "a view of the goals costs a read instead of their tests";
        /// What that file may grow to; then it is begun anew, and the last one stays beside it.
        p_cache_bytes_max: u64 = (16 * MIB, 64 * KIB, GIB, "bytes"),
            "some 170,000 values of 100 bytes; all are in memory while goals are looked at";
    }

    /// Questions in SQL (`query` and its views): each runs in a process of its own, which is killed when it takes too long or too much.
    query: Query {
        /// How long one may run.
        deadline_ms: u64 = (5000, 100, 300_000, "milliseconds"),
            "the views take some tens of milliseconds; a person waits that long for a question of his own";
        /// Bytes of the answer's rows as JSON.
        result_bytes: usize = (921_600, 1024, 3_145_728, "bytes"),
            "under limits.result_bytes with room for names";
        /// Bytes of one value and of one row while it runs.
        value_bytes: u32 = (131_072, 1024, 1_048_576, "bytes"),
            "one step over a value cannot be interrupted: at this size each takes milliseconds";
        /// Memory of the database in that process.
        memory_bytes: u64 = (67_108_864, 8_388_608, 536_870_912, "bytes"),
            "sorts a few hundred thousand rows";
        /// Questions that run at once; more wait.
        workers_max: usize = (4, 1, 64, "processes"),
            "each takes a core while it runs";
        /// How long a question waits for one of them before it is refused as busy.
        wait_ms: u64 = (10_000, 1, 300_000, "milliseconds"),
            "two deadlines: who is before has ended by then";
    }

    /// The HTTP service. The flags of `runlore mcp --http` and `runlore serve` override these keys.
    http: Http {
        /// The address to listen on.
        host: String = (text "127.0.0.1"),
            "nobody but this machine, unless the operator says otherwise";
        /// The port to listen on.
        port: u16 = (4986, 1, 65_535, "port"),
            "next to none in use";
        /// The MCP endpoints of `runlore serve`.
        endpoints: Vec<String> = (texts ["/mcp", "/api/mcp"], 16),
            "short, and where clients of either kind look";
        /// Those of them that frame answers to clients of the older era as an event stream.
        event_stream_endpoints: Vec<String> = (texts ["/api/mcp"], 16),
            "clients of the 2025 era expect it there; modern answers are JSON everywhere";
        /// Host names that are answered besides the loopback's: `name` takes it bare, with :443, :80 or the port; `name:port` only that.
        allowed_hosts: Vec<String> = (texts [], 64),
            "a browser that was led to this address under another name must get nothing (DNS rebinding)";
        /// Origins of browsers that may call, such as `https://app.example`.
        allowed_origins: Vec<String> = (texts [], 64),
            "agents send none; a page of another site must get nothing";
        /// Networks whose `client_header` is believed, such as `10.0.0.0/8`; the loopback always is.
        trusted_proxies: Vec<String> = (texts [], 64),
            "a header from anybody else would let him name himself";
        /// The header in which a trusted proxy names the caller, such as `X-Real-IP`; empty for none.
        client_header: String = (text ""),
            "proxies differ; without one the connection's own address counts";
        /// Groups of tools that are offered, of history, query, catalog, workspace, projections, commands; empty: all but commands, and for `runlore mcp` (over standard input and output too) history, query, catalog.
        toolsets: Vec<String> = (texts [], 6),
            "an agent pays for every schema, and what runs programs is the operator's decision";
        /// Whether anybody may read: texts of cases and attempts are hidden then.
        public: bool = (false),
            "what is published is the operator's decision";
        /// Whether strangers read texts too (inputs, targets, outputs, reasons, transcripts); without it, names and numbers alone.
        publish_text: bool = (false),
            "a benchmark's questions, once on the internet, are in the next model's training";
        /// Tool calls a minute of one caller; 0 for no limit.
        rate_per_min: u32 = (120, 0, 1_000_000, "calls a minute"),
            "an agent at work makes some ten; on the loopback there is no limit unless asked for";
        /// Tool calls a minute that run, of all callers together; 0 for no limit.
        rate_total_per_min: u32 = (600, 0, 10_000_000, "calls a minute"),
            "holds when callers can name themselves any address";
        /// Requests a minute from one address, whatever they ask; 0 for no limit.
        request_rate_per_min: u32 = (600, 0, 10_000_000, "requests a minute"),
            "floods of ping and tools/list never reach the tools' rate";
        /// Heavy tools that run at once.
        concurrent: usize = (4, 1, 1024, "calls"),
            "a heavy tool takes a core";
        /// How long one call may run.
        timeout_s: u64 = (300, 1, 3600, "seconds"),
            "long enough for a heavy question, short enough to free what hangs";
        /// How long a heavy call waits for a slot before it is refused as busy.
        slot_wait_s: u64 = (30, 1, 600, "seconds"),
            "under the minute at which clients give up";
        /// Light tools of one caller that run at once.
        light_per_caller: usize = (8, 1, 1024, "calls"),
            "an agent asks a few things in parallel";
        /// Calls that run at once, of all callers together.
        handlers: usize = (256, 1, 65_536, "calls"),
            "each holds a thread of the blocking pool while it reads";
        /// Bytes of a request's body.
        body_bytes_max: usize = (65_536, 1024, 16_777_216, "bytes"),
            "arguments are small";
        /// How long a body may take to come.
        body_deadline_s: u64 = (10, 1, 600, "seconds"),
            "a body is one packet or a few";
        /// Bytes of a request's head.
        header_bytes_max: usize = (16_384, 8192, 1_048_576, "bytes"),
            "tokens take a few kilobytes; hyper alone takes hundreds";
        /// Headers of a request.
        headers_max: usize = (100, 10, 1000, "headers"),
            "browsers behind proxies send some thirty";
        /// How long a head may take to come.
        header_deadline_s: u64 = (10, 1, 600, "seconds"),
            "a head is one packet";
        /// How long a connection may stay without a request in flight.
        idle_s: u64 = (5, 1, 3600, "seconds"),
            "silence, half a preface and forgotten keep-alives hold a place";
        /// Open connections.
        connections_max: usize = (64, 1, 65_536, "connections"),
            "each holds a file descriptor and its buffers";
        /// Open connections of one address; requests in flight of one caller behind a trusted proxy.
        per_caller_max: usize = (8, 1, 65_536, "connections"),
            "an agent holds one or two";
        /// Requests in flight, of all connections together.
        in_flight_max: usize = (512, 1, 65_536, "requests"),
            "one HTTP/2 connection carries many";
        /// Addresses that a limit remembers at most.
        limiter_keys_max: usize = (100_000, 100, 10_000_000, "addresses"),
            "some 100 bytes each; beyond it the oldest are forgotten";
        /// Bytes of answers that are kept.
        cache_bytes: u64 = (16 * MIB, 0, GIB, "bytes"),
            "repeated views of an agent's session";
        /// How long an answer is kept at most.
        cache_ttl_s: u64 = (3600, 1, 86_400, "seconds"),
            "a write makes it stale at once; this only frees memory";
        /// How long calls in flight may take to finish once the server is told to end.
        drain_s: u64 = (20, 0, 600, "seconds"),
            "under the half minute at which supervisors kill";
        /// How long the end then waits for what other servers are still to be told ([otlp], [sentry], [analytics]).
        flush_ms: u64 = (2000, 0, 60_000, "milliseconds"),
            "drain_s and this are under the half minute at which supervisors kill";
    }

    /// Who may ask `runlore serve` for what. (`runlore mcp --http` with a token asks it of every request.)
    auth: Auth {
        /// Whether those without the token may ask what there is: discovery, `initialize`, `ping`, the lists of tools, prompts and templates.
        anonymous_discovery: bool = (true),
            "clients look before they log in, and nothing of this is a project's; where even that is too much, false";
        /// The URL that clients know the server by, such as https://runs.example; needed where an issuer is an authorization server.
        public_url: String = (text ""),
            "behind a proxy the server does not know its own name";
        /// The file of a key of its own (`runlore token keygen`), whose tokens (`runlore token mint`) are taken too.
        local_key_file: String = (text ""),
            "for teams without an identity provider";
        /// What that key's tokens have as issuer.
        local_issuer: String = (text "runlore"),
            "a name is enough: nobody is sent there";
        /// What that key's tokens have as audience; empty: public_url.
        local_audience: String = (text ""),
            "a token for another server with the same key must not work here";
        /// Bytes of a token.
        jwt_bytes_max: usize = (8192, 512, 65_536, "bytes"),
            "tokens with many groups take some 4 KiB; a head has 16 KiB in all";
        /// Seconds by which an issuer's clock may differ.
        jwt_leeway_s: u64 = (5, 0, 300, "seconds"),
            "servers keep time; more lets tokens live longer than they say";
        /// Verified tokens that are remembered; 0 verifies each again.
        jwt_cache_entries: u64 = (10_000, 0, 1_000_000, "tokens"),
            "some 500 bytes each; holding a signature against a key takes 35 to 190 microseconds, more than all the rest of a request";
        /// How long one is remembered; never beyond its end or a change of its issuer's keys.
        jwt_cache_s: u64 = (60, 1, 600, "seconds"),
            "a caller asks several times a minute";
        /// How often key sets at URLs are read again.
        jwks_refresh_s: u64 = (300, 10, 86_400, "seconds"),
            "providers publish a new key hours before they use it, and a key that is withdrawn counts no longer than this";
        /// How often key sets in files are read again.
        jwks_file_refresh_s: u64 = (5, 1, 3600, "seconds"),
            "a file costs nothing to read";
        /// How long must pass between two readings for a key that nobody knows, and after one that failed.
        jwks_refresh_min_s: u64 = (30, 1, 3600, "seconds"),
            "anybody can invent keys; a provider must not hear of it each time";
        /// How long the last good key set holds while its place does not answer.
        jwks_age_max_s: u64 = (86_400, 300, 2_592_000, "seconds"),
            "a night's outage of the provider must not be the server's; for ever would never withdraw a key";
        /// How long one reading may take.
        jwks_timeout_s: u64 = (5, 1, 60, "seconds"),
            "the first caller with a new key waits for it";
        /// Bytes of a key set.
        jwks_bytes_max: u64 = (256 * KIB, 1024, 16 * MIB, "bytes"),
            "the largest providers' sets take some 20 KiB";
        /// Keys of a set; a larger one is refused.
        jwks_keys_max: usize = (64, 1, 4096, "keys"),
            "providers have two to ten";
        /// A file of certificate authorities in PEM, which then stand for the public ones.
        jwks_ca_file: String = (text ""),
            "providers inside a company have certificates of their own";
        /// The identity providers.
        issuer: Vec<Issuer> = (tables ISSUER, 32),
            "one for people and a few for machines";
    }

    /// One server for many organizations: `runlore serve` is one where `data_dir` is set. `runlore org`, `project` and `key` say who they are.
    tenants: Tenants {
        /// Where the control file and the projects' files are; empty for a server of one project.
        data_dir: String = (text ""),
            "a server of one project needs none";
        /// Projects that are open at once; one that nobody has asked for longest is closed for another.
        open_max: usize = (256, 1, 65_536, "projects"),
            "an open one holds a few connections of `store.cache_kib` at most; opening takes a millisecond or two";
        /// Page cache of each connection to a project.
        cache_kib: u64 = (2048, 256, 4_194_304, "KiB"),
            "many projects are open at once; the system's file cache holds the rest";
        /// How long a project stays open that nobody asks for.
        idle_s: u64 = (60, 1, 86_400, "seconds"),
            "an agent's session asks again within it";
        /// How often it is looked whether an organization, project or key was made, changed or revoked.
        look_ms: u64 = (500, 10, 60_000, "milliseconds"),
            "a revoked key is refused within it; a look takes microseconds";
        /// How long a look or an opening may take before it is given up.
        wait_ms: u64 = (5000, 100, 60_000, "milliseconds"),
            "a disk that hangs must not hold up every caller";
        /// Requests a minute of one organization; 0 for no limit.
        rate_per_min: u32 = (1200, 0, 10_000_000, "requests a minute"),
            "ten agents at work; one organization does not take the places of the others";
    }

    /// What `runlore push` and `POST /v1/runs` send to a server of many organizations (`tenants.data_dir`).
    ingest: Ingest {
        /// Bytes of a log that comes in one request; a larger one comes in parts.
        body_bytes_max: u64 = (64 * MIB, 64 * 1024, 4 * GIB, "bytes"),
            "nearly every log; what breaks on the way is sent again from its beginning";
        /// All of a log or a part is due within this.
        body_deadline_s: u64 = (300, 1, 3600, "seconds"),
            "the largest body over a line of 2 Mbit/s";
        /// Bytes of one part.
        part_bytes_max: u64 = (8 * MIB, 64 * 1024, GIB, "bytes"),
            "what is lost where a line breaks";
        /// Bytes of one log that comes in parts.
        upload_bytes_max: u64 = (4 * GIB, MIB, 1024 * GIB, "bytes"),
            "logs with images; far below what fills a disk";
        /// Logs of one project that have come in part.
        uploads_max: usize = (64, 1, 10_000, "logs"),
            "several CI jobs at once, and what they left behind";
        /// Bytes that they take on the disk together.
        uploads_bytes_max: u64 = (16 * GIB, MIB, 16_384 * GIB, "bytes"),
            "one project does not fill the disk of the others";
        /// How long a log stays that has come in part and of which nothing more comes.
        upload_keep_h: u64 = (24, 1, 8760, "hours"),
            "a CI job that broke is run again on the same day";
        /// Files of one bundle: a log with what stands beside it.
        bundle_files_max: usize = (20_000, 1, 1_000_000, "files"),
            "a transcript for each attempt of a large run";
        /// Bytes that a bundle may inflate to.
        bundle_bytes_max: u64 = (8 * GIB, MIB, 1024 * GIB, "bytes"),
            "twice the largest upload: transcripts pack well";
        /// Bodies that come in at once, a quarter of them of one organization; more are asked to come again.
        receiving: usize = (32, 1, 4096, "bodies"),
            "each holds a quarter of a MiB of memory";
        /// Logs that are read into projects at once; more wait.
        concurrent: usize = (2, 1, 4, "logs"),
            "there are eight threads for all that reads and writes, and reading comes first";
        /// How long a sender waits for its log to be read before it is told to ask again; the reading goes on.
        wait_s: u64 = (60, 1, 3600, "seconds"),
            "under what proxies allow";
    }

    /// Leave for what tools write, and the trail of it. Only a server of many organizations (`tenants.data_dir`) writes.
    approval: Approval {
        /// How long an approval holds that nobody has used.
        ttl_s: u64 = (300, 1, 3600, "seconds"),
            "a person reads and answers within it; what he meant yesterday he may not mean today";
        /// How long the row of a refused write may take before the refusal is answered without it; the log says so then.
        row_wait_ms: u64 = (5000, 100, 60_000, "milliseconds"),
            "a row takes a millisecond; a disk that hangs must not hold up every refusal";
    }

    /// What one project's runs may take that tools start (`runs_start`).
    org: Org {
        /// Runs of one project that wait or run.
        max_queued_runs: u64 = (20, 1, 10_000, "runs"),
            "an agent that starts runs in a loop is stopped before it costs much";
        /// Dollars that the runs started in one day (UTC) may cost together, by what each says it may cost; 0 for no bound.
        max_cost_usd_per_day: u64 = (0, 0, 1_000_000, "dollars"),
            "what a run costs only the operator knows; with a bound, each must say what it may cost";
    }

    /// `runlore worker`: takes queued runs and has a declared program do them.
    worker: Worker {
        /// How long a run is a worker's without a word from it.
        lease_s: u64 = (60, 1, 3600, "seconds"),
            "another worker takes the run of one that was killed after it";
        /// How often a worker says that it still works; at least three times a lease, whatever this says.
        heartbeat_s: u64 = (15, 1, 1200, "seconds"),
            "some may be lost before the lease ends";
        /// How often a run may be taken before it is failed.
        tries_max: u32 = (2, 1, 100, "tries"),
            "a run that kills its workers must end";
        /// How often the queue is looked at, and whether a run that is being done is to be cancelled.
        poll_ms: u64 = (1000, 10, 60_000, "milliseconds"),
            "a look at an idle project costs two stats; nobody waits for a second";
        /// Runs that one worker does at once.
        concurrent: usize = (2, 1, 256, "runs"),
            "programs wait for models most of the time, and each may hold output_bytes_max";
        /// How long a program that is to end may take to do so before it is killed.
        grace_ms: u64 = (2000, 0, 60_000, "milliseconds"),
            "long enough to close what is open, shorter than supervisors wait";
        /// The programs.
        executor: Vec<Executor> = (tables EXECUTOR, 100),
            "one for each way of running evaluations";
    }

    /// Directories that runs are synced from: `connections_create` names one below `root`. On a server of many organizations.
    connections: Connections {
        /// The directory in which the watched ones are, as ROOT/ORGANIZATION/PROJECT/PATH; empty: connections are off.
        root: String = (text ""),
            "the operator decides what the server reads; a caller only names what is below";
        /// How often each is looked at.
        sync_s: u64 = (60, 1, 86_400, "seconds"),
            "a look at unchanged files is a listing and a stat each";
        /// How often it is looked whether a look was asked for, or a connection was made.
        look_ms: u64 = (1000, 50, 60_000, "milliseconds"),
            "two stats of each project; whoever asks for a look has it soon";
    }

    /// The HTTP tool API of `runlore serve`: `GET /api/mcp/tools` and `POST /api/mcp/call` (contract `evalgate-tool-api`).
    tool_api: ToolApi {
        /// Whether its tools that write are listed and may be called; they ask for no approval. RUNLORE_TOOL_API_WRITES and
        /// EVALGATE_TOOL_API_WRITES say it too.
        writes: bool = (false),
            "an integration that reads needs none, and what has no approval step is the operator's decision";
    }

    /// The private listener: livez, readyz, metrics. `runlore serve` has it; `runlore mcp` with `--admin-listen`.
    admin: Admin {
        /// Where it listens.
        listen: String = (text "127.0.0.1:4987"),
            "next to the service's own";
        /// Whether another than a loopback address is taken.
        allow_remote: bool = (false),
            "it asks for no token";
    }

    /// A span per tool call to an OpenTelemetry receiver, by OTLP over HTTP. Off while `endpoint` is empty.
    otlp: Otlp {
        /// The receiver's base, such as http://127.0.0.1:4318; spans go to its /v1/traces.
        endpoint: String = (text ""),
            "nothing leaves the machine unless somebody says so";
        /// The name of the service in its traces.
        service: String = (text "runlore"),
            "a name is enough where there is one server";
        /// A file of headers that each request has, a `Name: value` a line; OTEL_EXPORTER_OTLP_HEADERS is read too.
        headers_file: String = (text ""),
            "receivers ask for keys, and a key is no part of a configuration";
        /// How long one exchange may take.
        timeout_ms: u64 = (5000, 10, 60_000, "milliseconds"),
            "nobody waits for it but what is queued behind it";
    }

    /// Faults of the server's own to Sentry, or to a server that speaks like it. Off without a DSN.
    sentry: Sentry {
        /// The file that holds the DSN; RUNLORE_SENTRY_DSN stands for it.
        dsn_file: String = (text ""),
            "the DSN is a key";
        /// The name of the deployment, such as production.
        environment: String = (text ""),
            "one project of Sentry may have several";
        /// How long one exchange may take.
        timeout_ms: u64 = (5000, 10, 60_000, "milliseconds"),
            "nobody waits for it but what is queued behind it";
    }

    /// An event per tool call over HTTP to a server of web analytics, in Umami's form. Off while `url` is empty.
    analytics: Analytics {
        /// The URL that takes events, such as https://umami.example/api/send.
        url: String = (text ""),
            "a caller's address goes there: that is the operator's to decide";
        /// The website's id there; needed where `url` is given.
        website: String = (text ""),
            "Umami gives one to each site";
        /// The host name that calls are counted under; needed where `url` is given.
        hostname: String = (text ""),
            "the name that callers use";
        /// How long one exchange may take.
        timeout_ms: u64 = (2000, 10, 60_000, "milliseconds"),
            "each call is an exchange of its own";
    }

    /// Secrets in text become `[REDACTED]`; on the way out always.
    redaction: Redaction {
        /// Whether they are replaced already when a log is imported, so that the store never holds one.
        at_import: bool = (true),
            "no later path, and no copy of the file, can leak what was never kept";
    }

    /// What holds for every command that is a tool (`[[command]]`).
    commands: Commands {
        /// Commands that run at once on this machine, those of a client on standard input too; more wait.
        running_max: usize = (8, 1, 1024, "commands"),
            "over HTTP `http.concurrent` holds before; without this a client at the other end of a pipe could start any number";
        /// How long a command waits for its place before it is refused as busy.
        wait_s: u64 = (30, 1, 600, "seconds"),
            "under the minute at which clients give up";
        /// Bytes of one value on a command line.
        value_bytes_max: usize = (8192, 16, 65_536, "bytes"),
            "names, numbers and filters are short; the system takes 128 KiB";
        /// Values of one list on a command line.
        values_max: usize = (100, 1, 1000, "values"),
            "more than a person types";
        /// Bytes of a refused command's last words that are told.
        stderr_bytes_max: usize = (65_536, 1024, 1_048_576, "bytes"),
            "the end says why; the whole may be a flood";
    }

    lists {
        /// A program of your own whose answers are a tool (toolset `commands`); `runlore commands scan` writes these from an argparse program.
        command: Vec<Command> = (tables COMMAND, 200),
            "a program with thirty commands, several times";
    }
}
