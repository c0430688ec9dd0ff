//! Whatever happens in whatever order: the history stays valid, the transcript says the same, and no
//! call runs twice.

use std::{collections::HashSet, sync::Arc, time::Duration};

use haft_agent::transcript::load::load;
use haft_models::{ErrorKind, Message, ModelError, Retry, RetryPolicy, StopReason};
use proptest::prelude::*;
use serde_json::{Value, json};

use crate::rig::{Due, Rig, Steered, Step, assert_valid, call, shown, stop, text_reply};

/// A block of a reply.
#[derive(Debug, Clone)]
enum Part {
    Text,
    Call {
        pauses: u8,
        fails: bool,
        alone: bool,
        broken: bool,
    },
}

#[derive(Debug, Clone)]
struct Said {
    parts: Vec<Part>,
    /// Which event of which block comes next; also where the stream pauses.
    order: Vec<u8>,
    /// After so many events the connection is lost.
    lost: Option<usize>,
}

#[derive(Debug, Clone, Copy)]
enum Cut {
    Never,
    Interrupt(usize),
    Drop(usize),
}

fn part() -> impl Strategy<Value = Part> {
    prop_oneof![
        1 => Just(Part::Text),
        3 => (0..4_u8, prop::bool::weighted(0.2), prop::bool::weighted(0.3), prop::bool::weighted(0.1))
            .prop_map(|(pauses, fails, alone, broken)| Part::Call { pauses, fails, alone, broken }),
    ]
}

fn said() -> impl Strategy<Value = Said> {
    let parts = prop::collection::vec(part(), 1..4);
    let order = prop::collection::vec(any::<u8>(), 20);
    (parts, order, prop::option::weighted(0.2, 0..12_usize)).prop_map(|(parts, order, lost)| Said {
        parts,
        order,
        lost,
    })
}

fn cut() -> impl Strategy<Value = Cut> {
    prop_oneof![
        Just(Cut::Never),
        (0..60_usize).prop_map(Cut::Interrupt),
        (0..60_usize).prop_map(Cut::Drop),
    ]
}

impl Said {
    /// The steps of this reply; its blocks interleave.
    fn steps(&self, number: usize) -> Vec<Step> {
        let mut blocks: Vec<std::vec::IntoIter<Step>> = self
            .parts
            .iter()
            .enumerate()
            .map(|(index, part)| match part {
                Part::Text => {
                    let mut text = text_reply(index, "some words");
                    text.pop();
                    text.into_iter()
                }
                Part::Call {
                    pauses,
                    fails,
                    alone,
                    broken,
                } => {
                    let key = format!("{number}-{index}");
                    let mut input =
                        json!({"key": key, "pauses": pauses, "fails": fails, "alone": alone});
                    if *broken {
                        input = json!("no object");
                    }
                    // Some servers count calls anew in every reply.
                    call(index, &format!("call_{index}"), &input).into_iter()
                }
            })
            .collect();
        let mut steps = Vec::new();
        let mut order = self.order.iter().cycle();
        while blocks.iter().any(|block| block.len() > 0) {
            let next = usize::from(*order.next().unwrap());
            if next % 3 == 0 {
                steps.push(Step::Pause);
            }
            let open: Vec<usize> = (0..blocks.len()).filter(|n| blocks[*n].len() > 0).collect();
            // A block begins only after the one before it has begun.
            let begun = (0..blocks.len()).take_while(|n| *n == 0 || blocks[*n - 1].len() < 3);
            let may: Vec<usize> = begun.filter(|n| open.contains(n)).collect();
            let chosen = may[next % may.len()];
            steps.extend(blocks[chosen].next());
        }
        let reason = match self
            .parts
            .iter()
            .any(|part| matches!(part, Part::Call { .. }))
        {
            true => StopReason::ToolUse,
            false => StopReason::EndTurn,
        };
        steps.push(stop(reason));
        if let Some(lost) = self.lost {
            steps.truncate(lost);
            steps.push(Step::Fail(ModelError::new(ErrorKind::Connection, "lost")));
        }
        steps
    }
}

async fn holds(replies: Vec<Said>, cut: Cut, retries: bool) {
    let rig = Rig::new();
    let steps = replies
        .iter()
        .enumerate()
        .map(|(number, said)| said.steps(number));
    let steered = Steered::new(&rig.stage, steps);
    let policy = RetryPolicy {
        max_retries: if retries { 10 } else { 0 },
        first_delay: Duration::ZERO,
        ..RetryPolicy::default()
    };
    let builder = match retries {
        true => rig.builder(Retry::new(Arc::new(steered), policy)).await,
        false => rig.builder(steered).await,
    };
    let mut agent = builder.build();
    match cut {
        Cut::Never => {}
        Cut::Interrupt(step) => rig.stage.at(step, Due::Interrupt(agent.control())),
        Cut::Drop(step) => rig.stage.at(step, Due::Flag("drop")),
    }
    let mut dropped = false;
    tokio::select! {
        biased;
        () = rig.stage.until("drop") => dropped = true,
        _ = agent.run("go", &rig.ear) => {}
    }
    if !dropped {
        assert_valid(agent.conversation());
    }
    agent.run("again", &rig.ear).await;
    assert_valid(agent.conversation());
    for (key, times) in rig.stage.runs() {
        assert_eq!(times, 1, "{key} ran {times} times");
    }
    let lines = rig.lines();
    killed_anywhere(&lines);
    // The transcript says the same.
    let loaded = load(&lines, None).unwrap();
    let own: Vec<&Message> = agent.conversation().messages().collect();
    let read: Vec<&Message> = loaded.conversation.messages().collect();
    assert_eq!(shown(read.clone()), shown(own.clone()));
    assert_eq!(read, own);
    assert_eq!(loaded.repairs, Vec::<String>::new());
}

/// A process that is killed leaves the first lines, and perhaps half of the next.
fn killed_anywhere(lines: &[String]) {
    for end in 0..lines.len() {
        let mut left = lines[..end].to_vec();
        let whole = load(&left, None).unwrap();
        assert_valid(&whole.conversation);
        let half = lines[end].len() / 2;
        left.push(lines[end].chars().take(half).collect());
        let torn = load(&left, None).unwrap();
        assert_valid(&torn.conversation);
        assert_eq!(
            shown(torn.conversation.messages()),
            shown(whole.conversation.messages())
        );
        // Of each call without a result it is said whether it was begun.
        let told = whole
            .repairs
            .iter()
            .filter(|repair| repair.contains("was begun"));
        assert_eq!(told.count(), begun(&lines[..end]).len(), "{left:#?}");
    }
}

/// The calls that were begun and have no result.
fn begun(lines: &[String]) -> HashSet<String> {
    let mut begun = HashSet::new();
    for line in lines {
        let line: Value = serde_json::from_str(line).unwrap();
        if line["type"] == "haft-started" {
            begun.insert(line["toolUseId"].as_str().unwrap().to_owned());
        }
        let blocks = line["message"]["content"].as_array().into_iter().flatten();
        for id in blocks.filter_map(|block| block["tool_use_id"].as_str()) {
            begun.remove(id);
        }
    }
    begun
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn the_history_is_valid_and_nothing_runs_twice(
        replies in prop::collection::vec(said(), 1..4),
        cut in cut(),
        retries in any::<bool>(),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(holds(replies, cut, retries));
    }
}
