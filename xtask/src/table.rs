//! Plain text tables for people.

/// Lines with columns as wide as their widest cell; the last column is left ragged.
pub(crate) fn render(head: &[&str], rows: &[Vec<String>]) -> String {
    let mut widths: Vec<usize> = head.iter().map(|cell| cell.chars().count()).collect();
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let rule: Vec<String> = widths.iter().map(|width| "-".repeat(*width)).collect();
    let mut text = String::new();
    for row in [&head, &rule].into_iter().chain(rows) {
        let cells = row
            .iter()
            .zip(&widths)
            .map(|(cell, width)| format!("{cell:<width$}"));
        text.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        text.push('\n');
    }
    text
}

/// Makes text from outside fit for a terminal: one line, no control characters, at most `most` characters.
pub(crate) fn cell(text: &str, most: usize) -> String {
    let mut shown: String = text.chars().filter(|c| !c.is_control()).take(most).collect();
    if text.chars().filter(|c| !c.is_control()).count() > most {
        shown.pop();
        shown.push('…');
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_line_up() {
        let rows = vec![
            vec!["a".to_owned(), "bb".to_owned()],
            vec!["ccc".to_owned(), String::new()],
        ];
        assert_eq!(render(&["x", "y"], &rows), "x    y\n---  --\na    bb\nccc\n");
    }

    #[test]
    fn cells_are_safe_and_bounded() {
        assert_eq!(cell("a\u{1b}[31mb\n", 10), "a[31mb");
        assert_eq!(cell("abcdef", 4), "abc…");
        assert_eq!(cell("abcd", 4), "abcd");
    }
}
