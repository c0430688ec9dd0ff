//! Interpreters that keep their state: real ones, and code that does them no good.

use std::time::{Duration, Instant};

use haft_contract::{Confinement, ConfinementProfile, Content, NetworkAccess, ProgressUpdate};
use serde_json::{Value, json};
use tokio::time::timeout;

use super::{Heard, Terminal, background::nothing_runs_in};

/// Longer than anything here should take, on a machine that is busy.
const LONG: Duration = Duration::from_secs(200);

fn is_there(language: &str) -> bool {
    let program = match language {
        "python" => "python3",
        other => other,
    };
    let found = haft_testkit::command(program).arg("--version").output();
    let found = found.is_ok_and(|ran| ran.status.success());
    if !found {
        haft_testkit::skip(&format!("an interpreter: {program} is absent"));
    }
    found
}

async fn run(terminal: &Terminal, language: &str, code: &str) -> Heard {
    let input = json!({"language": language, "code": code, "timeout": 100_000});
    with(terminal, input).await
}

async fn with(terminal: &Terminal, input: Value) -> Heard {
    timeout(LONG, terminal.call("REPL", input)).await.unwrap()
}

#[tokio::test]
async fn state_is_kept_and_the_last_expression_is_the_value() {
    let cases = [
        (
            "python",
            [
                ("x = 41", "(no output, no value)"),
                ("x + 1", "=> 42"),
                (
                    "print('one'); import sys; print('two', file=sys.stderr)\n'three'",
                    "one\ntwo\n=> 'three'",
                ),
                ("def f(y):\n    return y * 2\n\nf(x)", "=> 82"),
                (
                    "import asyncio\nawait asyncio.sleep(0)\n'waited'",
                    "=> 'waited'",
                ),
                ("None", "(no output, no value)"),
                ("_", "=> 'waited'"),
                (
                    "import os; os.system('echo from a child'); None",
                    "from a child",
                ),
            ],
        ),
        (
            "node",
            [
                ("const x = 41", "(no output, no value)"),
                ("x + 1", "=> 42"),
                (
                    "console.log('one'); console.error('two'); 'three'",
                    "one\ntwo\n=> 'three'",
                ),
                ("function f(y) { return y * 2 }\nf(x)", "=> 82"),
                (
                    "const w = await Promise.resolve('waited')\nw",
                    "=> 'waited'",
                ),
                ("undefined", "(no output, no value)"),
                ("w", "=> 'waited'"),
                (
                    "require('child_process').execSync('echo from a child', {stdio: 'inherit'}); undefined",
                    "from a child",
                ),
            ],
        ),
    ];
    for (language, calls) in cases {
        if !is_there(language) {
            continue;
        }
        let terminal = Terminal::new();
        for (code, expected) in calls {
            assert_eq!(
                run(&terminal, language, code).await.ok(),
                expected,
                "{code}"
            );
        }
        terminal.shell().close().await;
        nothing_runs_in(terminal.root()).await;
    }
}

#[tokio::test]
async fn what_fails_is_told_without_our_own_lines_and_costs_no_state() {
    let cases = [
        (
            "python",
            "kept = 7",
            "def f():\n    raise ValueError('no')\nf()",
            "ValueError: no",
            "1 +",
            "SyntaxError",
            "kept",
        ),
        (
            "node",
            "var kept = 7",
            "function f() { throw new Error('no') }\nf()",
            "Error: no",
            "1 +",
            "SyntaxError",
            "kept",
        ),
    ];
    for (language, first, fails, error, wrong, syntax, then) in cases {
        if !is_there(language) {
            continue;
        }
        let terminal = Terminal::new();
        run(&terminal, language, first).await.ok();
        let failed = run(&terminal, language, fails).await;
        assert_eq!(failed.structured["stateLost"], false);
        let text = failed.failed();
        assert!(text.contains(error), "{text}");
        for own in ["_haft_main", "node:internal", "[eval]", "driver"] {
            assert!(!text.contains(own), "{text}");
        }
        let text = run(&terminal, language, wrong).await.failed();
        assert!(text.contains(syntax), "{text}");
        assert_eq!(run(&terminal, language, then).await.ok(), "=> 7");
    }
}

