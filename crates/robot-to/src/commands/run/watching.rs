//! Who looks on while a run speaks to its provider: `--debug` shows it, `--record` keeps it.

use crate::args::RunArgs;
use crate::error::CliError;
use crate::surface::Debug;
use robot_lab_providers::{ExchangeObserver, Recorder};
use robot_lab_to::event::Redactor;
use robot_lab_to::settings::{Place, Plan};
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::sync::Arc;

/// Those who look on.
pub(super) struct Watching {
    debug: Option<Arc<dyn ExchangeObserver>>,
    recorder: Option<Arc<Recorder>>,
}

impl Watching {
    /// Those that the flags ask for. The file of a recording is made with the first exchange.
    pub(super) fn new(args: &RunArgs, plan: &Plan, place: &Place, cwd: &Path) -> Result<Self, CliError> {
        let debug = args
            .debug
            .then(|| Arc::new(Debug::new(place.secrets.clone())) as Arc<dyn ExchangeObserver>);
        let recorder = match &args.record {
            Some(file) => Some(Arc::new(recorder(&cwd.join(file), plan, place)?)),
            None => None,
        };
        Ok(Self { debug, recorder })
    }

    /// All of them as one.
    pub(super) fn observer(&self) -> Option<Arc<dyn ExchangeObserver>> {
        let recorder = self
            .recorder
            .as_ref()
            .map(|recorder| Arc::clone(recorder) as Arc<dyn ExchangeObserver>);
        let all: Vec<_> = self.debug.iter().cloned().chain(recorder).collect();
        (!all.is_empty()).then(|| Arc::new(all) as Arc<dyn ExchangeObserver>)
    }

    /// Says so when not all of it could be kept: the run itself went on.
    pub(super) fn conclude(&self) {
        if let Some(Err(error)) = self.recorder.as_ref().map(|recorder| recorder.check()) {
            let said = format!("warning: the recording is not whole: {error}\n");
            drop(std::io::stderr().lock().write_all(said.as_bytes()));
        }
    }
}

fn recorder(file: &Path, plan: &Plan, place: &Place) -> Result<Recorder, CliError> {
    let played = |plan: &Plan| {
        let provider = plan.model.get("provider").and_then(|name| name.as_str());
        matches!(provider, Some(super::model::SCRIPT | super::model::REPLAY))
    };
    if played(plan) || super::model::of_fallback(plan).is_some_and(|plan| played(&plan)) {
        return Err(CliError::configuration(
            "nothing goes over the wire with a model that is played, so there is nothing to record; nothing was changed",
        ));
    }
    if file.symlink_metadata().is_ok() {
        return Err(CliError::configuration(format!(
            "{} is there already, and a recording begins a new file; nothing was changed",
            file.display()
        ))
        .hint("name another one: --record FILE"));
    }
    if !file.parent().is_some_and(Path::is_dir) {
        return Err(CliError::configuration(format!(
            "there is no directory for the recording {}; nothing was changed",
            file.display()
        ))
        .hint("make it, or name another place: --record FILE"));
    }
    let redactor = Redactor::new(place.secrets.clone());
    let path = file.to_owned();
    let open = move || {
        OpenOptions::new()
            .write(true)
            .create_new(true)
            // It holds what the model was shown of the repository.
            .mode(0o600)
            .open(&path)
    };
    Ok(Recorder::new(open, plan.model.clone(), move |text| {
        redactor.text(text)
    }))
}
