//! Where the file tools work: paths are resolved inside the workspace, and lead nowhere else.

use cap_std::ambient_authority;
use cap_std::fs::{Dir, File, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Component, Path, PathBuf};

/// Largest file that the tools read, in bytes.
pub(super) const MAX_FILE: u64 = 32 * 1024 * 1024;

/// The workspace as the file tools see it.
#[derive(Debug)]
pub struct Root {
    dir: Dir,
    /// Names under which the same tree is known: the workspace itself, and the user's checkout.
    known_as: Vec<PathBuf>,
    /// The directory, relative to the workspace, that relative paths start from.
    start: PathBuf,
}

impl Root {
    /// Opens a workspace. `start` is where relative paths start, relative to the workspace; a path in `user_top` means
    /// the same file in the workspace.
    pub fn open(workspace: &Path, start: &Path, user_top: &Path) -> io::Result<Self> {
        let dir = Dir::open_ambient_dir(workspace, ambient_authority())?;
        let mut known_as = vec![workspace.to_owned(), user_top.to_owned()];
        known_as.extend(workspace.canonicalize().ok());
        Ok(Self {
            dir,
            known_as,
            start: start.to_owned(),
        })
    }

    /// The path inside the workspace that `path` names, or why it names none. Only names are looked at here; links are
    /// followed by the operating system, which refuses to leave the workspace.
    pub(crate) fn resolve(&self, path: &str) -> Result<PathBuf, String> {
        if path.is_empty() || path.contains('\0') {
            return Err("the path is empty or holds a NUL byte".into());
        }
        let path = Path::new(path);
        let inside = if path.is_absolute() {
            let known = self.known_as.iter().find_map(|name| path.strip_prefix(name).ok());
            match (known, path.components().count()) {
                (Some(rest), _) => rest.to_owned(),
                // `/name` without a directory is what weak models write for `name`.
                (None, 2) => path
                    .strip_prefix("/")
                    .map(|name| self.start.join(name))
                    .unwrap_or_default(),
                (None, _) => return Err(outside(path)),
            }
        } else {
            self.start.join(path)
        };
        let mut resolved = PathBuf::new();
        for component in inside.components() {
            match component {
                Component::Normal(name) => resolved.push(name),
                Component::CurDir => {}
                Component::ParentDir if resolved.pop() => {}
                Component::ParentDir | Component::RootDir | Component::Prefix(_) => {
                    return Err(outside(path));
                }
            }
        }
        match resolved.components().next() {
            None => Err("the path names the workspace itself, not a file".into()),
            Some(Component::Normal(name)) if name == ".git" => {
                Err("`.git` is not part of the work; use bash for git".into())
            }
            Some(_) => Ok(resolved),
        }
    }

    /// The path that a file has without links; the path itself where nothing is there.
    pub(crate) fn real(&self, path: &Path) -> PathBuf {
        self.dir.canonicalize(path).unwrap_or_else(|_| path.to_owned())
    }

    /// Reads a whole regular file.
    pub(crate) fn read(&self, path: &Path) -> Result<Vec<u8>, String> {
        let say = |error: io::Error| explain(path, &error);
        let metadata = self.dir.metadata(path).map_err(say)?;
        if metadata.is_dir() {
            return Err(format!("{} is a directory; list it with bash", path.display()));
        }
        if !metadata.is_file() {
            return Err(format!("{} is not a regular file", path.display()));
        }
        if metadata.len() > MAX_FILE {
            let (size, max) = (metadata.len(), MAX_FILE);
            return Err(format!(
                "{} has {size} bytes, more than {max}; look at parts with bash",
                path.display()
            ));
        }
        let mut bytes = Vec::new();
        let file: File = self.dir.open(path).map_err(say)?;
        file.take(MAX_FILE).read_to_end(&mut bytes).map_err(say)?;
        Ok(bytes)
    }

