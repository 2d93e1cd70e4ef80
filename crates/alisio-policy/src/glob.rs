//! Anchored globs: `*` is any run of characters, `?` is one, everything else stands for itself.
//!
//! A text that a model wrote must never hold up the gate, so a match takes a number of steps that is the length of the text
//! times a small constant: each piece between two stars is looked for once, from where the one before it ended, with all
//! its positions held in the bits of a word (shift-and). There is no escape, no class, no folding, on purpose: a pattern
//! means in this program what it means in every other one that reads the same policy.

use std::fmt;
use std::sync::Arc;

/// Bits of a word.
const BITS: usize = 64;
/// How many pairs of bytes of a pattern are looked up in a text before anything else.
const PAIRS: usize = 4;

/// A compiled pattern. Two are equal when their texts are. What most comparisons need lies in the value itself, so that
/// going through many of them touches little memory.
#[derive(Clone)]
pub struct Glob {
    inner: Arc<Inner>,
    /// A number that equal texts share.
    hash: u32,
    /// Pairs of bytes that every text has which the pattern matches; the rest is [`NO_PAIR`].
    pairs: [u16; PAIRS],
    is_literal: bool,
    is_universal: bool,
    has_operator: bool,
}

struct Inner {
    text: Box<str>,
    /// What stands before the first star; all there is where `has_star` is false.
    head: Vec<Token>,
    /// What stands between stars, empty pieces left out.
    middle: Vec<Search>,
    /// What stands behind the last star.
    tail: Vec<Token>,
    has_star: bool,
    characters: Box<[char]>,
}

/// Stands for no pair.
const NO_PAIR: u16 = u16::MAX;

/// One place of a piece: a character, or `None` for any.
type Token = Option<char>;

impl Glob {
    /// Compiles a pattern; every text is one.
    pub fn new(text: &str) -> Self {
        let token = |c: char| (c != '?').then_some(c);
        let mut pieces: Vec<Vec<Token>> =
            text.split('*').map(|piece| piece.chars().map(token).collect()).collect();
        let has_star = pieces.len() > 1;
        let tail = if has_star { pieces.pop().unwrap_or_default() } else { Vec::new() };
        let head = if pieces.is_empty() { Vec::new() } else { pieces.remove(0) };
        let middle =
            pieces.iter().filter(|piece| !piece.is_empty()).map(|piece| Search::new(piece)).collect();
        let inner =
            Inner { text: text.into(), head, middle, tail, has_star, characters: text.chars().collect() };
        Self {
            inner: Arc::new(inner),
            hash: hash_of(text),
            pairs: required_pairs(text),
            is_literal: !text.contains(['*', '?']),
            is_universal: has_star && text.bytes().all(|byte| byte == b'*'),
            has_operator: text.contains(['|', ';', '&', '\n']),
        }
    }

    /// Returns the pattern as it was written.
    pub fn as_str(&self) -> &str {
        &self.inner.text
    }

    /// Says whether it matches every text.
    pub fn is_universal(&self) -> bool {
        self.is_universal
    }

    /// Says whether it has neither a star nor a question mark, so that it matches one text only.
    pub fn is_literal(&self) -> bool {
        self.is_literal
    }

    /// Says whether it holds a character at which a shell begins another command.
    pub(crate) fn has_operator(&self) -> bool {
        self.has_operator
    }

    /// Says whether it matches the whole of `text`.
    pub fn matches(&self, text: &str) -> bool {
        self.matches_counting(text, &mut 0)
    }

    /// The same, and adds up the steps that it took: at most a few for each character of `text`.
    pub fn matches_counting(&self, text: &str, steps: &mut usize) -> bool {
        let Some(rest) = strip_front(text, &self.inner.head, steps) else { return false };
        if !self.inner.has_star {
            return rest.is_empty();
        }
        let Some(mut rest) = strip_back(rest, &self.inner.tail, steps) else { return false };
        for search in &self.inner.middle {
            match search.find_end(rest, steps) {
                Some(end) => rest = &rest[end..],
                None => return false,
            }
        }
        true
    }

    /// Says whether its text has this [`hash_of`].
    pub(crate) fn has_hash(&self, hash: u32) -> bool {
        self.hash == hash
    }

    /// Says whether it could match one of the texts that went into `pairs`: false is certain, true is not.
    pub(crate) fn may_match(&self, pairs: &Pairs) -> bool {
        self.pairs.iter().all(|pair| *pair == NO_PAIR || pairs.has(*pair))
    }

