//! A table with aligned columns. Long values wrap after commas.

use std::io::{self, Write};

use crate::terminal::{Terminal, visible, width};

/// Three columns. A column of width 0 never wraps. Texts may be untrusted.
#[derive(Debug)]
pub struct Table {
    widths: [usize; 3],
    header: Option<[&'static str; 3]>,
    rows: Vec<[String; 3]>,
}

impl Table {
    pub fn new(widths: [usize; 3]) -> Self {
        Self { widths, header: None, rows: Vec::new() }
    }

    #[must_use]
    pub fn with_header(self, header: [&'static str; 3]) -> Self {
        Self { header: Some(header), ..self }
    }

    pub fn row(&mut self, cells: [&str; 3]) {
        self.rows.push(cells.map(|cell| visible(cell).into_owned()));
    }

    pub fn print(&self, terminal: &mut Terminal) -> io::Result<()> {
        if let Some(header) = self.header {
            let dim = terminal.palette.dim;
            write!(terminal, "{dim}")?;
            self.line(terminal, header)?;
            write!(terminal, "{dim:#}")?;
        }
        for [first, second, third] in &self.rows {
            let [_, most, _] = self.widths;
            let lines = broken(second, most);
            for (at, line) in lines.iter().enumerate() {
                let cells = if at == 0 { [first.as_str(), line, third] } else { ["", line, ""] };
                self.line(terminal, cells)?;
            }
        }
        Ok(())
    }

    fn line(&self, out: &mut dyn Write, cells: [&str; 3]) -> io::Result<()> {
        let mut text = String::new();
        for (cell, column) in cells.into_iter().zip(self.widths) {
            text.push_str(cell);
            text.push_str(&" ".repeat(column.saturating_sub(width(cell))));
            text.push(' ');
        }
        writeln!(out, "{}", text.trim_end())
    }
}

/// Wraps text after commas to lines of at most `most` columns. Longer words stay whole.
fn broken(text: &str, most: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split_inclusive(", ") {
        let fits =
            |line: &String| most == 0 || line.is_empty() || width(line) + width(word.trim_end()) <= most;
        match lines.last_mut() {
            Some(line) if fits(line) => line.push_str(word),
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::broken;

    #[test]
    fn wraps_after_commas_only() {
        assert_eq!(broken("aa, bb, cc", 7), ["aa, bb, ", "cc"]);
        assert_eq!(broken("a-long-word", 4), ["a-long-word"]);
        assert_eq!(broken("", 4), [""]);
    }
}
