//! The contract of a script: its keys, arguments and replies, as the header of its file in `lua/` names them.
//!
//! A call is checked against the contract as it is built (in debug builds), a reply whenever it is read.

/// The type of a key's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeyKind {
    Hash,
    Zset,
    /// One bit a place.
    Bitmap,
    /// Numbers of 32 bits, one for each block of places.
    Counters,
    String,
    /// Of any type: whatever an earlier load has left.
    Any,
}

/// The type of an argument.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ArgKind {
    /// A text; every identifier is one.
    String,
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
    pub kind: ArgKind,
}

/// One reply: a tag and a fixed number of values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReplyShape {
    /// The first element, which tells the replies of a script from each other.
    pub tag: &'static str,
    /// The names of the elements after the tag.
    pub values: Vec<&'static str>,
}

/// The keys, arguments and replies of a script.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contract {
    /// The script's name: its file without `.lua`.
    pub script: &'static str,
    /// Its keys, in order.
    pub keys: Vec<Key>,
    /// Its arguments, in order.
    pub args: Vec<Arg>,
    pub replies: Vec<ReplyShape>,
}

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

impl KeyKind {
    fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "hash" => Self::Hash,
            "zset" => Self::Zset,
            "bitmap" => Self::Bitmap,
            "counters" => Self::Counters,
            "string" => Self::String,
            "any" => Self::Any,
            _ => return None,
        })
    }
}

impl ArgKind {
    fn from_word(word: &str) -> Option<Self> {
        Some(match word {
            "string" => Self::String,
            "integer" => Self::Integer,
            "bitmap" => Self::Bitmap,
            _ => return None,
        })
    }
}

impl Contract {
    /// Reads the header of a script: after its title `--- NAME.lua: …` a line for each part, `--- @key NAME KIND`,
    /// `--- @arg NAME KIND`, both with free text behind, and `--- @reply TAG VALUE…`.
    ///
    /// # Errors
    /// Fails with the line that cannot be read, if there is no title, no reply, or a part before those of its kind
    /// that stand before it.
    pub(super) fn from_header(source: &'static str) -> Result<Self, String> {
        let title = |line: &'static str| line.strip_prefix("--- ")?.split_once(".lua: ");
        let script = source.lines().rev().find_map(title).ok_or("a script has no title")?.0;
        let mut read = Self { script, keys: Vec::new(), args: Vec::new(), replies: Vec::new() };
        for line in source.lines().filter_map(|line| line.strip_prefix("--- @")) {
            read.add(line).ok_or_else(|| format!("{script}.lua: --- @{line}"))?;
        }
        if read.replies.is_empty() {
            return Err(format!("{script}.lua answers nothing"));
        }
        Ok(read)
    }

    /// Takes a line of the header, without its mark.
    fn add(&mut self, line: &'static str) -> Option<()> {
        let mut words = line.split_whitespace();
        let (part, name) = (words.next()?, words.next()?);
        match part {
            "key" if self.args.is_empty() && self.replies.is_empty() => {
                self.keys.push(Key { name, kind: KeyKind::from_word(words.next()?)? });
            }
            "arg" if self.replies.is_empty() => {
                self.args.push(Arg { name, kind: ArgKind::from_word(words.next()?)? });
            }
            "reply" => self.replies.push(ReplyShape { tag: name, values: words.collect() }),
            _ => return None,
        }
        Some(())
    }

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
    use crate::redis::Scripts;

    /// A header as a script may have it.
    const HEADER: &str = "--- names.lua: what keys are called.\nlocal x = 1\n--- mark.lua: mark seats.\n\
        --- @key   sale           hash    loaded\n--- @key   taken[line]    bitmap\n\
        --- @arg   order          string\n--- @arg   lost           integer of seats\n\
        --- @reply marked         tier seats\n--- @reply not_held\nreturn { 'marked' }";

    #[test]
    fn a_header_is_read() {
        let read = Contract::from_header(HEADER).unwrap();
        let keys = [("sale", KeyKind::Hash), ("taken[line]", KeyKind::Bitmap)];
        let args = [("order", ArgKind::String), ("lost", ArgKind::Integer)];
        let replies = [("marked", vec!["tier", "seats"]), ("not_held", Vec::new())];
        let expected = Contract {
            script: "mark",
            keys: keys.map(|(name, kind)| Key { name, kind }).into(),
            args: args.map(|(name, kind)| Arg { name, kind }).into(),
            replies: replies.map(|(tag, values)| ReplyShape { tag, values }).into(),
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn a_header_that_says_too_little_is_refused() {
        for (said, instead, fault) in [
            ("--- mark.lua: ", "-- ", None),
            ("  hash  ", "  list  ", Some("mark.lua: --- @key")),
            ("  integer", "  bitmaps", Some("mark.lua: --- @arg")),
            ("--- @key   taken", "--- @kay   taken", Some("mark.lua: --- @kay")),
            (
                "--- @arg   lost           integer of seats",
                "--- @arg   lost",
                Some("mark.lua: --- @arg"),
            ),
            (
                "--- @arg   order          string\n",
                "--- @reply early\n--- @arg   order  string\n",
                Some("mark.lua: --- @arg"),
            ),
            ("--- @reply", "-- @reply", Some("mark.lua answers nothing")),
        ] {
            let source: &'static str = HEADER.replace(said, instead).leak();
            let read = Contract::from_header(source).map(|read| read.script);
            match fault {
                // The title of an include stands for that of a script without one.
                None => assert_eq!(read, Ok("names")),
                Some(fault) => assert!(read.unwrap_err().starts_with(fault), "{fault}"),
            }
        }
    }

    #[test]
    fn every_header_can_be_read_and_names_its_script() {
        let scripts = Scripts::standard();
        let names: Vec<&str> = scripts.all().map(|script| script.contract().script).into();
        let expected = [
            "load",
            "hold",
            "sell",
            "unsell",
            "release",
            "mark",
            "restore",
            "repair",
            "recount",
            "admit",
            "add_tokens",
            "unlock",
        ];
        assert_eq!(names, expected);
    }

    #[test]
    fn every_reply_in_the_source_is_in_the_contract_and_the_other_way_round() {
        for script in Scripts::standard().all() {
            let contract = script.contract();
            let code = script.source().split("--- @").last().unwrap_or_default();
            for reply in &contract.replies {
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
        let scripts = Scripts::standard();
        let (hold, repair) = (scripts.hold.contract(), scripts.repair.contract());
        let head = ["sale", "due"];
        let line = ["tier[line]", "taken[line]", "middles[line]"];
        let two = [&head[..], &line, &line].concat();
        assert!(hold.takes_keys(&two));
        let one_key_more = [&two[..], &line[..1]].concat();
        assert!(!hold.takes_keys(&one_key_more));
        assert!(hold.takes_keys(&head));
        assert!(!hold.takes_keys(&head[1..]));
        let swapped = [&head[..], &["taken[line]", "tier[line]", "middles[line]"]].concat();
        assert!(!hold.takes_keys(&swapped));
        let legs = ["leg[leg]", "seats[leg]", "leg[leg]", "seats[leg]"];
        let head = ["epoch", "freed"];
        assert!(repair.takes_args(&[&head[..], &legs].concat()));
        assert!(!repair.takes_args(&[&head[..], &legs[..3]].concat()));
    }
}