#[tokio::test]
async fn time_is_bounded_and_the_state_stays_where_it_can() {
    let cases = [
        ("python", "x = 1", "while True: pass", "x"),
        ("python", "x = 1", "import time\ntime.sleep(1000)", "x"),
        ("node", "var x = 1", "while (true) {}", "x"),
        ("node", "var x = 1", "await new Promise(() => {})", "x"),
    ];
    for (language, first, endless, then) in cases {
        if !is_there(language) {
            continue;
        }
        let terminal = Terminal::new();
        run(&terminal, language, first).await.ok();
        let input = json!({"language": language, "code": endless, "timeout": 500});
        let ended = with(&terminal, input).await;
        assert_eq!(
            ended.structured["timedOut"], true,
            "{endless}: {}",
            ended.text
        );
        assert_eq!(ended.structured["stateLost"], false, "{endless}");
        let text = ended.failed();
        assert!(text.starts_with("Interrupted after 500ms"), "{text}");
        assert_eq!(
            run(&terminal, language, then).await.ok(),
            "=> 1",
            "{endless}"
        );
    }
}

#[tokio::test]
async fn code_that_does_not_let_itself_be_interrupted_is_ended() {
    let cases = [
        (
            "python",
            "import signal\nsignal.signal(signal.SIGINT, signal.SIG_IGN)\nwhile True: pass",
        ),
        (
            "node",
            "process.removeAllListeners('SIGINT'); process.on('SIGINT', () => {}); await new Promise(() => {})",
        ),
    ];
    for (language, code) in cases {
        if !is_there(language) {
            continue;
        }
        let terminal = Terminal::new();
        run(&terminal, language, "1").await.ok();
        let input = json!({"language": language, "code": code, "timeout": 300});
        let ended = with(&terminal, input).await;
        assert_eq!(
            ended.structured["stateLost"], true,
            "{code}: {}",
            ended.text
        );
        let text = ended.failed();
        assert!(text.contains("could not be interrupted"), "{text}");
        assert_eq!(run(&terminal, language, "1 + 1").await.ok(), "=> 2");
        terminal.shell().close().await;
        nothing_runs_in(terminal.root()).await;
    }
}

#[tokio::test]
async fn a_person_who_interrupts_need_not_wait_and_keeps_the_state() {
    if !is_there("python") {
        return;
    }
    let terminal = Terminal::new();
    run(&terminal, "python", "x = 1").await.ok();
    let (cx, mut updates) = terminal.context();
    let code = "print('begun')\nwhile True: pass";
    let input = json!({"language": "python", "code": code});
    let calling = terminal.call_in("REPL", input, &cx);
    let interrupting = async {
        // What is printed comes while it runs.
        let said = async {
            while let Some((_, update)) = updates.recv().await {
                if let ProgressUpdate::Text { text } = &update
                    && text.contains("begun")
                {
                    return;
                }
            }
        };
        timeout(LONG, said).await.unwrap();
        cx.cancel.cancel();
    };
    let (ended, ()) = timeout(LONG, async { tokio::join!(calling, interrupting) })
        .await
        .unwrap();
    assert_eq!(ended.structured["interrupted"], true, "{}", ended.text);
    assert!(ended.text.contains("begun"), "{}", ended.text);
    assert_eq!(run(&terminal, "python", "x").await.ok(), "=> 1");
}

