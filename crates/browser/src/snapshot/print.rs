//! Prints a tree as lines within a budget: each part gets a share, and what does not fit is counted
//! and can be requested separately.

use crate::{snapshot::SnapshotNode, tab::Tab};

/// A part whose share would be smaller is left out and counted.
const MIN_SHARE: usize = 60;
/// The number of lines to show before and after a match.
const AROUND: usize = 2;

/// Returns every line of a tree. A root that is the page has no line.
pub(super) fn lines(root: &SnapshotNode) -> Vec<String> {
    fn add(node: &SnapshotNode, depth: usize, lines: &mut Vec<String>) {
        lines.push(format!("{}{}", "  ".repeat(depth.min(40)), node.line()));
        for child in &node.children {
            add(child, depth + 1, lines);
        }
    }
    let mut all = Vec::new();
    if root.role == "page" {
        for child in &root.children {
            add(child, 0, &mut all);
        }
    } else {
        add(root, 0, &mut all);
    }
    all
}

pub(super) struct SnapshotPrinter<'a> {
    pub(super) tab: &'a Tab,
    pub(super) most: usize,
}

impl SnapshotPrinter<'_> {
    pub(super) fn print(&self, root: &SnapshotNode) -> String {
        let sized = SizedNode::measure(root, 0);
        let mut out = String::new();
        if root.role == "page" {
            self.children(&sized, 0, self.most, &mut out);
        } else {
            self.node(&sized, 0, self.most, &mut out);
        }
        if out.is_empty() {
            out.push_str("(the page shows nothing)\n");
        }
        out
    }

    fn node(&self, sized: &SizedNode<'_>, depth: usize, budget: usize, out: &mut String) {
        indent(out, depth);
        out.push_str(&sized.line);
        out.push('\n');
        let own = sized.line.chars().count() + depth.min(40) * 2 + 1;
        self.children(sized, depth + 1, budget.saturating_sub(own), out);
    }

    fn children(&self, sized: &SizedNode<'_>, depth: usize, budget: usize, out: &mut String) {
        let below: usize = sized.children.iter().map(|child| child.size).sum();
        if below <= budget {
            for child in &sized.children {
                self.node(child, depth, child.size, out);
            }
            return;
        }
        // The line that reports omitted nodes is part of the budget.
        let rest = MIN_SHARE + depth.min(40) * 2;
        let budget = budget.saturating_sub(rest);
        let share = share(&sized.children, budget);
        if share >= MIN_SHARE * 2 {
            let mut left_out = 0;
            for child in &sized.children {
                if child.size <= share || child.line.chars().count() + depth * 2 < share {
                    self.node(child, depth, child.size.min(share), out);
                } else {
                    left_out += child.node.count();
                }
            }
            self.rest(sized, depth, left_out, out);
            return;
        }
        let mut used = 0;
        let mut left_out = 0;
        for child in &sized.children {
            if left_out == 0 && used + child.size <= budget {
                used += child.size;
                self.node(child, depth, child.size, out);
            } else {
                left_out += child.node.count();
            }
        }
        self.rest(sized, depth, left_out, out);
    }

    fn rest(&self, sized: &SizedNode<'_>, depth: usize, left_out: usize, out: &mut String) {
        if left_out == 0 {
            return;
        }
        indent(out, depth);
        let node = sized.node;
        let number = node.number.or_else(|| {
            node.backend
                .and_then(|backend| self.tab.assign_ref(&node.frame, backend))
        });
        match number {
            Some(number) if node.role != "page" => {
                out.push_str(&format!("… {left_out} nodes, snapshot ref=e{number}\n"));
            }
            _ => out.push_str(&format!("… {left_out} nodes\n")),
        }
    }
}

fn indent(out: &mut String, depth: usize) {
    for _ in 0..depth.min(40) {
        out.push_str("  ");
    }
}

