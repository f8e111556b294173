//! The desk that takes what is sent: a log in one request, or in parts and then whole, into the project that its sender may see.
//!
//! Promises: a body goes to a file beside the project's, never whole into memory; one log at a time is read into a project, and few in all, so
//! that answers keep their threads; a server that is killed has read a log whole or not at all, and what it left behind is removed when one
//! starts again. What was answered as taken is on the disk.
//! Does not: decide who may send (`gate::ingest` does), or know a format (`importers`).

mod import;
mod question;
mod spool;
mod uploads;

use std::{path::PathBuf, sync::Arc, time::Duration};

use http::Method;
use sha2::{Digest as _, Sha256};
use tokio::sync::{Mutex as Turn, OwnedSemaphorePermit, Semaphore, SemaphorePermit};

use self::{
    import::{Job, Source},
    question::{Manifest, Question},
    spool::{Sink, Spool},
};
use super::tenants::{Opened, Target};
use crate::{
    auth::Caller,
    clock,
    config::{Config, keys::Ingest as Limits},
    domain::hex::hex,
    gate::{
        ingest::{Counted, Head, Ingest, Refused, Taken, Taking},
        project::Lost,
        route,
        shared::Shared,
        visit::Route,
    },
    importers,
    store::{
        self,
        workspace::{Actor, Deed},
    },
    telemetry::redaction::Redactor,
};

/// Bytes of the JSON that goes with a log that came in parts: 500 commits, and room.
const MANIFEST_BYTES_MAX: u64 = 64 * 1024;
/// They are due within this: nobody holds a place with a few bytes for as long as a log may take.
const MANIFEST_WITHIN: Duration = Duration::from_secs(10);
/// One organization takes at most this part of the places: 1 in ...
const SHARE: usize = 4;
/// How often what was left behind is looked for.
const SWEEP: Duration = Duration::from_secs(3600);

/// The desk. Its clones are one desk.
#[derive(Clone)]
pub struct Desk(Arc<Parts>);

struct Parts {
    opened: Opened,
    limits: Limits,
    import: importers::Limits,
    redactor: Arc<Redactor>,
    receiving: Semaphore,
    importing: Arc<Semaphore>,
    looking: Semaphore,
    /// The bodies that come from each organization.
    shares: Shared<Arc<str>, Semaphore>,
    /// The logs that are read for each organization.
    import_shares: Shared<Arc<str>, Semaphore>,
    /// Whose turn it is in each project: what a log is called depends on those that are there.
    turns: Shared<PathBuf, Turn<()>>,
}

impl Desk {
    /// The desk of these projects.
    #[must_use]
    pub fn new(opened: Opened, config: &Config) -> Self {
        let limits = config.ingest.clone();
        let redactor = Redactor::at_import(config.redaction.at_import);
        Self(Arc::new(Parts {
            opened,
            import: config.import_limits(),
            redactor: Arc::new(redactor),
            receiving: Semaphore::new(limits.receiving),
            importing: Arc::new(Semaphore::new(limits.concurrent)),
            looking: Semaphore::new(limits.concurrent),
            shares: Shared::default(),
            import_shares: Shared::default(),
            turns: Shared::default(),
            limits,
        }))
    }

    /// How long one request may take: its body, its wait and its place.
    #[must_use]
    pub fn within(&self) -> Duration {
        Duration::from_secs(self.0.limits.body_deadline_s.saturating_add(self.0.limits.wait_s))
    }

    /// Removes what a killed server left behind, and parts that nobody finished. Blocking.
    pub fn sweep(&self) {
        spool::sweep(&self.0.opened.directory(), Duration::from_secs(self.0.limits.upload_keep_h.saturating_mul(3600)));
    }

    /// Does so every hour, until this is dropped.
    pub async fn keep(&self) {
        loop {
            tokio::time::sleep(SWEEP).await;
            let desk = self.clone();
            if let Err(error) = tokio::task::spawn_blocking(move || desk.sweep()).await {
                tracing::warn!(%error, "what was sent and never finished could not be looked for");
            }
        }
    }
}