#[tokio::test]
async fn hostile_code_harms_its_interpreter_alone() {
    let cases = [
        ("python", "import os\nos._exit(3)", "it exited with code 3"),
        ("python", "exit(4)", "it exited with code 4"),
        (
            "python",
            "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)",
            "signal 9",
        ),
        (
            "python",
            "import os\nfor n in range(3, 64):\n    try: os.write(n, b'{}\\n' * 3)\n    except OSError: pass",
            "descriptors of haft's own driver",
        ),
        (
            "python",
            "import os\nfor n in range(3, 64):\n    try: os.write(n, b'x' * (20 << 20))\n    except OSError: pass",
            "descriptors of haft's own driver",
        ),
        (
            "python",
            "import os, time\nos.closerange(0, 64)\ntime.sleep(1000)",
            "it closed the descriptors",
        ),
        (
            "python",
            "import sys\nwhile True: sys.stdout.write('flood ' * 10000)",
            "printed more than 200 MB",
        ),
        ("node", "process.exit(3)", "it exited with code 3"),
        (
            "node",
            "require('fs').writeSync(4, 'garbage\\n'); await new Promise(() => {})",
            "descriptors of haft's own driver",
        ),
        (
            "node",
            "require('fs').closeSync(4); await new Promise(() => {})",
            "it closed the descriptors",
        ),
        (
            "node",
            "while (true) try { require('fs').writeSync(1, 'flood '.repeat(10000)) } catch {}",
            "printed more than 200 MB",
        ),
    ];
    for (language, code, expected) in cases {
        if !is_there(language) {
            continue;
        }
        let terminal = Terminal::new();
        run(&terminal, language, "1").await.ok();
        let ended = run(&terminal, language, code).await;
        assert_eq!(
            ended.structured["stateLost"], true,
            "{code}: {}",
            ended.text
        );
        let text = ended.failed();
        assert!(
            text.contains(expected) && text.contains("Its state is lost"),
            "{code}: {text}"
        );
        assert!(text.len() < 50_000, "{code}: {}", text.len());
        assert_eq!(
            run(&terminal, language, "40 + 2").await.ok(),
            "=> 42",
            "{code}"
        );
        terminal.shell().close().await;
        nothing_runs_in(terminal.root()).await;
    }
}

