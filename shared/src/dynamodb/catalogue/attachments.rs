//! The attachments of sales: one item each, under the hash of its bytes, which never changes.

use aws_sdk_dynamodb::primitives::Blob;
use aws_sdk_dynamodb::types::AttributeValue;

use super::super::items::{Fields, Item, item, text};
use engine::domain::basics::bytes::Hash;
use engine::domain::sale::attachment::{Attachment, AttachmentKind, MAX_ATTACHMENT_BYTES};
use engine::ports::{StoreError, Stored};

/// The sort key of an attachment.
const SORT_KEY: &str = "attachment";

// An item has at most 400 KB.
const _: () = assert!(MAX_ATTACHMENT_BYTES + 1024 <= 400 * 1024);

/// The key of the attachment of a hash; no sale id has a `#`.
pub(super) fn key(hash: Hash) -> Item {
    item([("pk", text(format!("#attachment#{hash}"))), ("sk", text(SORT_KEY))])
}

/// The item of an attachment.
pub(super) fn write(attachment: &Attachment) -> Item {
    let mut written = key(attachment.hash());
    written.insert("kind".to_owned(), text(attachment.kind.as_str()));
    written.insert("data".to_owned(), AttributeValue::B(Blob::new(attachment.bytes.as_slice())));
    written
}

/// What an item says that its attachment is.
pub(super) fn read_kind(hash: Hash, item: &Item) -> Stored<AttachmentKind> {
    let kind: String = Fields::from_item(item).text("kind")?;
    AttachmentKind::from_text(&kind).ok_or_else(|| broken(hash, &kind))
}

/// The attachment of an item.
pub(super) fn read(hash: Hash, item: &Item) -> Stored<Attachment> {
    let kind = read_kind(hash, item)?;
    let data = item.get("data").and_then(|data| data.as_b().ok());
    let data = data.ok_or_else(|| broken(hash, "without data"))?;
    let attachment = Attachment::new(kind, data.as_ref().to_vec());
    if attachment.hash() == hash { Ok(attachment) } else { Err(broken(hash, "of other bytes")) }
}

fn broken(hash: Hash, what: &str) -> StoreError {
    StoreError::Contract(format!("catalogue: attachment {hash}: {what}"))
}