    /// Writes a whole file, making its directories; an existing file keeps its mode.
    pub(crate) fn write(&self, path: &Path, bytes: &[u8]) -> Result<(), String> {
        let say = |error: io::Error| explain(path, &error);
        match self.dir.metadata(path) {
            Ok(metadata) if !metadata.is_file() => {
                return Err(format!(
                    "{} is there already and is not a regular file",
                    path.display()
                ));
            }
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if let Some(parent) = path.parent().filter(|parent| !parent.as_os_str().is_empty()) {
                    self.dir.create_dir_all(parent).map_err(say)?;
                }
            }
            Err(error) => return Err(say(error)),
        }
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(true);
        let mut file = self.dir.open_with(path, &options).map_err(say)?;
        io::Write::write_all(&mut file, bytes).map_err(say)
    }

    /// Removes a file.
    pub(crate) fn remove(&self, path: &Path) -> Result<(), String> {
        self.dir.remove_file(path).map_err(|error| explain(path, &error))
    }

    /// Bytes of a file that is there.
    pub(crate) fn size(&self, path: &Path) -> Option<u64> {
        self.dir.metadata(path).ok().map(|metadata| metadata.len())
    }

    /// Whether something is there.
    pub(crate) fn exists(&self, path: &Path) -> bool {
        self.dir.symlink_metadata(path).is_ok()
    }
}

fn outside(path: &Path) -> String {
    format!(
        "{} is outside the workspace; use paths relative to the workspace",
        path.display()
    )
}

fn explain(path: &Path, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("{}: no such file", path.display()),
        io::ErrorKind::PermissionDenied if error.raw_os_error().is_none() => outside(path),
        _ => format!("{}: {error}", path.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn root(start: &str) -> (tempfile::TempDir, Root) {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("ws/sub")).unwrap();
        std::fs::write(dir.path().join("secret"), "s").unwrap();
        let root = Root::open(
            &dir.path().join("ws"),
            Path::new(start),
            Path::new("/home/me/project"),
        )
        .unwrap();
        (dir, root)
    }

    #[test]
    fn paths_mean_files_of_the_workspace_or_nothing() {
        let (dir, root) = root("sub");
        let absolute = dir.path().join("ws/a/b").display().to_string();
        for (path, expected) in [
            ("x", "sub/x"),
            ("./a//b", "sub/a/b"),
            ("../x", "x"),
            ("/x", "sub/x"),
            (absolute.as_str(), "a/b"),
            ("/home/me/project/src/x", "src/x"),
        ] {
            assert_eq!(root.resolve(path).unwrap(), Path::new(expected), "{path}");
        }
        for path in [
            "",
            "..",
            "../..",
            "../../secret",
            "/etc/passwd",
            "a\0b",
            "../.git/config",
            "/home/me/other",
        ] {
            assert!(root.resolve(path).is_err(), "{path}");
        }
    }

    #[test]
    fn case_161_links_and_special_files_do_not_lead_out() {
        let (dir, root) = root("");
        let ws = dir.path().join("ws");
        std::os::unix::fs::symlink("../secret", ws.join("link")).unwrap();
        std::os::unix::fs::symlink(dir.path(), ws.join("dir")).unwrap();
        std::process::Command::new("mkfifo")
            .arg(ws.join("fifo"))
            .status()
            .unwrap();
        for path in ["link", "dir/secret", "fifo", "sub", "missing"] {
            assert!(root.read(Path::new(path)).is_err(), "{path}");
        }
        for path in ["link", "dir/new", "fifo", "sub"] {
            assert!(root.write(Path::new(path), b"x").is_err(), "{path}");
        }
        assert_eq!(std::fs::read(dir.path().join("secret")).unwrap(), b"s");
        assert!(!dir.path().join("new").exists());
        root.write(Path::new("new/deep/file"), b"x").unwrap();
        assert_eq!(root.read(Path::new("new/deep/file")).unwrap(), b"x");
    }
}
