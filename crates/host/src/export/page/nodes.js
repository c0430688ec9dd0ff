// The session as one list of nodes in reading order; what a subagent did stands below the call that launched it.

const LONG = 65536;

function readNodes(data) {
  const nodes = [];
  const push = (node) => {
    nodes.push({ height: 0, head: false, open: false, index: nodes.length, ...node });
    return nodes[nodes.length - 1];
  };
  // Not by recursion: how deep it goes is for the transcript to say.
  const level = (agent, depth, parent) => ({ agent, depth, parent, at: 0, reply: -1 });
  const stack = [...data.loose.map((agent) => level(agent, 1, null)).reverse(), level(0, 0, null)];
  while (stack.length) {
    const top = stack[stack.length - 1];
    const about = data.agents[top.agent];
    if (top.at === 0 && top.depth > 0) {
      const item = { kind: "agent", time: about.items[0]?.time, text: `${about.type}\n${about.description}` };
      top.parent = push({ item, kind: "agent", agent: top.agent, depth: top.depth, parent: top.parent });
      about.header = top.parent;
    }
    if (top.at >= about.items.length) {
      stack.pop();
      continue;
    }
    const item = about.items[top.at++];
    const node = push({ item, kind: item.kind, agent: top.agent, depth: top.depth, parent: top.parent, open: opensAtFirst(item) });
    node.head = item.reply !== undefined && item.reply !== top.reply;
    top.reply = item.reply ?? -1;
    for (const agent of [...(item.agents ?? [])].reverse()) stack.push(level(agent, top.depth + 1, top.parent));
  }
  return nodes;
}

function opensAtFirst(item) {
  return item.kind === "call" && Boolean(item.patches || item.error || item.media);
}

// By which word a node is filtered.
function category(node) {
  const { item } = node;
  if (item.kind === "call") return item.name;
  if (item.kind === "user") return item.author !== "person" ? "Notes" : node.depth ? "Subagents" : "You";
  return { text: "Replies", thinking: "Thinking", agent: "Subagents", failed: "Notes", compacted: "Notes", other: "Notes" }[item.kind];
}

// The texts of a node that a search goes through.
function texts(node) {
  const { item } = node;
  const all = [];
  if (item.text) all.push(item.text);
  if (item.kind === "call") {
    all.push(item.name);
    walk(item.input, (text) => all.push(text));
    for (const patch of item.patches ?? []) for (const hunk of patch.hunks) all.push(hunk.lines.join("\n"));
  }
  return all;
}

function walk(value, found) {
  const stack = [value];
  while (stack.length) {
    const next = stack.pop();
    if (typeof next === "string") found(next);
    else if (typeof next === "number") found(String(next));
    else if (next && typeof next === "object") for (const inner of Object.values(next)) stack.push(inner);
  }
}

// What is searched, in small letters. Long ones are not kept: they would double the memory of the page.
function haystack(node) {
  if (node.hay !== undefined) return node.hay;
  const hay = texts(node).join("\n").toLowerCase();
  if (hay.length < LONG) node.hay = hay;
  return hay;
}

class Session {
  constructor(data) {
    this.data = data;
    this.nodes = readNodes(data);
    this.only = new Set();
    this.errors = false;
    this.query = "";
    this.matches = [];
    this.filter();
  }

  passes(node) {
    if (this.errors && !node.item.error && node.kind !== "failed") return false;
    return this.only.size === 0 || this.only.has(category(node));
  }

  get isFiltered() {
    return this.only.size > 0 || this.errors;
  }

  // Which nodes have a row. A filter looks into what is folded, too.
  filter() {
    this.rows = this.nodes.filter((node) => {
      if (this.isFiltered) return this.passes(node);
      for (let at = node.parent; at; at = at.parent) if (!at.open) return false;
      return true;
    });
    this.rows.forEach((node, row) => (node.row = row));
    this.shown = new Set(this.rows);
  }

  search(query) {
    this.query = query.toLowerCase();
    this.matches = this.query
      ? this.nodes.filter((node) => (!this.isFiltered || this.passes(node)) && haystack(node).includes(this.query))
      : [];
  }

  // Opens whatever hides a node.
  reveal(node) {
    let hidden = false;
    for (let at = node.parent; at; at = at.parent) {
      hidden ||= !at.open;
      at.open = true;
    }
    if (!this.shown.has(node) && this.isFiltered) {
      this.only.clear();
      this.errors = false;
      hidden = true;
    }
    if (hidden) this.filter();
    return hidden;
  }

  categories() {
    const counts = new Map();
    for (const node of this.nodes) counts.set(category(node), (counts.get(category(node)) ?? 0) + 1);
    const first = ["You", "Replies", "Thinking", "Notes", "Subagents"];
    const tools = [...counts.keys()].filter((name) => !first.includes(name));
    tools.sort((one, other) => counts.get(other) - counts.get(one) || one.localeCompare(other));
    return [...first.filter((name) => counts.has(name)), ...tools].map((name) => [name, counts.get(name)]);
  }
}
