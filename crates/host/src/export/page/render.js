// One node as a row. What a row shows when it is open is made when it is opened.

const PREVIEW = 14;
const CHUNK_LINES = 1500;
const CHUNK_CHARACTERS = 200000;
const SUBJECTS = ["description", "command", "file_path", "notebook_path", "pattern", "path", "url", "query", "skill", "name", "prompt", "question"];

function subject(item, cwd) {
  const input = item.input ?? {};
  for (const key of SUBJECTS) {
    if (typeof input[key] !== "string" || !input[key]) continue;
    if (key === "description" && typeof input.command === "string") return input.command;
    return near(input[key], cwd);
  }
  const first = Object.values(input).find((value) => typeof value === "string");
  return first ? near(first, cwd) : "";
}

function changes(item) {
  let plus = 0;
  let minus = 0;
  for (const patch of item.patches ?? []) {
    for (const hunk of patch.hunks) {
      for (const line of hunk.lines) {
        if (line[0] === "+") plus++;
        else if (line[0] === "-") minus++;
      }
    }
  }
  return { plus, minus };
}

class Renderer {
  constructor(session, toggled) {
    this.session = session;
    this.data = session.data;
    // Called when a node was opened or closed.
    this.toggled = toggled;
  }

  row(node) {
    const row = el("div", { class: `row ${node.item.author ?? node.kind}`, role: "listitem", "data-node": node.index });
    row.style.setProperty("--depth", node.depth);
    if (node.depth) row.classList.add("nested");
    if (node.row === 0) row.classList.add("first");
    if (node.head) row.append(this.replyHead(node));
    row.append(...this.content(node));
    return row;
  }

  replyHead(node) {
    const reply = this.data.agents[node.agent].replies[node.item.reply];
    const parts = [];
    if (reply.usage.output) parts.push(`${tokens(reply.usage.input + reply.usage.cacheRead + reply.usage.cacheWrite)} in, ${tokens(reply.usage.output)} out`);
    if (reply.cost) parts.push(money(reply.cost));
    if (reply.from !== undefined && reply.to !== undefined) parts.push(span(reply.to - reply.from));
    return this.who(reply.model || "Model", node.item.time, parts.join(" · "));
  }

  who(name, time, note) {
    return el("div", { class: "who" }, el("b", null, name), note ? el("span", null, note) : null, el("span", { class: "fill" }), time === undefined ? null : el("span", null, clock(time)));
  }

  content(node) {
    const { item } = node;
    switch (node.kind) {
      case "user": return this.user(node);
      case "text": return [el("div", { class: "body" }, this.text(node, item.text, "body"), ...this.media(item))];
      case "thinking": return this.folded(node, "Thinking", count(words(item.text), "word"), () => this.text(node, item.text, "thinking"));
      case "call": return this.call(node);
      case "agent": return this.agent(node);
      case "compacted": return [el("div", { class: "divider" }, `Conversation compacted${item.tokens ? ` at ${tokens(item.tokens)} tokens` : ""}${item.trigger ? ` (${item.trigger})` : ""}`)];
      case "failed": return [this.who("The provider failed", item.time), el("div", { class: "body plain" }, item.text)];
      default: return [el("div", { class: "divider" }, item.text)];
    }
  }

  user(node) {
    const { item } = node;
    if (item.author === "person") {
      const whose = node.depth ? "Task" : "You";
      return [this.who(whose, item.time), el("div", { class: "body" }, this.text(node, item.text, "body"), ...this.media(item))];
    }
    const name = item.author === "summary" ? "Summary of what came before" : "Note to the model";
    return this.folded(node, name, item.text.slice(0, 160).replace(/<\/?system-reminder>/g, "").trim(), () => this.text(node, item.text, "note"));
  }

  // Prose, unless it is too long for that.
  text(node, source, name) {
    return source.length > LONG ? this.long(node, source, name) : markdown(source);
  }

  folded(node, name, note, inside) {
    const head = el("button", { class: `fold quiet${node.open ? " open" : ""}`, type: "button", "aria-expanded": String(node.open), click: () => this.toggled(node) }, el("span", { class: "name" }, name), el("span", { class: "subject" }, note));
    return node.open ? [head, el("div", { class: "inside text" }, inside())] : [head];
  }

