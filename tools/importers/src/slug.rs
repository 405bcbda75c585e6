//! Ids of our own, made from names that people gave.

/// Longest id that is made here: what a tier's id may have.
const LONGEST: usize = 32;

/// The slug of an ASCII name: lower case, with one `-` for whatever is neither letter nor digit.
///
/// `None` if the name is not ASCII or leaves nothing or too much: then the caller counts instead.
/// Other scripts are not transliterated, because two names could become one.
pub fn slug(name: &str) -> Option<String> {
    if !name.is_ascii() {
        return None;
    }
    let words: Vec<String> = name
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_ascii_lowercase)
        .collect();
    let slug = words.join("-");
    (1..=LONGEST).contains(&slug.len()).then_some(slug)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ascii_names_become_slugs() {
        assert_eq!(slug("Parkett vorne").as_deref(), Some("parkett-vorne"));
        assert_eq!(slug("  1st  Class (wide) ").as_deref(), Some("1st-class-wide"));
        for name in ["下層 一壘側", "Balkon Süd", "", "--", &"x".repeat(33)] {
            assert_eq!(slug(name), None, "{name:?}");
        }
    }
}