/// Returns the maximum size of each part so that all fit: small parts get all they need, the others
/// an equal share.
fn share(parts: &[SizedNode<'_>], budget: usize) -> usize {
    let mut sizes: Vec<usize> = parts.iter().map(|part| part.size).collect();
    sizes.sort_unstable();
    let (mut left, mut count) = (budget, sizes.len());
    for size in sizes {
        let even = left / count.max(1);
        if size > even {
            return even;
        }
        left -= size;
        count -= 1;
    }
    usize::MAX
}

/// A tree with the number of characters of each part.
struct SizedNode<'a> {
    node: &'a SnapshotNode,
    line: String,
    size: usize,
    children: Vec<SizedNode<'a>>,
}

impl<'a> SizedNode<'a> {
    fn measure(node: &'a SnapshotNode, depth: usize) -> Self {
        let line = node.line();
        let inner = if node.role == "page" { 0 } else { depth + 1 };
        let children: Vec<Self> = node
            .children
            .iter()
            .map(|child| Self::measure(child, inner))
            .collect();
        let below: usize = children.iter().map(|child| child.size).sum();
        Self {
            size: line.chars().count() + depth.min(40) * 2 + 1 + below,
            node,
            line,
            children,
        }
    }
}

/// Returns the lines that contain `text`, with the lines around them.
pub(super) fn lines_around(lines: &[String], text: &str, most: usize) -> String {
    let wanted = text.to_lowercase();
    let hits: Vec<usize> = (0..lines.len())
        .filter(|&at| lines[at].to_lowercase().contains(&wanted))
        .collect();
    if hits.is_empty() {
        return format!("No line has \"{text}\" ({} lines).\n", lines.len());
    }
    let mut out = String::new();
    let mut next = 0;
    let mut used = 0;
    for (count, &hit) in hits.iter().enumerate() {
        let (from, to) = (
            hit.saturating_sub(AROUND).max(next),
            (hit + AROUND + 1).min(lines.len()),
        );
        let part: usize = lines[from.min(to)..to]
            .iter()
            .map(|line| line.chars().count() + 1)
            .sum();
        if used + part > most {
            out.push_str(&format!("… {} more matching lines\n", hits.len() - count));
            break;
        }
        if from > next && from < to {
            out.push_str("…\n");
        }
        for line in &lines[from.min(to)..to] {
            out.push_str(line);
            out.push('\n');
        }
        used += part;
        next = to.max(next);
    }
    out
}

/// Returns up to three lines that contain the first four letters of any word of `text`. Words of one
/// or two letters are ignored.
pub(super) fn similar_lines(lines: &[String], text: &str) -> Vec<String> {
    let wanted: Vec<String> = text
        .split_whitespace()
        .map(|word| word.chars().take(4).collect::<String>().to_lowercase())
        .filter(|word| word.chars().count() > 2)
        .collect();
    lines
        .iter()
        .filter(|line| {
            let line = line.to_lowercase();
            wanted.iter().any(|word| line.contains(word.as_str()))
        })
        .take(3)
        .map(|line| line.trim().trim_start_matches("- ").to_owned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_around_hits_come_once_and_in_order() {
        let lines: Vec<String> = (0..20).map(|number| format!("- item {number}!")).collect();
        insta_like(
            &lines_around(&lines, "item 5!", 1_000),
            &[
                "- item 3!",
                "- item 4!",
                "- item 5!",
                "- item 6!",
                "- item 7!",
            ],
        );
        let two = lines_around(&lines, "ITEM 1", 10_000);
        assert_eq!(two.matches("item 11!").count(), 1);
        assert!(lines_around(&lines, "item", 60).contains("more matching lines"));
        assert!(lines_around(&lines, "absent", 60).starts_with("No line has"));
        assert_eq!(similar_lines(&lines, "Items done")[0], "item 0!");
    }

    fn insta_like(text: &str, lines: &[&str]) {
        let found: Vec<&str> = text.lines().filter(|line| *line != "…").collect();
        assert_eq!(found, lines);
    }
}
