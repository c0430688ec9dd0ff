//! Commands that try to get away, or do by accident what those do who try. Each says `ready`.

/// `(what it does, script)`. All of them run on until they are ended.
pub(crate) const RUN_ON: &[(&str, &str)] = &[
    (
        "children and grandchildren",
        "sleep 1000 & sleep 1000 & (sleep 1000 & sleep 1000 & wait) & echo ready; wait",
    ),
    (
        "processes in sessions of their own",
        "setsid sleep 1000 & setsid bash -c 'sleep 1000 & sleep 1000' & echo ready; wait",
    ),
    (
        "a daemon, forked twice, that holds nothing",
        "( ( setsid sleep 1000 >/dev/null 2>&1 </dev/null & ) & ); echo ready; sleep 1000",
    ),
    (
        "deaf to the request to end",
        "trap '' TERM HUP INT; (trap '' TERM; while :; do sleep 1; done) & echo ready; \
         while :; do sleep 1; done",
    ),
    (
        "stopped, child and parent",
        "sleep 1000 & kill -STOP $!; echo ready; kill -STOP $$; sleep 1000",
    ),
    (
        "many at once",
        "for i in {1..100}; do sleep 1000 & done; echo ready; wait",
    ),
    (
        "one that forks on and leaves its parent behind",
        "hop() { (( $1 )) || return; ( sleep 0.002; hop $(($1 - 1)) ) & }; hop 3000; echo ready; sleep 1000",
    ),
    (
        "a loop that forks",
        "(for i in {1..2000}; do (sleep 1000 &); done) & echo ready; wait; sleep 1000",
    ),
    (
        "nohup and disown",
        "nohup sleep 1000 >/dev/null 2>&1 & disown; echo ready; sleep 1000",
    ),
    (
        "its pipe closed",
        "echo ready; exec >&- 2>&-; sleep 1000; sleep 1000",
    ),
    (
        "an endless writer",
        "echo ready; while :; do echo more; done",
    ),
];

/// The same for commands whose shell ends and that leave something behind, always as many processes.
pub(crate) const LEAVE: &[(&str, &str)] = &[
    ("a child that holds the pipe", "sleep 1000 & echo ready"),
    (
        "a child that does not",
        "sleep 1000 >/dev/null 2>&1 & echo ready",
    ),
    (
        "a session of its own",
        "setsid -f sleep 1000; setsid -f sleep 1000; echo ready",
    ),
    (
        "one deaf and one stopped",
        "(trap '' TERM; exec sleep 1000) & sleep 1000 & kill -STOP $!; echo ready",
    ),
];
