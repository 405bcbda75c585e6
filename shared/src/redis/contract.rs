//! The contract of a script: its keys, arguments and replies, as data.
//!
//! Each script's file beside this one has its contract, and the header of its file in `lua/` says the
//! same; a test reads the headers and fails on any difference. A call is checked against its contract
//! as it is built (in debug builds), a reply whenever it is read.

/// The type of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    /// Fields and values.
    Hash,
    /// Members by score.
    Zset,
    /// One bit a place.
    Bitmap,
    /// Numbers of 32 bits, one for each block of places.
    Counters,
    /// One text.
    String,
    /// Of any type: whatever an earlier load has left.
    Any,
}

/// The type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgKind {
    /// A text; every identifier is one.
    String,
    /// A decimal number.
    Integer,
    /// Bytes, one bit a place.
    Bitmap,
}

/// One key, or a group of keys.
///
/// A name such as `taken[line]` stands for one key of each line; those of one line follow one another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Key {
    /// Its name in the header.
    pub name: &'static str,
    /// The type of the value in Redis.
    pub kind: KeyKind,
}

/// One argument, or a group of arguments, named as keys are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arg {
    /// Its name in the header.
    pub name: &'static str,
    /// Its type.
    pub kind: ArgKind,
}

/// One reply: a tag and a fixed number of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReplyShape {
    /// The first element, which tells the replies of a script from each other.
    pub tag: &'static str,
    /// The names of the elements after the tag.
    pub values: &'static [&'static str],
}

/// The keys, arguments and replies of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Contract {
    /// The script's name: its file without `.lua`.
    pub script: &'static str,
    /// Its keys, in order.
    pub keys: &'static [Key],
    /// Its arguments, in order.
    pub args: &'static [Arg],
    /// Its replies.
    pub replies: &'static [ReplyShape],
}

pub(super) const fn key(name: &'static str, kind: KeyKind) -> Key {
    Key { name, kind }
}

pub(super) const fn string(name: &'static str) -> Arg {
    Arg { name, kind: ArgKind::String }
}

pub(super) const fn integer(name: &'static str) -> Arg {
    Arg { name, kind: ArgKind::Integer }
}

pub(super) const fn bitmap(name: &'static str) -> Arg {
    Arg { name, kind: ArgKind::Bitmap }
}

pub(super) const fn reply(tag: &'static str, values: &'static [&'static str]) -> ReplyShape {
    ReplyShape { tag, values }
}

pub(super) const SALE: Key = key("sale", KeyKind::Hash);
pub(super) const DUE: Key = key("due", KeyKind::Zset);
pub(super) const TIER_OF_LINE: Key = key("tier[line]", KeyKind::Hash);
pub(super) const TAKEN_OF_LINE: Key = key("taken[line]", KeyKind::Bitmap);
const SOLD_OF_LINE: Key = key("sold[line]", KeyKind::Bitmap);
/// The keys of a script that is given lines whose seats are known: it frees them, or is refused if any
/// were freed.
pub(super) const KEYS_OF_FREED_LINES: [Key; 6] =
    [SALE, DUE, TIER_OF_LINE, key("freed[line]", KeyKind::Counters), TAKEN_OF_LINE, SOLD_OF_LINE];

/// The number of groups that a name lies in: `epoch` in none, `taken[line]` in one.
fn depth(name: &str) -> usize {
    name.split_once('[').map_or(0, |(_, group)| group.split(',').count())
}

/// Takes from `given` what `named` allows, reading neighbours in deeper groups as blocks that occur
/// any number of times.
fn take<'g, 'n>(named: &[&str], level: usize, mut given: &'g [&'n str]) -> Option<&'g [&'n str]> {
    let mut rest = named;
    while let Some(first) = rest.first() {
        if depth(first) <= level {
            let (taken, others) = given.split_first()?;
            if taken != first {
                return None;
            }
            given = others;
            rest = &rest[1..];
            continue;
        }
        let group = |name: &str| {
            let groups = name.split_once('[').map_or("", |(_, group)| group);
            groups.trim_end_matches(']').split(',').nth(level).unwrap_or("").to_owned()
        };
        let is_same = |name: &&&str| depth(name) > level && group(name) == group(first);
        let (block, others) = rest.split_at(rest.iter().take_while(is_same).count());
        while given.first() == Some(first) {
            given = take(block, level + 1, given)?;
        }
        rest = others;
    }
    Some(given)
}

impl Contract {
    /// True if keys of these names, in this order, are what the script takes.
    #[must_use]
    pub fn takes_keys(&self, given: &[&str]) -> bool {
        let named: Vec<&str> = self.keys.iter().map(|key| key.name).collect();
        take(&named, 0, given).is_some_and(<[&str]>::is_empty)
    }

