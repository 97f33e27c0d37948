//! `bash`: a shell command in the workspace.

use crate::shell::{Shell, head_and_tail};
use async_trait::async_trait;
use robot_exec::Stderr;
use robot_lab::{Abort, ToolCx, ToolOutcome, TypedTool, counted};
use std::path::PathBuf;
use std::time::Duration;

/// Seconds that a command gets unless it asks otherwise, and the most that it can ask for.
const DEFAULT_TIMEOUT: u64 = 120;
const MAX_TIMEOUT: u64 = 1_800;
/// Most bytes of one answer.
const MAX_OUTPUT: usize = 30_000;

/// Runs commands in the workspace.
pub struct Bash {
    /// The shell.
    pub shell: Shell,
    /// The working directory.
    pub dir: PathBuf,
}

/// What to run.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BashArgs {
    /// Shell command to run in the working directory.
    command: String,
    /// Seconds before the command is ended (default 120, at most 1800).
    #[serde(default)]
    timeout: Option<u64>,
}

#[async_trait]
impl TypedTool for Bash {
    type Args = BashArgs;
    const NAME: &'static str = "bash";
    const DESCRIPTION: &'static str = "Run a shell command. Returns its output and exit status. Standard input is \
                                       empty; processes that it leaves behind are ended when it returns.";

    async fn run(&self, args: BashArgs, cx: &ToolCx<'_>) -> Result<ToolOutcome, Abort> {
        let timeout = Duration::from_secs(args.timeout.unwrap_or(DEFAULT_TIMEOUT).clamp(1, MAX_TIMEOUT));
        let output = match self
            .shell
            .run(&args.command, &self.dir, timeout, Stderr::Merged, cx.cancel)
            .await
        {
            Ok(output) => output,
            Err(error) => return Ok(ToolOutcome::Failed(format!("the command was not run: {error}"))),
        };
        let mut text = format!("[{}]\n", output.status);
        if output.leaked > 0 {
            text.push_str(&format!(
                "[{} still ran and had to be ended]\n",
                counted(output.leaked, "process")
            ));
        }
        text.push_str(&head_and_tail(&output.stdout.text(), MAX_OUTPUT));
        Ok(ToolOutcome::text(text))
    }
}
