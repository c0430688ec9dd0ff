//! Formats tables.

/// Aligns the columns of a table. Columns of numbers are right-aligned. The first row is the
/// header.
pub(crate) fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| {
        rows.iter()
            .map(|row| row[column].chars().count())
            .max()
            .unwrap_or_default()
    };
    let widths: [usize; N] = std::array::from_fn(width);
    let numeric: [bool; N] = std::array::from_fn(|column| {
        rows.len() > 1 && rows[1..].iter().all(|row| is_number(&row[column]))
    });
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let pad = " ".repeat(widths[column] - cell.chars().count());
            line += &if numeric[column] {
                format!("{pad}{cell}")
            } else {
                format!("{cell}{pad}")
            };
            line += "  ";
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Returns whether a cell is a number, or the `-` of an unknown one.
fn is_number(cell: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_digit() || byte == b'.';
    cell == "-" || (!cell.is_empty() && cell.bytes().all(is_part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_aligned_and_numbers_stand_right() {
        let rows = [["NAME", "N"], ["a", "5"], ["long", "1234"]].map(|row| row.map(str::to_owned));
        assert_eq!(table(&rows), "NAME     N\na        5\nlong  1234\n");
    }
}