  agent(node) {
    const about = this.data.agents[node.agent];
    const calls = about.items.filter((item) => item.kind === "call").length;
    const notes = [count(calls, "call")];
    const out = about.replies.reduce((sum, reply) => sum + reply.usage.output, 0);
    if (out) notes.push(`${tokens(out)} out`);
    if (about.from !== undefined) notes.push(span(about.to - about.from));
    return [el("button", { class: `fold${node.open ? " open" : ""}`, type: "button", "aria-expanded": String(node.open), click: () => this.toggled(node) },
      el("span", { class: "name" }, `Subagent ${about.type}`), el("span", { class: "subject" }, about.description), el("span", { class: "note" }, notes.join(" · ")))];
  }

  call(node) {
    const { item } = node;
    const notes = [];
    const { plus, minus } = changes(item);
    if (plus || minus) notes.push(el("span", { class: "note" }, el("span", { class: "plus" }, `+${plus}`), " ", el("span", { class: "minus" }, `−${minus}`)));
    if (item.waited) notes.push(el("span", { class: "note wait" }, `asked, ${span(item.waited)}`));
    if (item.error) notes.push(el("span", { class: "note bad" }, "failed"));
    else if (!item.answered) notes.push(el("span", { class: "note bad" }, "no result"));
    if (item.ended !== undefined && item.time !== undefined) notes.push(el("span", { class: "note" }, span(item.ended - (item.started ?? item.time))));
    const head = el("button", { class: `fold${node.open ? " open" : ""}${item.error ? " error" : ""}`, type: "button", "aria-expanded": String(node.open), click: () => this.toggled(node) },
      el("span", { class: "name" }, item.name), el("span", { class: "subject" }, subject(item, this.data.session.cwd).slice(0, 400)), ...notes);
    if (!node.open) return [head];
    const inside = el("div", { class: "inside" });
    if (item.patches && !item.error) for (const patch of item.patches) inside.append(this.patch(node, patch));
    else if (Object.keys(item.input ?? {}).length) inside.append(this.inputs(node));
    if (item.text && !(item.patches && !item.error)) inside.append(this.long(node, item.text, "result"));
    inside.append(...this.media(item));
    return [head, inside];
  }

  inputs(node) {
    const list = el("dl", { class: "inputs" });
    for (const [name, value] of Object.entries(node.item.input)) {
      const text = typeof value === "string" ? value : JSON.stringify(value, null, 1);
      list.append(el("dt", null, name), el("dd", null, text.length > 2000 || text.split("\n", 40).length === 40 ? this.long(node, text, `input ${name}`) : text));
    }
    return list;
  }

  patch(node, patch) {
    const box = el("div", { class: "diff" });
    const known = language(patch.file);
    const all = node.whole?.has(patch);
    const grid = el("div", { class: "grid" });
    let rows = 0;
    let left = 0;
    const most = all ? 20000 : 60;
    let end = 0;
    for (const hunk of patch.hunks) {
      if (rows < most && (end || hunk.oldStart > 1)) grid.append(el("span", { class: "gap" }, `line ${hunk.newStart}`));
      let before = hunk.oldStart;
      let after = hunk.newStart;
      const marks = pairs(hunk.lines);
      hunk.lines.forEach((line, at) => {
        const sign = line[0];
        const number = sign === "-" ? before : after;
        if (sign !== "+") before++;
        if (sign !== "-") after++;
        if (rows++ >= most) return void left++;
        const kind = sign === "+" ? " plus" : sign === "-" ? " minus" : "";
        const text = kind || sign === " " ? line.slice(1) : line;
        const code = el("code", { class: kind.trim() });
        const mark = marks.get(at);
        if (mark) {
          highlight(line.slice(1, 1 + mark[0]), known, code);
          code.append(el("i", null, line.slice(1 + mark[0], 1 + mark[1])));
          highlight(line.slice(1 + mark[1]), known, code);
        } else highlight(text, known, code);
        grid.append(el("span", { class: `number${kind}` }, String(number)), el("span", { class: `sign${kind}` }, sign === "+" ? "+" : sign === "-" ? "−" : ""), code);
      });
      end = before;
    }
    box.append(grid);
    const whole = el("div", null, el("div", { class: "file" }, near(patch.file, this.data.session.cwd)), box);
    if (left) {
      const more = () => {
        (node.whole ??= new Set()).add(patch);
        this.toggled(node, true);
      };
      whole.append(el("div", { class: "long more" }, el("button", { type: "button", click: more }, `Show ${count(left, "more line")}`)));
    }
    return whole;
  }

