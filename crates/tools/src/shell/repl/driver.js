// Runs the requests that arrive on descriptor 3, one JSON object per line, and answers on 4 in the same format. The
// code prints to 1 and 2. Exits when descriptor 3 is closed.
(() => {
  'use strict';
  const fs = require('fs');
  const net = require('net');
  const util = require('util');
  const vm = require('vm');
  const { PassThrough } = require('stream');
  const mostText = 40000;
  const mostImages = 8;
  const pause = new Int32Array(new SharedArrayBuffer(4));
  const state = { images: 0, nonce: '', interrupt: null, fail: null };

  const write = (descriptor, text) => {
    let left = Buffer.from(text);
    while (left.length > 0) {
      try {
        left = left.subarray(fs.writeSync(descriptor, left));
      } catch (error) {
        if (error.code !== 'EAGAIN') throw error;
        Atomics.wait(pause, 0, 0, 1);
      }
    }
  };
  // Printing is synchronous, so that all output has arrived when the code finishes or exits the interpreter.
  for (const stream of [process.stdout, process.stderr]) {
    if (stream._handle && stream._handle.setBlocking) stream._handle.setBlocking(true);
  }
  const printed = (stream) => new Promise((resolve) => stream.write('', () => resolve()));
  const send = (message) => write(4, JSON.stringify(message) + '\n');
  const cut = (text) => {
    if (text.length <= mostText) return text;
    const half = mostText / 2;
    return `${text.slice(0, half)}\n[… ${text.length - mostText} characters left out …]\n${text.slice(-half)}`;
  };

  const isPicture = (value) => {
    if (!(value instanceof Uint8Array) || value.length < 8) return false;
    const start = Buffer.from(value.buffer, value.byteOffset, 4).toString('latin1');
    return start === '\x89PNG' || start === 'GIF8' || start.startsWith('\xff\xd8\xff');
  };
  const show = (value) => {
    if (!isPicture(value)) return false;
    state.images += 1;
    if (state.images <= mostImages) {
      const bytes = Buffer.from(value.buffer, value.byteOffset, value.byteLength);
      send({ nonce: state.nonce, image: bytes.toString('base64') });
    }
    return true;
  };
  const written = (value) => cut(util.inspect(value, { depth: 4, maxArrayLength: 200, maxStringLength: mostText }));

  // The evaluator of node's REPL supports `await` at the top level, and keeps the declarations there.
  const repl = require('repl').start({
    prompt: '',
    input: new PassThrough(),
    output: new PassThrough(),
    terminal: false,
    useGlobal: true,
    useColors: false,
  });
  globalThis.display = (...values) => {
    for (const value of values) if (!show(value)) process.stdout.write(written(value) + '\n');
  };
  globalThis.require = require('module').createRequire(process.cwd() + '/');

  const inWords = (error) => {
    if (!(error instanceof Error) && !(error && typeof error.stack === 'string')) return `Thrown: ${written(error)}`;
    const lines = String(error.stack).split('\n');
    const own = lines.findIndex((line) => /\[eval|node:internal|node:domain|node:repl|node:vm/.test(line));
    return cut((own > 0 ? lines.slice(0, own) : lines).join('\n'));
  };

  // If code such as `{a: 1}` can be parsed as an object, it is not treated as a block.
  const options = { filename: 'repl' };
  const loader = vm.constants && vm.constants.USE_MAIN_CONTEXT_DEFAULT_LOADER;
  if (loader) options.importModuleDynamically = loader;
  // Hides the warning about this experimental option, which does not help the author of the code.
  const emitWarning = process.emitWarning;
  process.emitWarning = (warning, ...rest) => {
    if (!/USE_MAIN_CONTEXT_DEFAULT_LOADER/.test(String(warning))) emitWarning.call(process, warning, ...rest);
  };
  const compiled = (code) => {
    if (/^\s*\{/.test(code) && !/;\s*$/.test(code)) {
      try {
        return new vm.Script(`(${code.trim()}\n)`, options);
      } catch {}
    }
    return new vm.Script(code, options);
  };

  const evaluate = (code) =>
    new Promise((resolve) => {
      let isOver = false;
      const end = (error, value, interrupted) => {
        if (isOver) return;
        isOver = true;
        state.interrupt = null;
        state.fail = null;
        resolve({ error, value, interrupted });
      };
      state.interrupt = () => end(new Error('Interrupted'), undefined, true);
      const isInterrupt = (error) => error && error.code === 'ERR_SCRIPT_EXECUTION_INTERRUPTED';
      state.fail = (error) => end(error, undefined, isInterrupt(error));
      let script;
      try {
        script = compiled(code);
      } catch (error) {
        // Code with top-level `await` cannot be compiled as a script. The evaluator reports any other error again.
        if (/\bawait\b/.test(code)) {
          repl.eval(code + '\n', repl.context, 'repl', (error, value) => {
            error === null || error === undefined ? end(null, value, false) : state.fail && state.fail(error);
          });
          return;
        }
        end(error, undefined, false);
        return;
      }
      try {
        end(null, script.runInThisContext({ breakOnSigint: true, displayErrors: false }), false);
      } catch (error) {
        end(error === undefined || error === null ? { toString: () => String(error) } : error, undefined, isInterrupt(error));
      }
    });

  const serve = async (request) => {
    state.images = 0;
    state.nonce = request.nonce;
    const answer = { nonce: request.nonce, done: true };
    const { error, value, interrupted } = await evaluate(request.code);
    try {
      if (error !== null && error !== undefined) {
        const inner = error.err instanceof Error ? error.err : error;
        answer.error = interrupted ? 'Interrupted' : inWords(inner);
        if (/import statement outside a module/.test(answer.error)) answer.error += '\nUse `await import("…")` or `require("…")`.';
        answer.interrupted = Boolean(interrupted);
      } else if (value !== undefined && !show(value)) {
        answer.value = written(value);
      }
    } catch (second) {
      answer.error = `The value cannot be shown: ${second && second.message}`;
    }
    answer.left_out = Math.max(0, state.images - mostImages);
    try {
      await Promise.all([printed(process.stdout), printed(process.stderr)]);
    } catch {} // the code may have closed or replaced them
    write(2, request.mark);
    send(answer);
  };

  process.on('SIGINT', () => state.interrupt && state.interrupt());
  const astray = (error) => process.stderr.write(`Uncaught ${inWords(error)}\n`);
  process.on('uncaughtException', astray);
  // Errors of the evaluator also arrive here.
  const failed = (error) => (state.fail ? state.fail(error) : astray(error));
  repl._domain.removeAllListeners('error');
  repl._domain.on('error', failed);
  process.on('unhandledRejection', astray);

  let rest = '';
  let turn = Promise.resolve();
  const asked = new net.Socket({ fd: 3, readable: true, writable: false });
  asked.setEncoding('utf8');
  asked.on('data', (text) => {
    const lines = (rest + text).split('\n');
    rest = lines.pop();
    for (const line of lines) turn = turn.then(() => serve(JSON.parse(line)));
  });
  asked.on('close', () => process.exit(0));
  send({ ready: true });
})();
