//! What a robot can do in its workspace: `read`, `write`, `edit`, `bash`, `submit_iteration_result`.

mod bash;
mod edit;
mod read;
mod root;
mod submit_result;
mod write;

pub use bash::Bash;
pub use edit::Edit;
pub use read::Read;
pub use root::Root;
pub use submit_result::{SUBMIT, Submissions, SubmitResult};
pub use write::Write;
