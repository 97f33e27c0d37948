//! The user's `pre-commit` and `commit-msg` hooks as the last gate before a commit. They run as the verify command
//! does, on the files of the bench, in a throw-away git directory.

use crate::commit_message::edited;
use crate::shell::{Shell, head_and_tail};
use crate::workspace::{Identity, UserHooks};
use robot_exec::{ExecError, Status};
use std::fs::{self, OpenOptions};
use std::io::{self, Read as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::Duration;
use tokio_util::sync::CancellationToken;

/// Bytes of what a hook printed that a robot is shown.
const MAX_OUTPUT: usize = 4_000;
/// Bytes of the file of the message that are read back.
const MAX_MESSAGE: u64 = 256 * 1024;

/// The hooks, and how they are run.
#[derive(Clone, Debug)]
pub struct GitHooks {
    /// Where they are; none of them with `--no-hooks`.
    pub hooks: UserHooks,
    /// What runs them.
    pub shell: Shell,
    /// How long one may take.
    pub timeout: Duration,
    /// Who commits, as git tells hooks.
    pub identity: Identity,
}

/// Why a hook could not be asked.
#[derive(Debug, thiserror::Error)]
pub enum HookError {
    /// It could not be started.
    #[error("a hook could not be started: {0}")]
    Start(#[from] ExecError),
    /// The file of the message could not be made.
    #[error("the file for the commit-msg hook could not be made: {0}")]
    Message(#[from] io::Error),
}

/// What a hook says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// It lets the commit through, with this message.
    Fine(String),
    /// It refuses, and printed this.
    Refused(String),
    /// It was ended because the run ends.
    Cancelled,
}

impl GitHooks {
    /// The names of those that are there.
    pub fn names(&self) -> Vec<String> {
        let named = [
            ("pre-commit", &self.hooks.pre_commit),
            ("commit-msg", &self.hooks.commit_msg),
        ];
        named
            .into_iter()
            .filter(|(_, path)| path.is_some())
            .map(|(name, _)| name.to_owned())
            .collect()
    }

    /// Asks the pre-commit hook about the files in `dir`. An empty text when it lets them through.
    pub async fn pre_commit(&self, dir: &Path, cancel: &CancellationToken) -> Result<Answer, HookError> {
        match &self.hooks.pre_commit {
            None => Ok(Answer::Fine(String::new())),
            Some(hook) => self.ask(hook, &[], dir, cancel).await,
        }
    }

    /// Asks the commit-msg hook about a message, and takes what it made of it. `tmp` is a directory for its file.
    pub async fn commit_msg(
        &self,
        message: &str,
        dir: &Path,
        tmp: &Path,
        cancel: &CancellationToken,
    ) -> Result<Answer, HookError> {
        let Some(hook) = &self.hooks.commit_msg else {
            return Ok(Answer::Fine(message.to_owned()));
        };
        let own = tempfile::Builder::new().prefix("message-").tempdir_in(tmp);
        let own = own?;
        let file = own.path().join("COMMIT_EDITMSG");
        fs::write(&file, message)?;
        match self.ask(hook, &[&file], dir, cancel).await? {
            Answer::Fine(_) => Ok(match read_back(&file) {
                Ok(text) => match edited(message, &text) {
                    Some(message) => Answer::Fine(message),
                    None => Answer::Refused("it left an empty message".into()),
                },
                Err(error) => Answer::Refused(format!("its message cannot be read: {error}")),
            }),
            other => Ok(other),
        }
    }

    async fn ask(
        &self,
        hook: &Path,
        args: &[&Path],
        dir: &Path,
        cancel: &CancellationToken,
    ) -> Result<Answer, HookError> {
        let Identity { name, email } = &self.identity;
        let index = dir.join(".git/index");
        let vars = [
            ("GIT_INDEX_FILE", index.as_os_str()),
            ("GIT_EDITOR", ":".as_ref()),
            ("GIT_PREFIX", "".as_ref()),
            ("GIT_AUTHOR_NAME", name.as_ref()),
            ("GIT_AUTHOR_EMAIL", email.as_ref()),
            ("GIT_COMMITTER_NAME", name.as_ref()),
            ("GIT_COMMITTER_EMAIL", email.as_ref()),
        ];
        let output = self
            .shell
            .execute(hook, args, &vars, dir, self.timeout, cancel)
            .await?;
        Ok(match output.status {
            Status::Cancelled => Answer::Cancelled,
            status if status.success() => Answer::Fine(String::new()),
            status => {
                let said = head_and_tail(&output.stdout.text(), MAX_OUTPUT);
                Answer::Refused(format!("{status}\n{said}"))
            }
        })
    }
}

/// The message as the hook left it: a plain file, without following a link to something else.
fn read_back(file: &Path) -> io::Result<String> {
    let flags = rustix::fs::OFlags::NOFOLLOW | rustix::fs::OFlags::NONBLOCK;
    let flags = i32::try_from(flags.bits()).unwrap_or_default();
    let open = OpenOptions::new().read(true).custom_flags(flags).open(file)?;
    if !open.metadata()?.is_file() {
        return Err(io::Error::other("it is no regular file"));
    }
    let mut bytes = Vec::new();
    open.take(MAX_MESSAGE).read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}
