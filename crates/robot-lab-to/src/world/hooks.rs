//! The user's hooks: asked in the bench, on the graded tree.

use super::{MAX_TAMPERED, RealWorld, chain, parent, zone};
use crate::commit_message::CommitMessage;
use crate::event::Event;
use crate::git_hooks::{Answer, HookError};
use crate::iteration::{Hooked, RunState, StopReason, Submission, Taken};
use crate::workspace::{Oid, Snapshot, SnapshotRules};

impl RealWorld {
    /// Asks the hooks about a graded tree: pre-commit, unless the tree is already what it made, and then commit-msg.
    pub(super) async fn ask_hooks(
        &mut self,
        tree: &Oid,
        message: String,
        pre_commit: bool,
        state: &RunState,
    ) -> Result<Hooked, StopReason> {
        let parent = parent(state)?;
        let halt = self.halt.clone();
        tokio::select! {
            prepared = self.bench.prepare(tree, &parent) => prepared.map_err(zone)?,
            () = halt.soft().cancelled() => return Err(self.halted()),
        }
        let cancel = halt.soft().child_token();
        let bench = self.bench.path().to_owned();
        if pre_commit && self.hooks.hooks.pre_commit.is_some() {
            let hook = "pre-commit".to_owned();
            let answer = self.hooks.pre_commit(&bench, &cancel).await;
            match answer.map_err(not_run)? {
                Answer::Fine(_) => {}
                Answer::Refused(output) => return Ok(Hooked::Refused { hook, output }),
                Answer::Cancelled => return Err(self.halted()),
            }
            match self.taken_from_bench(&parent).await? {
                Snapshot::Tree(now) if now == *tree => {}
                Snapshot::Tree(now) => {
                    let tampered = self.tampered(&now).await?;
                    return Ok(Hooked::Changed(Taken { tree: now, tampered }));
                }
                Snapshot::Rejected(reasons) => {
                    let reasons: Vec<String> = reasons.iter().map(ToString::to_string).collect();
                    let output = format!("it left files that cannot be committed:\n{}", reasons.join("\n"));
                    return Ok(Hooked::Refused { hook, output });
                }
            }
        }
        let tmp = self.zones.work().tmp();
        let answer = self.hooks.commit_msg(&message, &bench, &tmp, &cancel).await;
        match answer.map_err(not_run)? {
            Answer::Fine(message) => Ok(Hooked::Passed { message }),
            Answer::Refused(output) => Ok(Hooked::Refused {
                hook: "commit-msg".into(),
                output,
            }),
            Answer::Cancelled => Err(self.halted()),
        }
    }

    /// Asks the hooks about the base commit, which decides nothing: hooks that refuse everything should be known of
    /// before the night, not after it.
    pub(crate) async fn try_hooks(&mut self, tree: &Oid) -> Result<(), StopReason> {
        for hook in &self.hooks.hooks.not_executable {
            self.journal.note(Event::Notice {
                message: format!("{} is not executable, so it is passed over", hook.display()),
            });
        }
        if self.hooks.names().is_empty() {
            return Ok(());
        }
        let submission = Submission {
            summary: "describe the change in a line".into(),
            ..Submission::default()
        };
        let state = RunState {
            parent: Some(self.file.base.clone()),
            ..RunState::default()
        };
        let message = CommitMessage {
            iteration: 1,
            run_id: &self.file.run_id,
            submission: &submission,
            value: None,
            detail: "verify=true",
            format: self.plan.policy.commit_format,
        }
        .render();
        let subject = message.lines().next().unwrap_or_default().to_owned();
        let message = match self.ask_hooks(tree, message, true, &state).await? {
            Hooked::Passed { .. } => return Ok(()),
            Hooked::Changed(_) => {
                "the pre-commit hook changes files of the base commit itself; each commit will hold \
                                   what it makes of them"
                    .to_owned()
            }
            Hooked::Refused { hook, output } if hook == "commit-msg" => format!(
                "the commit-msg hook refuses a message such as `{subject}`, so it may refuse every commit; \
                 --commit-format conventional may help, --no-hooks passes hooks over: {}",
                output.trim()
            ),
            Hooked::Refused { hook, output } => format!(
                "the {hook} hook refuses the base commit itself, so it may refuse every commit; --no-hooks passes hooks \
                 over: {}",
                output.trim()
            ),
        };
        self.journal.note(Event::Notice { message });
        Ok(())
    }

    async fn taken_from_bench(&mut self, parent: &Oid) -> Result<Snapshot, StopReason> {
        let rules = SnapshotRules {
            max_file_bytes: self.plan.max_file_bytes,
        };
        let halt = self.halt.clone();
        tokio::select! {
            snapshot = self.bench.snapshot(parent, &rules) => snapshot.map_err(zone),
            () = halt.soft().cancelled() => Err(self.halted()),
        }
    }

    /// The locked files in which a tree differs from the base.
    pub(super) async fn tampered(&self, tree: &Oid) -> Result<Vec<String>, StopReason> {
        let changed = self.locked.changed(&self.zones, &self.file.base, tree).await;
        let changed = changed.map_err(|error| StopReason::environment(chain(&error)))?;
        Ok(changed
            .iter()
            .take(MAX_TAMPERED)
            .map(|path| path.display().to_string())
            .collect())
    }
}

fn not_run(error: HookError) -> StopReason {
    StopReason::environment(error)
}
