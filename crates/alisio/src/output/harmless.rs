//! Text from a model or a tool that can't move the cursor, colour the screen or hide what it says.

use std::borrow::Cow;

/// Replaces control characters and marks that reorder text by a visible form. Line feeds and tabs stay.
pub fn harmless(text: &str) -> Cow<'_, str> {
    if !text.chars().any(is_harmful) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '\r' => {}
            c if !is_harmful(c) => shown.push(c),
            c @ '\0'..='\x1f' => shown.push(char::from_u32(0x2400 + c as u32).unwrap_or('\u{fffd}')),
            '\x7f' => shown.push('\u{2421}'),
            c => shown.push_str(&format!("<U+{:04X}>", c as u32)),
        }
    }
    Cow::Owned(shown)
}

fn is_harmful(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t'))
        || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{61c}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_steers_a_terminal_gets_through() {
        for (text, shown) in [
            ("plain\n\ttext", "plain\n\ttext"),
            ("\x1b[2Jgone", "␛[2Jgone"),
            ("\x1b]8;;http://x\x07link", "␛]8;;http://x␇link"),
            ("a\r\nb", "a\nb"),
            ("over\rwritten", "overwritten"),
            ("\u{9b}31m", "<U+009B>31m"),
            ("abc\u{202e}cba", "abc<U+202E>cba"),
            ("del\x7f", "del␡"),
            ("日本 🙂", "日本 🙂"),
        ] {
            assert_eq!(harmless(text), shown);
        }
    }
}