    /// Says whether it matches some text that `shape` stands for, where each hole may hold anything.
    ///
    /// With `touching`, a match counts only when a known character of `shape` meets a literal one of the pattern: what lies
    /// in a hole as a whole says nothing about what is around it. For a pattern of 128 characters or more the answer is yes.
    pub(crate) fn could_match(&self, shape: &[Symbol], touching: bool) -> bool {
        let known = shape.iter().map_while(|symbol| match symbol {
            Symbol::Char(c) => Some(*c),
            Symbol::Hole => None,
        });
        // What both begin with must agree: that alone settles most patterns.
        if self.inner.head.iter().zip(known).any(|(token, c)| token.is_some_and(|wanted| wanted != c)) {
            return false;
        }
        let pattern = &*self.inner.characters;
        if pattern.len() >= 128 {
            return true;
        }
        // Bit `i` says that the first `i` places of the pattern can be used up; `touched` where a known character was met.
        let pass_stars = |mut reached: u128| {
            let mut left = reached;
            while left != 0 {
                let place = left.trailing_zeros() as usize;
                left &= left - 1;
                if pattern.get(place) == Some(&'*') {
                    reached |= 2 << place;
                    left |= 2 << place;
                }
            }
            reached
        };
        let fill_up = |reached: u128| match reached {
            0 => 0,
            reached => (u128::MAX << reached.trailing_zeros()) & (u128::MAX >> (127 - pattern.len())),
        };
        let (mut plain, mut touched) = (pass_stars(1), 0_u128);
        for symbol in shape {
            let Symbol::Char(c) = symbol else {
                (plain, touched) = (fill_up(plain), fill_up(touched));
                continue;
            };
            let step = |reached: u128| {
                let (mut stayed, mut met, mut left) = (0_u128, 0_u128, reached);
                while left != 0 {
                    let place = left.trailing_zeros() as usize;
                    left &= left - 1;
                    match pattern.get(place) {
                        Some('*') => stayed |= 1 << place,
                        Some('?') => stayed |= 2 << place,
                        Some(literal) if literal == c => met |= 2 << place,
                        _ => {}
                    }
                }
                (stayed, met)
            };
            let (stayed, met) = step(plain);
            let (also_stayed, also_met) = step(touched);
            plain = pass_stars(stayed);
            touched = pass_stars(met | also_stayed | also_met);
            if plain | touched == 0 {
                return false;
            }
        }
        let end = 1 << pattern.len();
        touched & end != 0 || (!touching && plain & end != 0)
    }

    /// Says whether it matches every text that `other` matches. A yes is certain; a no may be too careful.
    pub fn covers(&self, other: &Self) -> bool {
        let (outer, inner) = (&*self.inner.characters, &*other.inner.characters);
        let n = outer.len();
        let mut reached = vec![false; n + 1];
        reached[0] = true;
        let close = |reached: &mut Vec<bool>| {
            for position in 0..n {
                if reached[position] && outer[position] == '*' {
                    reached[position + 1] = true;
                }
            }
        };
        close(&mut reached);
        for &symbol in inner {
            let mut next = vec![false; n + 1];
            for position in (0..n).filter(|position| reached[*position]) {
                match outer[position] {
                    '*' => next[position] = true,
                    '?' if symbol != '*' => next[position + 1] = true,
                    literal if literal == symbol && symbol != '*' && symbol != '?' => {
                        next[position + 1] = true
                    }
                    _ => {}
                }
            }
            reached = next;
            close(&mut reached);
        }
        reached[n]
    }

    /// Says whether some text is matched by both.
    pub fn meets(&self, other: &Self) -> bool {
        // A `?` of the other is taken for a hole: that finds a few meetings too many and misses none.
        let symbol = |c: char| if c == '*' || c == '?' { Symbol::Hole } else { Symbol::Char(c) };
        let shape: Vec<Symbol> = other.inner.text.chars().map(symbol).collect();
        self.could_match(&shape, false)
    }
}

impl fmt::Debug for Glob {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.inner.text, f)
    }
}

impl PartialEq for Glob {
    fn eq(&self, other: &Self) -> bool {
        self.hash == other.hash && self.inner.text == other.inner.text
    }
}

impl Eq for Glob {}

/// A character of a text that is known in part only.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Symbol {
    /// This character.
    Char(char),
    /// Any text, also none.
    Hole,
}

fn strip_front<'t>(text: &'t str, tokens: &[Token], steps: &mut usize) -> Option<&'t str> {
    let mut characters = text.chars();
    for token in tokens {
        *steps += 1;
        let c = characters.next()?;
        if token.is_some_and(|wanted| wanted != c) {
            return None;
        }
    }
    Some(characters.as_str())
}

fn strip_back<'t>(text: &'t str, tokens: &[Token], steps: &mut usize) -> Option<&'t str> {
    let mut characters = text.chars();
    for token in tokens.iter().rev() {
        *steps += 1;
        let c = characters.next_back()?;
        if token.is_some_and(|wanted| wanted != c) {
            return None;
        }
    }
    Some(characters.as_str())
}

