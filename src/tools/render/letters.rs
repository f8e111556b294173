//! Letters with a colour each, in a table that measures its cells.
//!
//! The table takes an escape sequence for text and breaks its columns. So each letter stands in it as a noncharacter of Unicode, which is one
//! column wide and for a program's own use, and becomes the coloured letter when the table is text. `domain::text` lets none in from outside.
//!
//! Promises: the columns of a coloured table are those of the plain one.
//! Does not: know what a letter means.

use comfy_table::Color;

/// The noncharacters U+FDD0 to U+FDEF.
const FIRST: u32 = 0xFDD0;
const COUNT: u32 = 32;
const PLAIN: &str = "\u{1b}[39m";

/// The letters of one table, by the noncharacter that stands for each.
#[derive(Default)]
pub(super) struct Letters {
    known: Vec<(char, Color)>,
}

impl Letters {
    /// `text` with a stand-in for each of its letters; those that find none left stay plain.
    pub(super) fn stand_ins(&mut self, text: &str, colours: &[Color]) -> String {
        text.chars().zip(colours).map(|(letter, colour)| self.stand_in(letter, *colour).unwrap_or(letter)).collect()
    }

    fn stand_in(&mut self, letter: char, colour: Color) -> Option<char> {
        let index = self.known.iter().position(|known| *known == (letter, colour)).unwrap_or_else(|| {
            self.known.push((letter, colour));
            self.known.len() - 1
        });
        u32::try_from(index).ok().filter(|index| *index < COUNT).and_then(|index| char::from_u32(FIRST + index))
    }

    fn letter(&self, stand_in: char) -> Option<(char, Color)> {
        let index = u32::from(stand_in).checked_sub(FIRST).filter(|index| *index < COUNT)?;
        self.known.get(usize::try_from(index).ok()?).copied()
    }

    /// `line` with the letters in place of their stand-ins.
    pub(super) fn painted(&self, line: &str) -> String {
        let mut out = String::with_capacity(line.len());
        let mut colour = None;
        for character in line.chars() {
            let letter = self.letter(character);
            let wanted = letter.map(|(_, colour)| colour);
            if wanted != colour {
                out.push_str(&wanted.map_or_else(|| PLAIN.to_owned(), sequence));
                colour = wanted;
            }
            out.push(letter.map_or(character, |(letter, _)| letter));
        }
        if colour.is_some() {
            out.push_str(PLAIN);
        }
        out
    }
}

/// The sequence that the table itself writes for a colour of the palette.
fn sequence(colour: Color) -> String {
    let number = match colour {
        Color::Red => 9,
        Color::Green => 10,
        Color::Yellow => 11,
        Color::Magenta => 13,
        Color::DarkGrey => 8,
        _ => 7,
    };
    format!("\u{1b}[38;5;{number}m")
}
