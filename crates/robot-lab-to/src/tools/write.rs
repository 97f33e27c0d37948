//! `write`: a whole file.

use super::Root;
use async_trait::async_trait;
use robot_lab::{Abort, ToolCx, ToolOutcome, TypedTool, counted};
use std::sync::Arc;

/// Writes files of the workspace.
pub struct Write(pub Arc<Root>);

/// What to write.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WriteArgs {
    /// File to write, relative to the working directory. Its directories are made as needed.
    #[serde(alias = "file_path")]
    path: String,
    /// The whole content of the file.
    content: String,
}

#[async_trait]
impl TypedTool for Write {
    type Args = WriteArgs;
    const NAME: &'static str = "write";
    const DESCRIPTION: &'static str =
        "Create a file, or replace an existing one as a whole. To change a part of a file, use edit.";

    async fn run(&self, args: WriteArgs, _cx: &ToolCx<'_>) -> Result<ToolOutcome, Abort> {
        Ok(write(&self.0, &args).map_or_else(ToolOutcome::Failed, ToolOutcome::text))
    }
}

fn write(root: &Root, args: &WriteArgs) -> Result<String, String> {
    let path = root.resolve(&args.path)?;
    let before = if root.exists(&path) {
        Some(root.read(&path)?)
    } else {
        None
    };
    root.write(&path, args.content.as_bytes())?;
    let new = args.content.lines().count();
    Ok(match before {
        None => format!("created {} ({})", path.display(), counted(new, "line")),
        Some(old) => {
            let old = old.split_inclusive(|byte| *byte == b'\n').count();
            let old = counted(old, "line");
            format!("replaced {} ({old} before, {new} now)", path.display())
        }
    })
}