#[tokio::test]
async fn what_is_odd_but_harmless_is_survived() {
    if !is_there("python") {
        return;
    }
    let terminal = Terminal::new();
    let cases = [
        // Two of it go on; one of them answers.
        ("import os\npid = os.fork()\n'mine'", "=> 'mine'"),
        (
            "import os\nfor _ in range(20):\n    if os.fork() == 0: os._exit(0)\n'forked'",
            "=> 'forked'",
        ),
        ("input()", "EOFError"),
        (
            "import sys\nsys.stdout = None\nsys.stderr = None\n5",
            "=> 5",
        ),
        ("'y' * 1_000_000", "characters left out"),
        (
            "class Bad:\n    def __repr__(self): raise RuntimeError('bad repr')\nBad()",
            "bad repr",
        ),
        (
            "class Worse(Exception):\n    def __str__(self): raise RuntimeError('worse')\nraise Worse()",
            "Worse",
        ),
        ("'\\ud800\\0\\x1b[31m'", "=>"),
        ("def f(): f()\nf()", "RecursionError"),
        ("import json, os, sys\njson = os = None\ndel sys\n6", "=> 6"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
    ];
    for (code, expected) in cases {
        let heard = run(&terminal, "python", code).await;
        assert_eq!(
            heard.structured["stateLost"], false,
            "{code}: {}",
            heard.text
        );
        assert!(heard.text.contains(expected), "{code}: {}", heard.text);
        assert!(!heard.text.contains('\x1b'), "{code}");
        assert!(heard.text.len() < 100_000, "{code}");
    }
    assert_eq!(run(&terminal, "python", "pid > 0").await.ok(), "=> True");
    terminal.shell().close().await;
    nothing_runs_in(terminal.root()).await;
}

#[tokio::test]
async fn one_can_begin_anew() {
    if !is_there("python") {
        return;
    }
    let terminal = Terminal::new();
    run(&terminal, "python", "x = 1").await.ok();
    let again = json!({"language": "python", "code": "'x' in dir()", "restart": true});
    assert_eq!(with(&terminal, again).await.ok(), "=> False");
    run(&terminal, "python", "x = 2").await.ok();
    let only = json!({"language": "python", "restart": true});
    assert_eq!(
        with(&terminal, only).await.ok(),
        "The next call starts a new python."
    );
    assert_eq!(
        run(&terminal, "python", "'x' in dir()").await.ok(),
        "=> False"
    );
    let nothing = with(&terminal, json!({"language": "python", "code": " "})).await;
    assert!(nothing.failed);
}

const PNG: &str = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";

fn pictures(heard: &Heard) -> usize {
    let is_picture = |block: &&Content| matches!(block, Content::Image { .. });
    heard.content.iter().filter(is_picture).count()
}

#[tokio::test]
async fn pictures_come_as_pictures() {
    for (language, code) in [
        (
            "python",
            format!("import base64\npng = base64.b64decode('{PNG}')\npng"),
        ),
        (
            "python",
            format!(
                "import base64\nclass P:\n    def _repr_png_(self): return base64.b64decode('{PNG}')\nP()"
            ),
        ),
        ("node", format!("Buffer.from('{PNG}', 'base64')")),
    ] {
        if !is_there(language) {
            continue;
        }
        let terminal = Terminal::new();
        let heard = run(&terminal, language, &code).await;
        assert_eq!(pictures(&heard), 1, "{}", heard.text);
        assert!(!heard.failed);
        // Not more than can be looked at, and none that is none.
        let many = match language {
            "python" => {
                format!("import base64\nfor _ in range(11): display(base64.b64decode('{PNG}'))")
            }
            _ => format!("for (let n = 0; n < 11; n++) display(Buffer.from('{PNG}', 'base64'))"),
        };
        let heard = run(&terminal, language, &many).await;
        assert_eq!(pictures(&heard), 8, "{}", heard.text);
        assert!(
            heard.text.contains("3 more images were left out"),
            "{}",
            heard.text
        );
        let broken = match language {
            "python" => "b'\\x89PNG and no more'",
            _ => "Buffer.from('\\x89PNG and no more', 'latin1')",
        };
        let heard = run(&terminal, language, broken).await;
        assert_eq!(pictures(&heard), 0);
        assert!(
            heard.text.contains("An image cannot be shown"),
            "{}",
            heard.text
        );
    }
}

/// A stand-in for matplotlib, with the parts of it that the driver uses; the real one where it is installed.
#[tokio::test]
async fn figures_need_no_display() {
    if !is_there("python") {
        return;
    }
    let terminal = Terminal::new();
    let has_real = run(
        &terminal,
        "python",
        "import importlib.util\nimportlib.util.find_spec('matplotlib') is not None",
    );
    let has_real = has_real.await.ok() == "=> True";
    if !has_real {
        let folder = terminal.root().join("matplotlib");
        std::fs::create_dir(&folder).unwrap();
        std::fs::write(folder.join("__init__.py"), "").unwrap();
        std::fs::write(
            folder.join("_pylab_helpers.py"),
            "class Gcf:\n    figs = {}\n    @classmethod\n    def get_all_fig_managers(cls): return list(cls.figs.values())\n    \
             @classmethod\n    def destroy_all(cls): cls.figs.clear()\n    @classmethod\n    def destroy(cls, num): cls.figs.pop(num)\n",
        )
        .unwrap();
        let pyplot = format!(
            "import base64, os\nfrom types import SimpleNamespace as N\nfrom . import _pylab_helpers\nassert os.environ['MPLBACKEND'] == 'Agg'\n\
             class Figure:\n    __module__ = 'matplotlib.figure'\n    def savefig(self, to, **_): to.write(base64.b64decode('{PNG}'))\n\
             def plot(*_):\n    f = Figure(); n = len(_pylab_helpers.Gcf.figs)\n    \
             _pylab_helpers.Gcf.figs[n] = N(canvas=N(figure=f), num=n)\n\
             def figure():\n    plot(); return _pylab_helpers.Gcf.figs[len(_pylab_helpers.Gcf.figs) - 1].canvas.figure\n\
             def show(): raise RuntimeError('no display')\n"
        );
        std::fs::write(folder.join("pyplot.py"), pyplot).unwrap();
    }
    for (code, expected) in [
        (
            "import matplotlib.pyplot as plt\nplt.plot([1, 2])\nplt.show()",
            1,
        ),
        // One that is not shown by a word is shown in the end, and then it is over.
        ("plt.plot([1, 2]); None", 1),
        ("1 + 1", 0),
        ("plt.figure()", 1),
        ("1 + 1", 0),
    ] {
        let heard = run(&terminal, "python", code).await;
        assert_eq!(pictures(&heard), expected, "{code}: {}", heard.text);
        assert!(!heard.failed, "{code}: {}", heard.text);
    }
}

/// The profile of commands holds it: files outside, what is hidden, the network.
#[tokio::test]
async fn it_is_confined_like_commands() {
    if !is_there("python") {
        return;
    }
    let mut terminal = Terminal::new();
    let root = terminal.root().to_path_buf();
    std::fs::write(root.join("secret.txt"), "sesame").unwrap();
    let outside = tempfile::tempdir().unwrap();
    terminal.confinement = Confinement {
        profile: ConfinementProfile::Workspace,
        writable: vec![root.clone()].into(),
        hidden: vec![root.join("secret.txt")].into(),
        network: NetworkAccess::Nobody,
        ..Confinement::default()
    };
    let heard = run(&terminal, "python", "open('made.txt', 'w').write('x')").await;
    assert_eq!(heard.ok(), "=> 1");
    assert!(root.join("made.txt").is_file());
    let path = outside.path().join("escaped");
    let code = format!("open({:?}, 'w')", path.display().to_string());
    let text = run(&terminal, "python", &code).await.failed();
    assert!(text.contains("Error"), "{text}");
    assert!(!path.exists());
    let text = run(&terminal, "python", "open('secret.txt').read()").await;
    assert!(!text.text.contains("sesame"), "{}", text.text);
    let code = "import socket\nsocket.create_connection(('192.0.2.1', 80), timeout=2)";
    run(&terminal, "python", code).await.failed();
    // One that may touch more than the next call may is not used for it.
    terminal.confinement.writable = Vec::new().into();
    let heard = run(&terminal, "python", "open('again.txt', 'w')").await;
    assert!(
        heard
            .text
            .contains("have changed since the interpreter started"),
        "{}",
        heard.text
    );
    assert!(!root.join("again.txt").exists());
}

#[tokio::test]
async fn what_it_changes_can_be_undone() {
    if !is_there("python") {
        return;
    }
    let terminal = Terminal::new();
    run(
        &terminal,
        "python",
        "open('file.txt', 'w').write('changed')",
    )
    .await
    .ok();
    let undone = terminal.call("Undo", json!({})).await;
    assert!(!undone.failed, "{}", undone.text);
    let text = std::fs::read_to_string(terminal.root().join("file.txt")).unwrap();
    assert_eq!(text, "one\ntwo\n");
}

#[tokio::test]
async fn one_that_is_not_installed_is_named() {
    let terminal = Terminal::with_env([("PATH", "/nowhere")]);
    let began = Instant::now();
    let heard = run(&terminal, "node", "1").await;
    assert!(
        heard.failed && heard.text.contains("node"),
        "{}",
        heard.text
    );
    assert!(began.elapsed() < LONG);
}

#[tokio::test]
async fn what_is_printed_belongs_to_its_call_however_much_it_is() {
    for (language, code) in [
        ("python", "print('x' * 3_000_000)"),
        ("node", "console.log('x'.repeat(3_000_000))"),
    ] {
        if !is_there(language) {
            continue;
        }
        let terminal = Terminal::new();
        let heard = run(&terminal, language, code).await;
        assert!(heard.text.starts_with("xxx"), "{language}");
        let heard = run(&terminal, language, "1 + 1").await;
        assert_eq!(heard.text, "=> 2", "{language}");
    }
}

#[tokio::test]
async fn modules_are_imported_in_node() {
    if !is_there("node") {
        return;
    }
    let terminal = Terminal::new();
    let heard = run(&terminal, "node", "import('path').then((path) => path.sep)").await;
    assert!(heard.text.starts_with("=> Promise"), "{}", heard.text);
    let heard = run(&terminal, "node", "(await import('path')).sep").await;
    assert_eq!(heard.text, "=> '/'");
    let heard = run(&terminal, "node", "import path from 'path'").await;
    assert!(heard.text.contains("Use `await import("), "{}", heard.text);
}
