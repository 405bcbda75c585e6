//! What belongs to sales and never changes: pictures and documents of events, each under the hash of its bytes.

use crate::domain::basics::bytes::Hash;

/// Most bytes of an attachment: an item of DynamoDB has 400 KB.
pub const MAX_ATTACHMENT_BYTES: usize = 256 * 1024;

/// What an attachment is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AttachmentKind {
    /// The document of an event.
    About,
    /// A JPEG picture.
    Jpeg,
}

impl AttachmentKind {
    /// Every kind, for tables and tests.
    pub const ALL: [Self; 2] = [Self::About, Self::Jpeg];

    /// The text in the database.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::About => "about",
            Self::Jpeg => "jpeg",
        }
    }

    /// The kind of a text; `None` if no kind has it.
    #[must_use]
    pub fn from_text(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == text)
    }
}

/// An attachment: some bytes of a kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Attachment {
    hash: Hash,
    /// What they are.
    pub kind: AttachmentKind,
    /// The bytes: at most [`MAX_ATTACHMENT_BYTES`].
    pub bytes: Vec<u8>,
}

impl Attachment {
    /// Some bytes of a kind, under their hash.
    #[must_use]
    pub fn new(kind: AttachmentKind, bytes: Vec<u8>) -> Self {
        Self { hash: Hash::of_parts(&[&bytes]), kind, bytes }
    }

    /// The SHA-256 of the bytes.
    #[must_use]
    pub fn hash(&self) -> Hash {
        self.hash
    }
}
