//! Keeps each file as it was before a robot's first `write` or `edit` of it, in the directory of the run. Whatever goes
//! wrong with that, the call goes on.

use super::files::Files;
use async_trait::async_trait;
use cap_std::ambient_authority;
use cap_std::fs::{Dir, OpenOptions};
use robot_lab::{Abort, Hook, HookCx, NextTool, ToolCall, ToolOutcome};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// The largest file that is kept, how many files of an iteration are, and how much they may be together, in bytes.
const MAX_FILE: usize = 1024 * 1024;
const MAX_FILES: usize = 200;
const MAX_TOTAL: usize = 16 * 1024 * 1024;
/// Iterations whose files are kept.
const MAX_ITERATIONS: usize = 20;

/// The hook.
pub(crate) struct Checkpoints {
    files: Arc<Files>,
    /// `checkpoints` in the directory of the run.
    place: PathBuf,
    iteration: u32,
    kept: Mutex<Kept>,
}

/// What was kept so far.
#[derive(Debug, Default)]
struct Kept {
    /// The iteration's directory, once there is something in it.
    dir: Option<Dir>,
    files: usize,
    bytes: usize,
}

impl Checkpoints {
    pub(crate) fn new(files: Arc<Files>, place: PathBuf, iteration: u32) -> Self {
        Self {
            files,
            place,
            iteration,
            kept: Mutex::default(),
        }
    }

    /// Keeps a file as it is now, unless that was done before in this iteration.
    fn keep(&self, path: &Path) -> io::Result<()> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.files >= MAX_FILES {
            return Ok(());
        }
        let is_new = !self.files.root.exists(path);
        let bytes = if is_new {
            Vec::new()
        } else {
            self.files.root.read(path).map_err(io::Error::other)?
        };
        if bytes.len() > MAX_FILE || kept.bytes + bytes.len() > MAX_TOTAL {
            return Ok(());
        }
        let dir = match kept.dir.take() {
            Some(dir) => dir,
            None => open(&self.place, self.iteration)?,
        };
        let dir = kept.dir.insert(dir);
        // A file that the robot made since is kept as absent, and stays so.
        let absent = with_end(path, ".absent");
        if dir.symlink_metadata(&absent).is_ok() {
            return Ok(());
        }
        if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            dir.create_dir_all(parent)?;
        }
        let mut options = OpenOptions::new();
        options.write(true).create_new(true);
        let name = if is_new { &absent } else { path };
        match dir.open_with(name, &options) {
            Ok(mut file) => {
                kept.files += 1;
                kept.bytes += bytes.len();
                file.write_all(&bytes)
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
            Err(error) => Err(error),
        }
    }
}

#[async_trait]
impl Hook for Checkpoints {
    fn name(&self) -> &'static str {
        "checkpoints"
    }

    async fn around_tool(
        &self,
        _cx: &HookCx<'_>,
        call: ToolCall,
        next: NextTool<'_>,
    ) -> Result<ToolOutcome, Abort> {
        if matches!(call.name.as_str(), "write" | "edit")
            && let Some(path) = self.files.named(&call)
        {
            // A copy for looking back at is not worth a call.
            drop(self.keep(&path));
        }
        next.run(call).await
    }
}

/// Opens the directory of an iteration, and removes those of the oldest ones.
fn open(place: &Path, iteration: u32) -> io::Result<Dir> {
    std::fs::create_dir_all(place)?;
    let place = Dir::open_ambient_dir(place, ambient_authority())?;
    let mut iterations: Vec<u32> = place
        .entries()?
        .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok())
        .filter(|known| *known != iteration)
        .collect();
    iterations.sort_unstable();
    let too_many = (iterations.len() + 1).saturating_sub(MAX_ITERATIONS);
    for old in iterations.iter().take(too_many) {
        place.remove_dir_all(old.to_string())?;
    }
    let name = iteration.to_string();
    place.create_dir_all(&name)?;
    place.open_dir(&name)
}

fn with_end(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools::Root;

    struct Lab {
        place: tempfile::TempDir,
        checkpoints: Checkpoints,
    }

    fn lab() -> Lab {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(place.path().join("ws/src")).unwrap();
        let root = Root::open(&place.path().join("ws"), "".as_ref(), "/none".as_ref()).unwrap();
        let files = Arc::new(Files::new(Arc::new(root)));
        let checkpoints = Checkpoints::new(files, place.path().join("checkpoints"), 7);
        Lab { place, checkpoints }
    }

    impl Lab {
        fn write(&self, path: &str, bytes: &[u8]) {
            std::fs::write(self.place.path().join("ws").join(path), bytes).unwrap();
        }

        fn keep(&self, path: &str) -> io::Result<()> {
            self.checkpoints.keep(Path::new(path))
        }

        fn kept(&self, path: &str) -> Option<Vec<u8>> {
            std::fs::read(self.place.path().join("checkpoints/7").join(path)).ok()
        }
    }

    #[test]
    fn a_file_is_kept_as_it_was_before_the_first_change_only() {
        let lab = lab();
        lab.write("src/a", b"one\xff");
        lab.keep("src/a").unwrap();
        lab.write("src/a", b"two");
        lab.keep("src/a").unwrap();
        lab.keep("src/new").unwrap();
        lab.write("src/new", b"three");
        lab.keep("src/new").unwrap();
        assert_eq!(lab.kept("src/a").as_deref(), Some(&b"one\xff"[..]));
        assert_eq!(lab.kept("src/new.absent").as_deref(), Some(&b""[..]));
        assert_eq!(lab.kept("src/new"), None);
    }

    #[test]
    fn what_is_too_large_or_too_much_is_not_kept() {
        let lab = lab();
        lab.write("large", &vec![0; MAX_FILE + 1]);
        lab.keep("large").unwrap();
        assert_eq!(lab.kept("large"), None);
        for n in 0..20 {
            lab.write(&format!("src/{n}"), &vec![0; MAX_FILE]);
            lab.keep(&format!("src/{n}")).unwrap();
        }
        let kept = (0..20)
            .filter(|n| lab.kept(&format!("src/{n}")).is_some())
            .count();
        assert_eq!(kept, MAX_TOTAL / MAX_FILE);
        for n in 0..300 {
            lab.keep(&format!("n{n}")).unwrap();
        }
        assert!(lab.checkpoints.kept.lock().unwrap().files <= MAX_FILES);
    }

    #[test]
    fn old_iterations_make_room() {
        let place = tempfile::tempdir().unwrap();
        std::fs::create_dir(place.path().join("not-a-number")).unwrap();
        for iteration in 1..=50 {
            drop(open(place.path(), iteration).unwrap());
        }
        let mut left: Vec<String> = std::fs::read_dir(place.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        left.sort();
        assert_eq!(left.len(), MAX_ITERATIONS + 1, "{left:?}");
        assert!(
            left.contains(&"31".to_owned()) && left.contains(&"50".to_owned()),
            "{left:?}"
        );
    }

    #[test]
    fn a_link_that_was_planted_leads_nowhere() {
        let lab = lab();
        lab.write("src/a", b"one");
        lab.keep("src/a").unwrap();
        let outside = lab.place.path().join("outside");
        std::fs::create_dir(&outside).unwrap();
        std::os::unix::fs::symlink(&outside, lab.place.path().join("checkpoints/7/planted")).unwrap();
        std::fs::create_dir(lab.place.path().join("ws/planted")).unwrap();
        lab.write("planted/b", b"two");
        assert!(lab.keep("planted/b").is_err());
        assert_eq!(std::fs::read_dir(outside).unwrap().count(), 0);
    }
}
