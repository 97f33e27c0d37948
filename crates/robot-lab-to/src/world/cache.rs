//! The ignored files of the bench between grades: kept as they are, or only those of accepted grades.

use super::furnish::{SetUp, Zone};
use super::{RealWorld, chain};
use crate::event::Event;
use crate::iteration::StopReason;
use crate::workspace::{Carry, CarryLimits, Fidelity, Oid};
use serde::{Deserialize, Serialize};
use std::fs;
use std::sync::Arc;

/// Which ignored files, such as build caches, a bench has when it grades.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum BenchCache {
    /// Those that earlier grades left.
    #[default]
    Keep,
    /// Those that accepted grades left. After each other grade they are put back from a copy.
    Accepted,
}

/// What is known of the ignored files of the bench, where that counts.
#[derive(Debug, Default)]
pub(crate) struct CacheState {
    /// Whether something was graded since they were put aside.
    stained: bool,
    /// What is put aside; `None` when nothing is.
    saved: Option<Saved>,
}

#[derive(Clone, Debug)]
struct Saved {
    /// The ignored files, as they are in the bench while nobody touches them; their copies lie in the work directory.
    files: Arc<Carry>,
    /// What setup had done by then.
    set_up: Option<SetUp>,
}

impl CacheState {
    /// That of a bench of which nobody knows what was graded in it.
    pub(crate) fn unknown() -> Self {
        Self {
            stained: true,
            saved: None,
        }
    }
}

impl RealWorld {
    /// Before a grade: puts back what the last accepted one left, and expects the worst of the coming one.
    pub(crate) async fn restore_cache(&mut self, parent: &Oid) -> Result<(), StopReason> {
        if self.plan.bench_cache == BenchCache::Keep || !std::mem::replace(&mut self.cache.stained, true) {
            return Ok(());
        }
        if let Some(saved) = self.cache.saved.take() {
            self.furnishing.bench.set_up = saved.set_up.clone();
            match self.put_back(parent, &saved.files).await {
                Ok(files) => {
                    self.cache.saved = Some(Saved { files, ..saved });
                    return Ok(());
                }
                Err(why) if self.halt.reason().is_none() => self.anew("put back", &why),
                Err(_) => return Err(self.halted()),
            }
        }
        self.bench
            .empty()
            .await
            .map_err(|error| StopReason::environment(chain(&error)))
    }

    /// After an accepted grade: puts aside what it left. Where that is not possible, the bench is emptied after the
    /// next grade that is not accepted.
    pub(crate) async fn save_cache(&mut self) {
        if self.plan.bench_cache == BenchCache::Keep {
            return;
        }
        let before = self.cache.saved.take().map(|saved| saved.files);
        match self.put_aside(before).await {
            Ok(files) => {
                let set_up = self.furnishing.bench.set_up.clone();
                self.cache.saved = Some(Saved { files, set_up });
            }
            Err(why) => self.anew("put aside", &why),
        }
        self.cache.stained = false;
    }

    fn anew(&self, what: &str, why: &str) {
        self.journal.note(Event::Notice {
            message: format!("the ignored files of the bench were not {what}, so that it begins anew: {why}"),
        });
    }

    /// Copies what differs from what was put aside before.
    async fn put_aside(&self, before: Option<Arc<Carry>>) -> Result<Arc<Carry>, String> {
        let now = self.ignored_files().await?;
        let (to, work) = (self.zones.work().bench_cache(), self.zones.work().clone());
        let (files, cancel) = (Arc::clone(&now), self.halt.soft().child_token());
        off_the_loop(move || {
            let Some(before) = before else {
                work.remove(&to)
                    .and_then(|()| fs::create_dir(&to))
                    .map_err(|error| error.to_string())?;
                return files.copy_to(&to, &cancel).map_err(|error| error.to_string());
            };
            for gone in before.beyond(&files) {
                work.remove(&to.join(gone)).map_err(|error| error.to_string())?;
            }
            let from = files.root();
            let copied = files.copy_some(from, &to, &files.unlike(&before), &cancel);
            copied.map_err(|error| error.to_string())
        })
        .await?;
        Ok(now)
    }

    /// Removes what was not there, and copies what was touched or is gone.
    async fn put_back(&mut self, parent: &Oid, saved: &Arc<Carry>) -> Result<Arc<Carry>, String> {
        // First the rules for ignoring that were accepted.
        self.prepare(Zone::Bench, parent, parent)
            .await
            .map_err(|reason| reason.text)?;
        let now = self.ignored_files().await?;
        self.bench
            .discard(now.beyond(saved))
            .await
            .map_err(|error| chain(&error))?;
        let (from, to) = (self.zones.work().bench_cache(), self.bench.path().to_owned());
        let (saved, cancel) = (Arc::clone(saved), self.halt.soft().child_token());
        off_the_loop(move || {
            let copied = saved.copy_some(&from, &to, &saved.unlike(&now), &cancel);
            copied.map_err(|error| error.to_string())
        })
        .await?;
        self.ignored_files().await
    }

    async fn ignored_files(&self) -> Result<Arc<Carry>, String> {
        let paths = self.bench.ignored().await.map_err(|error| chain(&error))?;
        let (bench, cancel) = (self.bench.path().to_owned(), self.halt.soft().child_token());
        off_the_loop(move || {
            Carry::survey(&bench, paths, Fidelity::Exact, CarryLimits::default(), &cancel)
                .map(Arc::new)
                .map_err(|error| error.to_string())
        })
        .await
    }
}

/// Runs file system work where it holds nothing up.
async fn off_the_loop<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, String> + Send + 'static,
) -> Result<T, String> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(error.to_string()))
}
