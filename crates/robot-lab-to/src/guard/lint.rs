//! Runs the user's check on each file that a robot changed, and tells the robot what it finds at once.

use super::files::Files;
use crate::shell::{Shell, head_and_tail};
use async_trait::async_trait;
use robot_exec::Stderr;
use robot_lab::{Abort, Hook, HookCx, NextTool, ToolCall, ToolOutcome, ToolPart};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

/// How long a check may take.
const TIMEOUT: Duration = Duration::from_secs(60);
/// Most bytes of what it prints that the robot is shown.
const MAX_OUTPUT: usize = 4_000;

/// The hook.
pub(crate) struct Lint {
    pub(crate) files: Arc<Files>,
    /// Runs it as the robot's `bash` runs commands.
    pub(crate) shell: Shell,
    /// The top of the workspace, and where the robot works in it.
    pub(crate) workspace: PathBuf,
    pub(crate) work_dir: PathBuf,
    pub(crate) command: String,
}

#[async_trait]
impl Hook for Lint {
    fn name(&self) -> &'static str {
        "lint"
    }

    async fn around_tool(
        &self,
        cx: &HookCx<'_>,
        call: ToolCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutcome, Abort> {
        let changes = matches!(call.name.as_str(), "write" | "edit");
        let path = changes.then(|| self.files.named(&call)).flatten();
        let outcome = next.run(call).await?;
        let (Some(path), ToolOutcome::Done(mut parts)) = (path, outcome.clone()) else {
            return Ok(outcome);
        };
        let file = argument(&self.workspace, &self.work_dir, &path);
        let ran = self
            .shell
            .run_on(
                &script(&self.command),
                &file,
                &self.work_dir,
                TIMEOUT,
                Stderr::Merged,
                cx.cancel,
            )
            .await;
        let said = match ran {
            Ok(output) if output.status.success() => return Ok(outcome),
            Ok(output) => format!(
                "the change was made, but the check of {} fails [{}]:\n{}",
                path.display(),
                output.status,
                head_and_tail(output.stdout.text().trim_end(), MAX_OUTPUT)
            ),
            Err(error) => format!("the change was made; the check of it could not be run: {error}"),
        };
        parts.push(ToolPart::text(said));
        Ok(ToolOutcome::Done(parts))
    }
}

/// The command with the first argument in the place of `{file}`. The file's name never becomes a part of the script, so
/// no name is a command; quotes around `{file}` do not matter.
fn script(command: &str) -> String {
    ["\"{file}\"", "'{file}'", "{file}"]
        .iter()
        .fold(command.to_owned(), |command, place| {
            command.replace(place, "\"$1\"")
        })
}

/// The file as the command is told it: from where it runs, and never like an option.
fn argument(workspace: &Path, work_dir: &Path, path: &Path) -> PathBuf {
    let whole = workspace.join(path);
    match whole.strip_prefix(work_dir) {
        Ok(below) if below.as_os_str().as_encoded_bytes().starts_with(b"-") => Path::new(".").join(below),
        Ok(below) => below.to_owned(),
        Err(_) => whole,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_of_a_file_is_no_part_of_the_script() {
        for (command, expected) in [
            ("check {file}", "check \"$1\""),
            ("check \"{file}\" '{file}'", "check \"$1\" \"$1\""),
            ("check --all", "check --all"),
        ] {
            assert_eq!(script(command), expected);
        }
    }

    #[test]
    fn a_file_is_named_from_where_the_command_runs() {
        let argument = |start: &str, path: &str| {
            let workspace = Path::new("/ws");
            argument(workspace, &workspace.join(start), Path::new(path))
        };
        assert_eq!(argument("", "src/a.rs"), Path::new("src/a.rs"));
        assert_eq!(argument("src", "src/a.rs"), Path::new("a.rs"));
        assert_eq!(argument("src", "b.rs"), Path::new("/ws/b.rs"));
        assert_eq!(argument("", "-rf"), Path::new("./-rf"));
    }
}