    /// True if arguments of these names, in this order, are what the script takes.
    #[must_use]
    pub fn takes_args(&self, given: &[&str]) -> bool {
        let named: Vec<&str> = self.args.iter().map(|arg| arg.name).collect();
        take(&named, 0, given).is_some_and(<[&str]>::is_empty)
    }

    /// True if the script may answer this tag with this number of values.
    #[must_use]
    pub fn answers(&self, tag: &str, values: usize) -> bool {
        self.replies.iter().any(|reply| reply.tag == tag && reply.values.len() == values)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::redis::{Scripts, hold, repair};

    /// What the header of a script says, line by line.
    fn header(source: &str) -> Vec<Vec<&str>> {
        let lines = source.lines().filter_map(|line| line.strip_prefix("--- @"));
        lines.map(|line| line.split_whitespace().collect()).collect()
    }

    /// The same lines as a contract would write them.
    fn written(contract: &Contract) -> Vec<Vec<String>> {
        let lower = |kind: &dyn std::fmt::Debug| format!("{kind:?}").to_lowercase();
        let line = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
        let mut lines = Vec::new();
        for key in contract.keys {
            lines.push(line(&["key", key.name, &lower(&key.kind)]));
        }
        for arg in contract.args {
            lines.push(line(&["arg", arg.name, &lower(&arg.kind)]));
        }
        for reply in contract.replies {
            lines.push(line(&[&["reply", reply.tag], reply.values].concat()));
        }
        lines
    }

    /// Where the header of a script and its contract differ.
    fn difference(source: &str, contract: &Contract) -> Option<String> {
        if !source.contains(&format!("--- {}.lua: ", contract.script)) {
            return Some("the title".to_owned());
        }
        let (header, written) = (header(source), written(contract));
        if header.len() != written.len() {
            return Some(format!("{} lines and {}", header.len(), written.len()));
        }
        let differs = |(said, meant): &(&Vec<&str>, &Vec<String>)| {
            // After the name and the kind of a key or an argument follows free text.
            let words = if meant[0] == "reply" { said.len() } else { said.len().min(3) };
            said[..words] != meant[..]
        };
        let first = header.iter().zip(&written).find(differs);
        first.map(|(said, meant)| format!("{said:?} and {meant:?}"))
    }

    #[test]
    fn every_header_says_what_its_contract_says() {
        for script in Scripts::standard().all() {
            let contract = script.contract();
            assert_eq!(difference(script.source(), contract), None, "{}.lua", contract.script);
            // The same comparison finds a difference when there is one.
            let source = script.source();
            for (said, instead) in [
                ("--- @key ", "--- @arg "),
                ("--- @arg ", "--- @reply "),
                ("--- @reply ", "--- @reply not_"),
                ("  hash  ", "  zset  "),
                ("--- ", "-- "),
            ]
            .into_iter()
            .filter(|(said, _)| source.contains(said))
            {
                let source = script.source().replacen(said, instead, 1);
                assert!(difference(&source, contract).is_some(), "{said:?} to {instead:?}");
            }
        }
    }

    #[test]
    fn every_reply_in_the_source_is_in_the_contract_and_the_other_way_round() {
        for script in Scripts::standard().all() {
            let contract = script.contract();
            let code = script.source().split("--- @").last().unwrap_or_default();
            for reply in contract.replies {
                let tag = format!("'{}'", reply.tag);
                let in_includes = script.source().contains(&tag);
                assert!(in_includes, "{}.lua never answers {tag}", contract.script);
            }
            for part in code.split("{ '").skip(1) {
                let before = code.split(part).next().unwrap_or_default();
                if !before.ends_with("return { '") && !before.ends_with("answer({ '") {
                    continue;
                }
                let tag = part.split('\'').next().unwrap_or_default();
                let known = contract.replies.iter().any(|reply| reply.tag == tag);
                assert!(known, "{}.lua answers {tag:?}, which its contract lacks", contract.script);
            }
        }
    }

    #[test]
    fn calls_are_read_group_by_group() {
        let head = ["sale", "due"];
        let line = ["tier[line]", "taken[line]"];
        let two = [&head[..], &line, &line].concat();
        assert!(hold::CONTRACT.takes_keys(&two));
        let one_bitmap_more = [&two[..], &["taken[line]"]].concat();
        assert!(!hold::CONTRACT.takes_keys(&one_bitmap_more));
        assert!(hold::CONTRACT.takes_keys(&head));
        assert!(!hold::CONTRACT.takes_keys(&head[1..]));
        let swapped = [&head[..], &["taken[line]", "tier[line]"]].concat();
        assert!(!hold::CONTRACT.takes_keys(&swapped));
        let legs = ["leg[leg]", "seats[leg]", "leg[leg]", "seats[leg]"];
        let head = ["epoch", "freed"];
        assert!(repair::CONTRACT.takes_args(&[&head[..], &legs].concat()));
        assert!(!repair::CONTRACT.takes_args(&[&head[..], &legs[..3]].concat()));
    }
}