impl Ingest for Desk {
    fn bytes_max(&self, route: Route) -> u64 {
        if route == Route::Runs { self.0.limits.body_bytes_max } else { self.0.limits.part_bytes_max }
    }

    fn take<'a>(&'a self, head: Head, body: &'a mut Counted) -> Taking<'a> {
        Box::pin(async move {
            let question = Question::read(&head.query).map_err(Refused::Argument)?;
            let target = self.0.target(&head.caller, question.project.as_deref()).await?;
            match (route::upload(&head.path), &head.method) {
                (Some(digest), &Method::PUT) => self.0.part(&target, digest, &question, &head, body).await,
                (Some(digest), _) => self.0.look(&target, digest, question).await,
                (None, _) => match question.upload.clone() {
                    Some(digest) => self.0.whole(target, &digest, question, &head, body).await,
                    None => self.0.direct(target, question, &head.caller, body).await,
                },
            }
        })
    }
}

impl Parts {
    async fn target(&self, caller: &Caller, named: Option<&str>) -> Result<Target, Refused> {
        self.opened.target(caller, named).await.map_err(|lost| match lost {
            Lost::NotFound => Refused::NotFound(match named {
                Some(named) => {
                    format!("there is no project \"{}\"", crate::domain::text::clean(&crate::domain::attempt::shorten(named, 80)))
                }
                None => "there is no project that you may see".to_owned(),
            }),
            Lost::Which => Refused::Which,
            Lost::Store(error) => fault(&error),
        })
    }

    /// A place among the bodies that come in, of which one organization takes no more than its share.
    fn receiving(&self, caller: &Caller) -> Result<(SemaphorePermit<'_>, OwnedSemaphorePermit), Refused> {
        let full = |_| Refused::Busy { why: "too many logs are coming in", retry_after_s: 1 };
        let organization = caller.organization().cloned().unwrap_or_default();
        let share = self.shares.of(organization, || Semaphore::new(self.limits.receiving.div_ceil(SHARE)));
        let own = share.try_acquire_owned().map_err(full)?;
        Ok((self.receiving.try_acquire().map_err(full)?, own))
    }

    fn deadline(&self) -> Duration {
        Duration::from_secs(self.limits.body_deadline_s)
    }

    /// A part, after those that are there.
    async fn part(&self, target: &Target, digest: &str, question: &Question, head: &Head, body: &mut Counted) -> Result<Taken, Refused> {
        let offset = question.offset.ok_or_else(|| Refused::Argument("say with ?offset= how many bytes came before".to_owned()))?;
        let _place = self.receiving(&head.caller)?;
        let (spool, digest, again, limits) = (Spool::of(target), digest.to_owned(), digest.to_owned(), self.limits.clone());
        let length = head.length.unwrap_or(limits.part_bytes_max);
        let file = blocking(move || uploads::open(&spool, &digest, offset, length, &limits)).await??;
        let max = self.limits.part_bytes_max.min(self.limits.upload_bytes_max.saturating_sub(offset));
        // The whole log is hashed once it is there.
        let mut sink = Sink::new(file, max, false);
        let came = sink.take(body, self.deadline()).await;
        // What came of a part that broke off stays: the next one begins behind it. On a full disk nothing does, or it would stay full.
        let written = sink.close().await;
        if matches!((&came, &written), (Err(Refused::Full), _) | (_, Err(Refused::Full))) {
            let (spool, digest) = (Spool::of(target), again);
            blocking(move || uploads::forget(&spool, &digest)).await?;
        }
        came?;
        let held = offset.saturating_add(written?.bytes);
        Ok(Taken { json: format!("{{\"ok\":true,\"bytes\":{held}}}"), held: Some(held) })
    }

