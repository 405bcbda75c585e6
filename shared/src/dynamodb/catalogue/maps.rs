//! The map of a sale: compressed, in a partition of its own, so that only the function that shows the map reads it. Its
//! chunks are named after the publication that wrote them, as those of the file are.

use super::super::expressions::Value;
use super::super::items::{Fields, Item, number, text};
use super::copies;
use engine::domain::basics::bytes::MapHash;
use engine::domain::basics::ids::SaleId;
use engine::domain::sale::MapDocument;
use engine::ports::Stored;

/// The end of the expression that writes a header, if there is a map.
pub(super) const SET: &str = ", #map = :map, #map_of = :file, #map_chunks = :map_chunks";
/// The same if there is none.
pub(super) const REMOVE: &str = " REMOVE #map, #map_of, #map_chunks";

/// What a header says of the map that was published with its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct KeptMap {
    /// The hash of the document.
    pub hash: MapHash,
    pub chunks: usize,
}

/// The partition of a sale's map; no sale id has a `#`.
pub(super) fn partition(sale: &SaleId) -> String {
    format!("{sale}#map")
}

impl KeptMap {
    /// The map of the header of a file. A release that knows of no maps replaces the file and leaves what the
    /// header says of them: that is of another file.
    pub(super) fn from_header(fields: &Fields<'_>, file: &str) -> Stored<Option<Self>> {
        let of: Option<String> = fields.maybe_text("map_of")?;
        let kept = (fields.maybe_text("map")?, fields.maybe_number("map_chunks")?);
        Ok(match kept {
            (Some(hash), Some(chunks)) if of.as_deref() == Some(file) => {
                Some(Self { hash, chunks })
            }
            _ => None,
        })
    }

    /// The values of [`SET`].
    pub(super) fn values(&self) -> [Value; 2] {
        let chunks = i128::try_from(self.chunks).unwrap_or(i128::MAX);
        [("map", text(self.hash)), ("map_chunks", number(chunks))]
    }

    /// The document of the chunks; `None` if it is not whole.
    pub(super) fn document(&self, chunks: &[Item]) -> Option<MapDocument> {
        if chunks.len() != self.chunks {
            return None;
        }
        let json = String::from_utf8(copies::file_of(chunks)?).ok()?;
        let document = MapDocument::from_json(json);
        (document.hash == self.hash).then_some(document)
    }
}