/// Looks for one piece: bit `i` of the state says that the first `i + 1` places fit what was read last.
#[derive(Clone)]
struct Search {
    words: usize,
    length: usize,
    /// Which row of `masks` belongs to an ASCII character; row 0 holds the places that take any character.
    ascii: Box<[u16; 128]>,
    /// The same for the others, sorted.
    others: Vec<(char, u16)>,
    /// Rows of `words` words.
    masks: Vec<u64>,
}

impl Search {
    fn new(piece: &[Token]) -> Self {
        let words = piece.len().div_ceil(BITS);
        let mut distinct: Vec<char> = piece.iter().flatten().copied().collect();
        distinct.sort_unstable();
        distinct.dedup();
        // More distinct characters than a row number can name share no row with the others: such a pattern matches less.
        distinct.truncate(usize::from(u16::MAX) - 1);
        let mut masks = vec![0; words * (distinct.len() + 1)];
        let mut set = |row: usize, place: usize| masks[row * words + place / BITS] |= 1 << (place % BITS);
        let (mut ascii, mut others) = (Box::new([0_u16; 128]), Vec::new());
        for (index, c) in distinct.iter().enumerate() {
            let row = index + 1;
            match ascii.get_mut(*c as usize) {
                Some(entry) => *entry = row as u16,
                None => others.push((*c, row as u16)),
            }
            for (place, token) in piece.iter().enumerate() {
                if token.is_none_or(|wanted| wanted == *c) {
                    set(row, place);
                }
            }
        }
        for (place, _) in piece.iter().enumerate().filter(|(_, token)| token.is_none()) {
            set(0, place);
        }
        Self { words, length: piece.len(), ascii, others, masks }
    }

    fn row(&self, c: char) -> &[u64] {
        let row = match self.ascii.get(c as usize) {
            Some(row) => *row,
            None => self.others.binary_search_by_key(&c, |(c, _)| *c).map_or(0, |index| self.others[index].1),
        };
        &self.masks[usize::from(row) * self.words..][..self.words]
    }

    /// Returns where the first occurrence ends.
    fn find_end(&self, text: &str, steps: &mut usize) -> Option<usize> {
        let (last_word, last_bit) = ((self.length - 1) / BITS, 1_u64 << ((self.length - 1) % BITS));
        if self.words == 1 {
            let mut state = 0;
            for (index, c) in text.char_indices() {
                *steps += 1;
                state = ((state << 1) | 1) & self.row(c)[0];
                if state & last_bit != 0 {
                    return Some(index + c.len_utf8());
                }
            }
            return None;
        }
        let mut state = vec![0_u64; self.words];
        for (index, c) in text.char_indices() {
            let mut carry = 1;
            for (word, mask) in state.iter_mut().zip(self.row(c)) {
                *steps += 1;
                let out = *word >> (BITS - 1);
                *word = ((*word << 1) | carry) & mask;
                carry = out;
            }
            if state[last_word] & last_bit != 0 {
                return Some(index + c.len_utf8());
            }
        }
        None
    }
}

/// Which pairs of neighbouring bytes some texts hold, with a few more by chance.
#[derive(Clone)]
pub(crate) struct Pairs([u64; 64]);

impl Pairs {
    pub(crate) fn none() -> Self {
        Self([0; 64])
    }

    pub(crate) fn add(&mut self, text: &str) {
        for pair in text.as_bytes().windows(2) {
            let place = pair_of(pair[0], pair[1]);
            self.0[usize::from(place / 64)] |= 1 << (place % 64);
        }
    }

    fn has(&self, place: u16) -> bool {
        self.0[usize::from(place / 64)] & (1 << (place % 64)) != 0
    }
}

fn pair_of(first: u8, second: u8) -> u16 {
    (u16::from(first).wrapping_mul(67) ^ u16::from(second).wrapping_mul(31)) & 4095
}

/// A few pairs of bytes that every text has which the pattern matches, from all over it.
fn required_pairs(text: &str) -> [u16; PAIRS] {
    let is_literal = |byte: &u8| *byte != b'*' && *byte != b'?';
    let all: Vec<u16> = text
        .as_bytes()
        .windows(2)
        .filter(|pair| pair.iter().all(is_literal))
        .map(|pair| pair_of(pair[0], pair[1]))
        .collect();
    let step = all.len().div_ceil(PAIRS).max(1);
    let mut pairs = [NO_PAIR; PAIRS];
    for (place, pair) in pairs.iter_mut().zip(all.into_iter().step_by(step)) {
        *place = pair;
    }
    pairs
}

/// A number that equal texts share (FNV-1a).
pub(crate) fn hash_of(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193))
}