    /// How much of a log is there, and whether a log with this digest was read already, as it is asked for.
    async fn look(&self, target: &Target, digest: &str, question: Question) -> Result<Taken, Refused> {
        let busy = Refused::Busy { why: "too many ask at once", retry_after_s: 1 };
        let wait = Duration::from_secs(self.limits.wait_s);
        let _place = tokio::time::timeout(wait, self.looking.acquire()).await.map_err(|_| busy)?;
        let (spool, digest, store) = (Spool::of(target), digest.to_owned(), target.store.clone());
        blocking(move || {
            let imported = store.files(None).map_err(|error| fault(&error))?.iter().any(|row| question.received().is_held(row, &digest));
            if imported {
                // A server that was killed between reading it and removing its parts left them.
                uploads::forget(&spool, &digest);
            }
            let held = uploads::held(&spool, &digest);
            Ok(Taken { json: format!("{{\"ok\":true,\"bytes\":{held},\"imported\":{imported}}}"), held: Some(held) })
        })
        .await?
    }

    /// A log in one request.
    async fn direct(&self, target: Target, mut question: Question, caller: &Caller, body: &mut Counted) -> Result<Taken, Refused> {
        let place = self.receiving(caller)?;
        let spool = Spool::of(&target);
        let made = blocking(move || {
            let fresh = spool.fresh()?;
            let path = fresh.path().join("body");
            let file = std::fs::File::create_new(&path)?;
            Ok((fresh, path, file))
        });
        let (fresh, path, file) = made.await?.map_err(|error: std::io::Error| disk(&error))?;
        let mut sink = Sink::new(file, self.limits.body_bytes_max, true);
        sink.take(body, self.deadline()).await?;
        let written = sink.close().await?;
        drop(place);
        question.name.get_or_insert(format!("pushed/{}", written.digest.unwrap_or_default()));
        self.read(target, question, Manifest::default(), Source::Body { fresh, path }, caller).await
    }

    /// A log that has come in parts.
    async fn whole(&self, target: Target, digest: &str, mut question: Question, head: &Head, body: &mut Counted) -> Result<Taken, Refused> {
        let place = self.receiving(&head.caller)?;
        let manifest = self.manifest(head.json, body).await?;
        drop(place);
        question.name.get_or_insert(format!("pushed/{digest}"));
        let source = Source::Upload { spool: Spool::of(&target), digest: digest.to_owned() };
        self.read(target, question, manifest, source, &head.caller).await
    }

    async fn manifest(&self, json: bool, body: &mut Counted) -> Result<Manifest, Refused> {
        use http_body_util::{BodyExt as _, Limited};
        let max = usize::try_from(MANIFEST_BYTES_MAX).unwrap_or(usize::MAX);
        let read = tokio::time::timeout(MANIFEST_WITHIN, Limited::new(body, max).collect()).await.map_err(|_| Refused::Late)?;
        let bytes = read.map_err(|_| Refused::TooLarge { max: MANIFEST_BYTES_MAX })?.to_bytes();
        if bytes.is_empty() {
            return Ok(Manifest::default());
        }
        if json { Manifest::read(&bytes).map_err(Refused::Argument) } else { Err(Refused::Encoded) }
    }

