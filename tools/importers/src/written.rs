//! How a sale file is written: one row of seats, one fare, one stop a line.
//!
//! A file of seven thousand seats is read by people and compared by version control; a line for
//! each seat would hide its rows, and one line in all everything.

use engine::domain::sale::SaleFile;

/// The file as text, ending with a newline.
#[must_use]
pub fn written(file: &SaleFile) -> String {
    let compact = serde_json::to_string(file)
        .unwrap_or_else(|error| unreachable!("a sale file is always JSON: {error}"));
    let mut text = String::with_capacity(compact.len() * 2);
    write(&compact, 0, &mut text);
    text.push('\n');
    text
}

/// Writes one value of compact JSON: on one line if no list of containers is in it.
fn write(value: &str, indent: usize, text: &mut String) {
    if !has_list_of_containers(value) {
        return write_line(value, text);
    }
    let is_object = value.starts_with('{');
    text.push(if is_object { '{' } else { '[' });
    for (index, member) in members(value).into_iter().enumerate() {
        text.push_str(if index == 0 { "\n" } else { ",\n" });
        text.extend(std::iter::repeat_n(' ', indent + 2));
        let value = if is_object {
            let (key, value) = member.split_at(end_of_string(member));
            text.push_str(key);
            text.push_str(": ");
            value.strip_prefix(':').unwrap_or(value)
        } else {
            member
        };
        write(value, indent + 2, text);
    }
    text.push('\n');
    text.extend(std::iter::repeat_n(' ', indent));
    text.push(if is_object { '}' } else { ']' });
}

/// Writes compact JSON on one line, with a blank after each comma and colon.
fn write_line(value: &str, text: &mut String) {
    let mut in_string = InString::default();
    for letter in value.chars() {
        text.push(letter);
        if !in_string.after(letter) && matches!(letter, ',' | ':') {
            text.push(' ');
        }
    }
}

fn has_list_of_containers(value: &str) -> bool {
    let mut in_string = InString::default();
    let mut opened = false;
    value.chars().any(|letter| {
        let outside = !in_string.after(letter);
        let found = opened && outside && matches!(letter, '{' | '[');
        opened = outside && letter == '[';
        found
    })
}

/// The members of a container, each still compact JSON.
fn members(container: &str) -> Vec<&str> {
    let inner = &container[1..container.len() - 1];
    let mut in_string = InString::default();
    let (mut depth, mut start) = (0_usize, 0);
    let mut members = Vec::new();
    for (index, letter) in inner.char_indices() {
        if in_string.after(letter) {
            continue;
        }
        match letter {
            '{' | '[' => depth += 1,
            '}' | ']' => depth -= 1,
            ',' if depth == 0 => {
                members.push(&inner[start..index]);
                start = index + 1;
            }
            _ => {}
        }
    }
    members.push(&inner[start..]);
    members
}

/// The index after the string that a text begins with.
fn end_of_string(text: &str) -> usize {
    let mut in_string = InString::default();
    let last = text.char_indices().find(|(_, letter)| !in_string.after(*letter));
    last.map_or(text.len(), |(index, _)| index + 1)
}

/// State of a scan: inside or outside of a JSON string.
#[derive(Default)]
struct InString {
    inside: bool,
    escaped: bool,
}

impl InString {
    /// Takes the next character; true if what follows it is still inside a string. A closing quote
    /// is outside, an opening one inside.
    fn after(&mut self, letter: char) -> bool {
        if self.escaped {
            self.escaped = false;
        } else if self.inside && letter == '\\' {
            self.escaped = true;
        } else if letter == '"' {
            self.inside = !self.inside;
        }
        self.inside
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_a_line_and_nothing_is_changed() {
        let text = r#"{
  "sale": "s",
  "title": "a \"[{\", b: \\",
  "currency": "EUR",
  "opens_at": "2026-01-01T00:00:00.000Z",
  "closes_at": "2027-01-01T00:00:00.000Z",
  "state": "open",
  "limit_per_buyer": 5,
  "pay_window_seconds": 60,
  "attendees": "optional",
  "gate": {"shards": 4, "budget_percent": 75, "rate_per_second": 2000, "user_lock_ms": 5000, "token_seconds": 300},
  "tiers": [
    {"tier": "floor", "name": "Floor", "price_minor": 1, "general_admission": 9},
    {
      "tier": "a",
      "name": "A",
      "price_minor": 2,
      "sections": [
        {
          "section": "1",
          "rows": [
            {"row": "1", "seats": ["1-1", null, "1-2"]},
            {"row": "2", "seats": {"prefix": "2-", "first": 1, "count": 9}}
          ]
        }
      ]
    }
  ]
}
"#;
        let file: SaleFile = serde_json::from_str(text).unwrap();
        assert_eq!(written(&file), text);
    }
}
