//! The cursors as DynamoDB keeps them: how far a provider's list was read, and who may say so.

use std::collections::BTreeMap;

use engine::domain::basics::ids::{ProviderId, ReaderId};
use engine::domain::basics::time::Timestamp;
use engine::domain::payment::captures::Cursor;
use engine::ports::{ChangeReply, CursorReply};

/// What is kept of one provider.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeptCursor {
    /// The cursor, once somebody has read.
    pub cursor: Option<Cursor>,
    /// The reader that has taken it last.
    pub reader: ReaderId,
    /// Until when nobody else may take it.
    pub until: Timestamp,
}

impl KeptCursor {
    /// The cursor with the time at which a callback asked for it.
    fn asked(cursor: Option<Cursor>, asked_at: Option<Timestamp>) -> Option<Cursor> {
        cursor.map(|cursor| Cursor { asked_at, ..cursor })
    }
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct CursorsModel {
    pub kept: BTreeMap<ProviderId, KeptCursor>,
    /// When callbacks last told of something to be read.
    pub asked: BTreeMap<ProviderId, Timestamp>,
}

impl CursorsModel {
    /// The cursor of a provider.
    #[must_use]
    pub fn cursor(&self, provider: &ProviderId) -> Option<Cursor> {
        let cursor = self.kept.get(provider)?.cursor.clone();
        KeptCursor::asked(cursor, self.asked.get(provider).copied())
    }

    /// Notes that a callback told of something to be read.
    pub fn ask(&mut self, provider: &ProviderId, now: Timestamp) {
        let asked = self.asked.entry(provider.clone()).or_insert(now);
        *asked = (*asked).max(now);
    }

    /// Takes the lease on a cursor, if nobody else has one at `now`.
    pub fn take(
        &mut self,
        provider: &ProviderId,
        reader: &ReaderId,
        now: Timestamp,
        until: Timestamp,
    ) -> CursorReply {
        let kept = self.kept.get(provider);
        if kept.is_some_and(|kept| kept.until > now && kept.reader != *reader) {
            return CursorReply::Held;
        }
        let cursor = kept.and_then(|kept| kept.cursor.clone());
        let kept = KeptCursor { cursor: cursor.clone(), reader: reader.clone(), until };
        self.kept.insert(provider.clone(), kept);
        CursorReply::Taken(KeptCursor::asked(cursor, self.asked.get(provider).copied()))
    }

    /// Writes a cursor, if this reader has taken it last.
    pub fn move_to(
        &mut self,
        provider: &ProviderId,
        reader: &ReaderId,
        cursor: &Cursor,
        until: Timestamp,
    ) -> ChangeReply {
        match self.kept.get_mut(provider).filter(|kept| kept.reader == *reader) {
            Some(kept) => {
                (kept.cursor, kept.until) = (KeptCursor::asked(Some(cursor.clone()), None), until);
                ChangeReply::Done
            }
            None => ChangeReply::Conflict,
        }
    }
}
