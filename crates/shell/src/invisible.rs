//! Characters that a terminal does not show, or that change the order of what it shows.

/// Returns the offset of the first character that makes a line look like another one: a control
/// character other than tab and line breaks, a bidirectional control, or an invisible format
/// character.
pub(crate) fn first_invisible(line: &str) -> Option<(usize, char)> {
    let mut before = '\0';
    line.char_indices().find(|(_, letter)| {
        // A presentation selector belongs to the emoji before it.
        let selects = matches!(letter, '\u{fe0e}' | '\u{fe0f}') && !before.is_ascii();
        before = *letter;
        !selects && is_invisible(*letter)
    })
}

fn is_invisible(letter: char) -> bool {
    match letter {
        '\t' | '\n' | '\r' => false,
        _ if letter.is_control() => true,
        // Soft hyphen, joiners, Arabic and Mongolian marks, Hangul and Khmer fillers.
        '\u{ad}'
        | '\u{34f}'
        | '\u{61c}'
        | '\u{115f}'
        | '\u{1160}'
        | '\u{17b4}'
        | '\u{17b5}'
        | '\u{180b}'..='\u{180f}'
        | '\u{3164}'
        | '\u{ffa0}' => true,
        // Zero width, bidirectional controls, line and paragraph separators, invisible operators.
        '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' => true,
        // Variation selectors, byte order mark, interlinear annotations, musical controls, tags.
        '\u{fe00}'..='\u{fe0f}'
        | '\u{feff}'
        | '\u{fff0}'..='\u{fffb}'
        | '\u{1bca0}'..='\u{1bca3}'
        | '\u{1d173}'..='\u{1d17a}'
        | '\u{e0000}'..='\u{e0fff}' => true,
        _ => false,
    }
}
