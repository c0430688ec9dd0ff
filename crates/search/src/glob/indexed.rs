//! Glob over an indexed tree. It reads no directory, and calls `stat` only for files that are not
//! watched themselves.

use std::cmp::Reverse;

use super::{GlobPlan, GlobQuery, GlobReport, report};
use crate::handle::{EntryKind, kind_of, modified};
use crate::index::{FileFingerprint, IndexMiss, QueriedTree};
use crate::skip::SkipLog;
use crate::stop::{StopCondition, StopFlag};
use crate::walk::NameRules;

/// Answers a query from the indexed tree. Returns `IndexMiss` if the index cannot answer exactly.
pub(super) fn run(
    query: &GlobQuery,
    plan: &GlobPlan,
    stop: &StopCondition,
    asked: &QueriedTree,
) -> Result<GlobReport, IndexMiss> {
    let here = FileFingerprint::from_stat(&plan.directory.stat().map_err(|_| IndexMiss)?);
    let rules = NameRules {
        hidden: query.hidden,
        ..NameRules::default()
    };
    let watch = StopFlag::new(stop);
    let skips = SkipLog::default();
    let mut found = Vec::new();
    asked.with_fresh(|kept, has_looked| {
        let tree = &kept.tree;
        let below = plan.real.strip_prefix(&tree.root).map_err(|_| IndexMiss)?;
        let start = tree.find(below).ok_or(IndexMiss)?;
        let known = &tree.directories[start as usize].mark;
        if (known.device, known.inode) != (here.device, here.inode)
            || !tree.covers(start, &query.current_dir, &query.leave_out)
        {
            return Err(IndexMiss);
        }
        for skip in kept.skips_above(start) {
            skips.add(skip.path.as_deref(), skip.reason);
        }
        let mut waiting = vec![(start, 0)];
        while let Some((number, depth)) = waiting.pop() {
            let directory = &tree.directories[number as usize];
            for skip in &directory.skips {
                skips.add(skip.path.as_deref(), skip.reason.clone());
            }
            let in_base = directory.path.strip_prefix(below).map_err(|_| IndexMiss)?;
            let mut path = plan.base.join(in_base);
            for entry in &directory.entries {
                if watch.must_stop() {
                    return Ok(());
                }
                let entry = &tree.entries[*entry as usize];
                let is_dir = entry.kind == EntryKind::Directory;
                path.push(&*entry.name);
                let is_met = !rules.hide(&path, is_dir, || entry.verdict)
                    && plan.pattern.may_lead_to(depth + 1, &entry.name);
                if is_met && is_dir {
                    if !query.leave_out.excludes(&path) {
                        waiting.push((entry.directory.ok_or(IndexMiss)?, depth + 1));
                    }
                } else if is_met
                    && plan
                        .pattern
                        .fits(path.strip_prefix(&plan.base).unwrap_or(&path))
                    && !query.leave_out.excludes(&path)
                {
                    let time = match entry.kind {
                        EntryKind::File if has_looked || entry.watch.is_some() => {
                            Some(entry.mark.modified())
                        }
                        // The file may have been written through another name (a hard link).
                        EntryKind::File => {
                            let now = tree.top.stat_below(&tree.path_in(entry));
                            let file = now.filter(|it| kind_of(it) == Some(EntryKind::File));
                            file.as_ref().map(modified)
                        }
                        // The link's target may be anywhere, so it has no watch.
                        EntryKind::Link => {
                            let target = tree.top.stat_target_below(&tree.path_in(entry));
                            let file = target.filter(|it| kind_of(it) == Some(EntryKind::File));
                            file.as_ref().map(modified)
                        }
                        _ => None,
                    };
                    found.extend(time.map(|time| (Reverse(time), path.clone())));
                }
                path.pop();
            }
        }
        Ok(())
    })?;
    Ok(report(query, found, skips, watch.completion()))
}
