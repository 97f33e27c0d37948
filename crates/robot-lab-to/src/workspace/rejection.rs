//! Why a workspace cannot become a commit, in words for the robot.

use std::fmt;
use std::path::PathBuf;

/// One reason for a rejection; its text is fit for the robot.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejection {
    /// The path in the tree; empty for the whole directory.
    pub path: PathBuf,
    /// What is wrong with it.
    pub kind: RejectionKind,
}

/// What may not enter a commit.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RejectionKind {
    /// A git repository in the tree, or a submodule that was added or changed.
    NestedRepository,
    /// A file over the limit.
    TooLarge {
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// A FIFO, a socket or a device in place of a tracked file.
    Special,
    /// A symbolic link that is absolute, leaves the tree or leads into a git directory.
    LinkLeaves,
    /// Another path differs only in case.
    CaseCollision {
        /// That path.
        other: PathBuf,
    },
    /// A name that some systems take for `.git`.
    GitName,
    /// A file that was copied from the user's checkout.
    Copied,
    /// The workspace itself was deleted or replaced.
    Replaced,
    /// More paths than can be looked at.
    TooMany,
    /// Git refuses to add what is there.
    Refused {
        /// What it said.
        said: String,
    },
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let path = self.path.display();
        match &self.kind {
            RejectionKind::NestedRepository => {
                write!(
                    f,
                    "{path} is a git repository of its own; remove its .git, or the directory"
                )
            }
            RejectionKind::TooLarge { bytes, limit } => {
                write!(
                    f,
                    "{path} has {bytes} bytes, more than the {limit} allowed; remove it, or ignore it with .gitignore"
                )
            }
            RejectionKind::Special => write!(
                f,
                "{path} is a FIFO, socket or device; put a file there, or remove it"
            ),
            RejectionKind::LinkLeaves => write!(
                f,
                "{path} is a symbolic link out of the tree; link relatively, inside, with .. only at the start"
            ),
            RejectionKind::CaseCollision { other } => {
                write!(
                    f,
                    "{path} and {} are one path where case does not count; rename one",
                    other.display()
                )
            }
            RejectionKind::Copied => write!(
                f,
                "{path} was copied from the user's checkout, where it is ignored, and must never be committed; put it \
                 back, and the rule of .gitignore for it"
            ),
            RejectionKind::GitName => write!(f, "{path}: some systems take that name for .git; rename it"),
            RejectionKind::Replaced => {
                f.write_str("the workspace itself was deleted or replaced; work inside it")
            }
            RejectionKind::TooMany => {
                f.write_str("too many new files; remove them, or ignore them with .gitignore")
            }
            RejectionKind::Refused { said } => write!(f, "git cannot add the files: {said}"),
        }
    }
}

pub(super) fn rejected(path: impl Into<PathBuf>, kind: RejectionKind) -> Rejection {
    Rejection {
        path: path.into(),
        kind,
    }
}