    /// Reads a log into its project, in its turn. Who waits no longer leaves the reading to its end.
    async fn read(
        &self,
        target: Target,
        question: Question,
        manifest: Manifest,
        source: Source,
        caller: &Caller,
    ) -> Result<Taken, Refused> {
        let wait = Duration::from_secs(self.limits.wait_s);
        let busy = |why| Refused::Busy { why, retry_after_s: 2 };
        let turn = self.turns.of(target.spool.clone(), Turn::default);
        // Its organization's turn before one of all: many projects of one do not stand before the others.
        let organization = caller.organization().cloned().unwrap_or_default();
        let share = self.import_shares.of(organization, || Semaphore::new(self.limits.concurrent.div_ceil(2)));
        let waiting = async {
            let turn = turn.lock_owned().await;
            (turn, share.acquire_owned().await, self.importing.clone().acquire_owned().await)
        };
        let (turn, share, place) = tokio::time::timeout(wait, waiting).await.map_err(|_| busy("other logs are being read"))?;
        let job = Job {
            deed: deed(caller, &question),
            store: target.store,
            question,
            manifest,
            source,
            limits: self.limits.clone(),
            import: self.import.clone(),
            redactor: self.redactor.clone(),
        };
        let reading = tokio::task::spawn_blocking(move || {
            let done = job.run();
            drop((turn, share, place));
            done
        });
        match tokio::time::timeout(wait, reading).await {
            Ok(done) => done.map_err(|error| internal(&error))?,
            Err(_) => Err(busy("the log is being read")),
        }
    }
}

/// What the trail says of who sends a log.
fn deed(caller: &Caller, question: &Question) -> Deed {
    let actor = Actor {
        identity: caller.identified().unwrap_or_else(|| caller.principal()).to_owned(),
        principal: caller.principal().to_owned(),
        role: caller.role(),
        address: None,
        request_id: clock::request_id(),
    };
    let arguments = format!("{:?} {:?} {:?}", question.name, question.run, question.bundle);
    let digest = hex(&Sha256::digest(arguments.as_bytes()));
    Deed { actor, tool: "push".to_owned(), digest, at: clock::now(), approval: None, idempotency_key: None }
}

/// Runs `work` where it may wait for a disk.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refused> {
    tokio::task::spawn_blocking(work).await.map_err(|error| internal(&error))
}

fn internal(error: &dyn std::fmt::Display) -> Refused {
    tracing::error!(%error, "what was sent could not be taken");
    Refused::Internal
}

/// What the disk refused.
fn disk(error: &std::io::Error) -> Refused {
    use std::io::ErrorKind::{FileTooLarge, PermissionDenied, QuotaExceeded, ReadOnlyFilesystem, StorageFull};
    tracing::error!(%error, "what was sent could not be kept");
    match error.kind() {
        StorageFull | QuotaExceeded | FileTooLarge => Refused::Full,
        ReadOnlyFilesystem | PermissionDenied => Refused::ReadOnly,
        _ => Refused::Internal,
    }
}

/// What the store refused.
fn fault(error: &store::Error) -> Refused {
    match error {
        store::Error::Busy => Refused::Busy { why: "the project is being written to", retry_after_s: 2 },
        store::Error::Full => Refused::Full,
        store::Error::ReadOnly => Refused::ReadOnly,
        other => internal(&if let store::Error::Internal(inner) = other { inner.clone() } else { other.to_string() }),
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Error, ErrorKind};

    use super::*;

    #[test]
    fn what_the_disk_and_the_store_refuse_is_told_apart() {
        let of_disk = |kind: ErrorKind| disk(&Error::from(kind)).status().as_u16();
        assert_eq!([of_disk(ErrorKind::StorageFull), of_disk(ErrorKind::QuotaExceeded), of_disk(ErrorKind::FileTooLarge)], [507; 3]);
        assert_eq!([of_disk(ErrorKind::ReadOnlyFilesystem), of_disk(ErrorKind::PermissionDenied)], [503; 2]);
        assert_eq!(of_disk(ErrorKind::NotADirectory), 500);
        let of_store = |error: store::Error| (fault(&error).status().as_u16(), fault(&error).retry_after_s());
        assert_eq!(of_store(store::Error::Full), (507, None));
        assert_eq!((of_store(store::Error::ReadOnly), of_store(store::Error::Busy)), ((503, None), (503, Some(2))));
        let inner = fault(&store::Error::Internal("SELECT secret".to_owned()));
        assert!(inner == Refused::Internal && !inner.sentence().contains("SELECT"));
    }
}