  // Text of any length: a few lines at first, then a part at a time, so that ten megabytes are no burden.
  long(node, source, name) {
    const views = (node.views ??= new Map());
    const view = views.get(name) ?? { from: 0, open: name === "body" };
    const box = el("div", { class: name === "body" || name === "thinking" || name === "note" ? "" : `long ${name === "result" ? "result" : ""}` });
    const change = (next) => {
      views.set(name, { ...view, ...next });
      this.toggled(node, true);
    };
    const lines = view.open ? CHUNK_LINES : PREVIEW;
    const characters = view.open ? CHUNK_CHARACTERS : PREVIEW * 160;
    const end = cut(source, view.from, lines, characters);
    if (view.from > 0) {
      box.append(el("div", { class: "more" }, el("button", { type: "button", click: () => change({ from: back(source, view.from), open: true }) }, "Show what comes before")));
    }
    box.append(el("pre", null, source.slice(view.from, end).replace(/\n$/, "")));
    if (end < source.length) {
      const rest = source.length - end;
      const label = view.open ? "Show what comes next" : "Show more";
      const next = view.open ? { from: end } : { open: true };
      box.append(el("div", { class: "more" }, el("button", { type: "button", click: () => change(next) }, label), el("span", null, `${count(rest, "more character")}`)));
    }
    return box;
  }

  media(item) {
    return (item.media ?? []).map((one) => {
      if (!one.data) return el("figure", null, el("figcaption", null, `${one.type}, not shown`));
      const picture = el("img", { alt: one.type, loading: "lazy", decoding: "async" });
      picture.src = `data:${one.type};base64,${one.data}`;
      const bytes = Math.floor((one.data.length * 3) / 4);
      const size = bytes < 2048 ? count(bytes, "byte") : count(Math.round(bytes / 1024), "kilobyte");
      return el("figure", null, picture, el("figcaption", null, `${one.type}, ${size}`));
    });
  }

  // How high a row may be before it was ever shown.
  guess(node) {
    const { item } = node;
    const head = node.head ? 36 : 0;
    const wrapped = (text, width) => Math.min(400, text.length / width + (text.length < 20000 ? text.split("\n").length : 100));
    if (node.kind === "text") return head + 16 + 24 * wrapped(item.text, 110);
    if (node.kind === "user" && item.author === "person") return 62 + 24 * wrapped(item.text, 110);
    if (node.kind === "call" && node.open) return head + 50 + (item.patches ? 20 * Math.min(60, changesLength(item)) : 60 + 19 * PREVIEW) + (item.media ? 300 : 0);
    if (node.open && item.text && node.kind !== "agent") return head + 46 + 24 * wrapped(item.text, 100);
    return head + 44;
  }
}

function changesLength(item) {
  return item.patches.reduce((sum, patch) => sum + 1 + patch.hunks.reduce((sum, hunk) => sum + hunk.lines.length, 0), 0);
}

function words(text) {
  return text.length > LONG ? Math.round(text.length / 6) : text.split(/\s+/).filter(Boolean).length;
}

// Where so many lines and characters end, at the end of a line if there is one.
function cut(source, from, lines, characters) {
  let at = from;
  for (let line = 0; line < lines; line++) {
    const next = source.indexOf("\n", at);
    if (next < 0 || next + 1 - from > characters) return Math.min(source.length, at > from && next >= 0 ? at : from + characters);
    at = next + 1;
    if (at >= source.length) return source.length;
  }
  return at;
}

// Where the part before this one begins.
function back(source, from) {
  const start = Math.max(0, from - CHUNK_CHARACTERS / 4);
  const line = source.lastIndexOf("\n", start);
  return start === 0 || line < 0 || start - line > 5000 ? start : line + 1;
}

// Which parts of removed and added lines that stand for each other differ.
function pairs(lines) {
  const marks = new Map();
  let at = 0;
  while (at < lines.length) {
    let minus = at;
    while (minus < lines.length && lines[minus][0] === "-") minus++;
    let plus = minus;
    while (plus < lines.length && lines[plus][0] === "+") plus++;
    if (minus > at && plus - minus === minus - at) {
      for (let pair = 0; pair < minus - at; pair++) {
        const [one, other] = [lines[at + pair].slice(1), lines[minus + pair].slice(1)];
        if (one.length > LONGEST_LINE || other.length > LONGEST_LINE) continue;
        let start = 0;
        while (start < one.length && one[start] === other[start]) start++;
        let tail = 0;
        while (tail < Math.min(one.length, other.length) - start && one[one.length - 1 - tail] === other[other.length - 1 - tail]) tail++;
        // Where hardly anything is the same, marks say nothing.
        if (start + tail < Math.max(one.length, other.length) / 3) continue;
        if (one.length - tail > start) marks.set(at + pair, [start, one.length - tail]);
        if (other.length - tail > start) marks.set(minus + pair, [start, other.length - tail]);
      }
    }
    at = Math.max(plus, at + 1);
  }
  return marks;
}
