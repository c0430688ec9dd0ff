// Who did what when: a lane of the model's replies, lanes of calls that ran side by side, and the same for each
// subagent, below its call. Times in which nothing happened are a narrow gap.

const LANE = 13;
const SPACE = 3;
const RULER = 20;
const IDLE = 10000;
const MANY = 400;
// Browsers draw nothing on what is much higher.
const TALLEST = 12000;

function lanesOf(data, nodes) {
  const bars = [];
  const calls = new Map();
  for (const node of nodes) if (node.kind === "call" || node.kind === "agent") calls.set(node.item, node);
  const firstOf = new Map();
  for (const node of nodes) if (node.item.reply !== undefined) {
    const key = `${node.agent} ${node.item.reply}`;
    if (!firstOf.has(key)) firstOf.set(key, node);
  }
  // For each agent: its own lanes, then those of the subagents that it launched, packed into free rows.
  const groups = data.agents.map((about, agent) => {
    const own = [];
    about.replies.forEach((reply, number) => {
      if (reply.from !== undefined && reply.to !== undefined) own.push({ lane: 0, kind: "model", from: reply.from, to: reply.to, node: firstOf.get(`${agent} ${number}`), name: reply.model });
    });
    const ends = [];
    for (const item of about.items) {
      if (item.kind !== "call" || item.time === undefined) continue;
      const to = item.ended ?? item.started ?? item.time;
      let lane = ends.findIndex((end) => end <= item.time);
      if (lane < 0) lane = ends.length;
      ends[lane] = Math.max(to, item.time + 1);
      own.push({ lane: lane + 1, kind: item.error ? "bad" : "run", item, from: item.time, to, node: calls.get(item), name: item.name, agents: item.agents ?? [] });
    }
    const all = own.flatMap((bar) => [bar.from, bar.to]);
    return { own, height: ends.length + 1, from: all.reduce((a, b) => Math.min(a, b), Infinity), to: all.reduce((a, b) => Math.max(a, b), -Infinity) };
  });
  groups.forEach((group, agent) => {
    if (group.own.length) [data.agents[agent].from, data.agents[agent].to] = [group.from, group.to];
  });
  const boxes = [];
  const taken = [];
  let rows = 0;
  const put = (agent, above) => {
    const group = groups[agent];
    if (!group.own.length) return above;
    let top = above;
    const clashes = () => taken.find((one) => one.top < top + group.height && top < one.top + one.height && one.from < group.to && group.from < one.to);
    for (let clash = clashes(); clash; clash = clashes()) top = clash.top + clash.height;
    taken.push({ top, height: group.height, from: group.from, to: group.to });
    rows = Math.max(rows, top + group.height);
    if (agent) boxes.push({ top, height: group.height, from: group.from, to: group.to, agent });
    for (const bar of group.own) bars.push({ ...bar, row: top + bar.lane, agent });
    return top + group.height;
  };
  const waiting = [[0, 0], ...data.loose.map((agent) => [agent, 1])];
  while (waiting.length) {
    const [agent, above] = waiting.shift();
    const below = put(agent, above);
    for (const bar of groups[agent].own) for (const child of bar.agents ?? []) waiting.push([child, below]);
  }
  return { bars, boxes, rows };
}

// From times to places, with idle times made short.
class Scale {
  constructor(bars) {
    const spans = bars.map((bar) => [bar.from, Math.max(bar.to, bar.from + 1)]).sort((one, other) => one[0] - other[0]);
    this.parts = [];
    for (const [from, to] of spans) {
      const last = this.parts[this.parts.length - 1];
      if (last && from - last.to <= IDLE) last.to = Math.max(last.to, to);
      else this.parts.push({ from, to });
    }
    const busy = this.parts.reduce((sum, part) => sum + part.to - part.from, 0);
    this.gap = this.parts.length > 1 ? Math.max(1, Math.min(IDLE, (busy * 0.08) / (this.parts.length - 1))) : 0;
    let at = 0;
    for (const part of this.parts) {
      part.at = at;
      at += part.to - part.from + this.gap;
    }
    this.length = Math.max(1, at - this.gap);
  }

  place(time) {
    let [low, high] = [0, this.parts.length - 1];
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.parts[middle].from <= time) low = middle;
      else high = middle - 1;
    }
    const part = this.parts[low];
    return part.at + Math.min(time - part.from, part.to - part.from);
  }
}

class Timeline {
  constructor(session, go) {
    this.session = session;
    this.go = go;
    Object.assign(this, lanesOf(session.data, session.nodes));
    this.canvas = $("canvas");
    if (!this.bars.length) {
      $("time").hidden = true;
      return;
    }
    this.scale = new Scale(this.bars);
    this.bars.forEach((bar) => {
      bar.begin = this.scale.place(bar.from);
      bar.end = this.scale.place(bar.to);
    });
    this.bars.sort((one, other) => one.begin - other.begin);
    this.longest = this.bars.reduce((most, bar) => Math.max(most, bar.end - bar.begin), 0);
    // All of a long session would be one solid bar: its beginning, then.
    const most = this.bars.length > MANY ? this.bars[MANY / 2].end : this.scale.length;
    this.view = [0, Math.min(most, this.scale.length)];
    const calls = this.bars.filter((bar) => bar.item).length;
    this.canvas.setAttribute("aria-label", `Timeline: ${count(calls, "tool call")} over ${span(this.scale.length)}; the list below has the same in words`);
    this.listen();
    new ResizeObserver(() => this.draw()).observe($("lanes"));
  }

  listen() {
    const { canvas } = this;
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.offsetX, view: [...this.view], moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!drag) return this.hover(event);
      const by = ((drag.x - event.offsetX) / canvas.clientWidth) * (drag.view[1] - drag.view[0]);
      drag.moved ||= Math.abs(drag.x - event.offsetX) > 4;
      if (drag.moved) this.show(drag.view[0] + by, drag.view[1] + by);
    });
    canvas.addEventListener("pointerup", (event) => {
      const bar = drag && !drag.moved && this.hit(event.offsetX, event.offsetY);
      drag = null;
      if (bar?.node) this.go(bar.node);
    });
    canvas.addEventListener("pointerleave", () => ($("tip").hidden = true));
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && !event.shiftKey) return;
      event.preventDefault();
      if (event.shiftKey) this.move(Math.sign(event.deltaY || event.deltaX) * 0.15);
      else this.zoom(Math.exp(event.deltaY * 0.002), event.offsetX / canvas.clientWidth);
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => {
      const moves = { ArrowLeft: () => this.move(-0.2), ArrowRight: () => this.move(0.2), "+": () => this.zoom(0.6), "-": () => this.zoom(1.6), "0": () => this.show(0, this.scale.length) };
      if (!moves[event.key] || event.ctrlKey) return;
      event.preventDefault();
      moves[event.key]();
    });
    $("in").addEventListener("click", () => this.zoom(0.5));
    $("out").addEventListener("click", () => this.zoom(2));
    $("fit").addEventListener("click", () => this.show(0, this.scale.length));
  }

  zoom(by, around = 0.5) {
    const [from, to] = this.view;
    const middle = from + (to - from) * around;
    const width = Math.max(20, Math.min(this.scale.length, (to - from) * by));
    this.show(middle - width * around, middle + width * (1 - around));
  }

  move(by) {
    const [from, to] = this.view;
    this.show(from + (to - from) * by, to + (to - from) * by);
  }

  show(from, to) {
    const width = Math.min(this.scale.length, to - from);
    const start = Math.max(0, Math.min(this.scale.length - width, from));
    this.view = [start, start + width];
    this.draw();
  }

  x(place) {
    const [from, to] = this.view;
    return ((place - from) / (to - from)) * this.canvas.clientWidth;
  }

  top(row) {
    return RULER + row * (LANE + SPACE);
  }

  // The bars in sight: they are sorted by where they begin.
  *inSight() {
    const [from, to] = this.view;
    let [low, high] = [0, this.bars.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.bars[middle].begin < from - this.longest) low = middle + 1;
      else high = middle;
    }
    for (let at = low; at < this.bars.length && this.bars[at].begin <= to; at++) if (this.bars[at].end >= from) yield this.bars[at];
  }

  hit(x, y) {
    let best = null;
    for (const bar of this.inSight()) {
      const top = this.top(bar.row);
      if (y < top - 1 || y > top + LANE + 1) continue;
      const [from, to] = [this.x(bar.begin), this.x(bar.end)];
      const away = x < from ? from - x : x > to ? x - to : 0;
      if (away <= 4 && (!best || away <= best.away)) best = { bar, away };
    }
    return best?.bar ?? null;
  }

  hover(event) {
    const bar = this.hit(event.offsetX, event.offsetY);
    const tip = $("tip");
    tip.hidden = !bar;
    if (!bar) return;
    const lines = [];
    if (bar.item) {
      const { item } = bar;
      lines.push(`${item.name} ${subject(item, this.session.data.session.cwd)}`.slice(0, 200));
      const parts = [];
      const queued = (item.started ?? item.ended ?? item.time) - item.time - (item.waited ?? 0);
      if (queued > 20) parts.push(`${span(queued)} until its turn`);
      if (item.waited) parts.push(`${span(item.waited)} waiting for permission`);
      if (item.started !== undefined && item.ended !== undefined) parts.push(`${span(item.ended - item.started)} running`);
      else if (item.ended !== undefined && !item.waited) parts.push(span(item.ended - item.time));
      if (item.error) parts.push("failed");
      lines.push(parts.join(", "));
    } else lines.push(bar.name || "Model", `${span(bar.to - bar.from)} until the reply was there`);
    lines.push(clock(bar.from));
    tip.replaceChildren(...lines.filter(Boolean).map((line) => el("div", null, line)));
    const box = $("time").getBoundingClientRect();
    const left = Math.min(event.clientX - box.left + 12, box.width - tip.offsetWidth - 8);
    tip.style.left = `${Math.max(8, left)}px`;
    tip.style.top = `${event.clientY - box.top + 18}px`;
  }

  draw() {
    if (!this.bars.length || $("time").hidden) return;
    const { canvas } = this;
    const style = getComputedStyle(document.documentElement);
    const colour = (name) => style.getPropertyValue(`--${name}`).trim();
    const ratio = window.devicePixelRatio || 1;
    const width = $("lanes").clientWidth;
    const height = Math.min(TALLEST, this.top(this.rows) + 4);
    canvas.style.height = `${height}px`;
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.font = `11px ${style.getPropertyValue("--sans")}`;
    pen.textBaseline = "middle";
    this.drawRuler(pen, width, height, colour);
    for (const box of this.boxes) {
      const [from, to] = [this.x(this.scale.place(box.from)), this.x(this.scale.place(box.to))];
      if (to < 0 || from > width) continue;
      pen.fillStyle = colour("raised");
      pen.beginPath();
      pen.roundRect(from - 3, this.top(box.top) - 2, Math.max(6, to - from + 6), box.height * (LANE + SPACE) + 1, 4);
      pen.fill();
      // Who it is, where there is room beside it.
      const about = this.session.data.agents[box.agent];
      const next = this.boxes.filter((other) => other.from > box.to && other.top < box.top + box.height && box.top < other.top + other.height);
      const end = next.reduce((least, other) => Math.min(least, this.x(this.scale.place(other.from)) - 8), width);
      const names = [`${about.type}: ${about.description}`, about.type];
      const fits = names.find((name) => pen.measureText(name).width < end - to - 10);
      if (fits && to > 0) this.label(pen, fits, to + 8, this.top(box.top) + LANE / 2, width, colour("quiet"));
    }
    const paint = { model: colour("model-bar"), queue: colour("queue-bar"), wait: colour("wait-bar"), run: colour("run-bar"), bad: colour("bad-bar") };
    const ends = new Map();
    for (const bar of this.inSight()) {
      const [from, to] = [this.x(bar.begin), this.x(bar.end)];
      const right = Math.max(to, from + 2);
      // Of bars that fall on the same spot one is enough; those that failed are never left out.
      if (bar.kind !== "bad" && right <= (ends.get(bar.row) ?? -1)) continue;
      ends.set(bar.row, right);
      const top = this.top(bar.row);
      const { item } = bar;
      let start = from;
      if (item) {
        const begun = item.started ?? (item.waited ? item.ended : item.time);
        const asked = this.x(this.scale.place(begun - (item.waited ?? 0)));
        start = this.x(this.scale.place(begun));
        pen.fillStyle = paint.queue;
        if (asked - from >= 1) pen.fillRect(from, top + LANE / 2 - 1, asked - from, 2);
        pen.fillStyle = paint.wait;
        if (start - asked >= 1) pen.fillRect(asked, top, start - asked, LANE);
      }
      pen.fillStyle = paint[bar.kind];
      // A line between one and the next.
      pen.fillRect(start, top, Math.max(right - start - (right - start > 6 ? 1 : 0), 2), LANE);
      const room = right - Math.max(start, 0) - 8;
      if (room < 20) continue;
      const name = (bar.name || "model").slice(0, 80);
      const whole = item ? `${name} ${subject(item, this.session.data.session.cwd)}`.slice(0, 120) : name;
      const fits = [whole, name].find((text) => pen.measureText(text).width <= room);
      if (fits) this.label(pen, fits, Math.max(start, 0) + 4, top + LANE / 2 + 0.5, room, colour(`on-${bar.kind}`));
    }
    const now = this.current?.item.time;
    if (now !== undefined) {
      pen.fillStyle = colour("accent");
      pen.fillRect(Math.round(this.x(this.scale.place(now))), RULER - 4, 1.5, height);
    }
  }

  // Whole words or none: half a name says nothing.
  label(pen, text, x, y, room, colour) {
    if (pen.measureText(text).width > room) return;
    pen.fillStyle = colour;
    pen.fillText(text, x, y);
  }

  drawRuler(pen, width, height, colour) {
    const [from, to] = this.view;
    const steps = [10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10000, 30000, 60000, 120000, 300000, 600000, 1800000, 3600000, 7200000, 21600000, 86400000];
    const step = steps.find((one) => ((to - from) / one) * 80 < width) ?? steps[steps.length - 1] * Math.ceil(((to - from) * 80) / width / steps[steps.length - 1]);
    for (let at = Math.ceil(from / step) * step; at <= to; at += step) {
      const x = Math.round(this.x(at)) + 0.5;
      pen.fillStyle = colour("line");
      pen.fillRect(x, RULER - 4, 1, height - RULER);
      const label = at === 0 ? "0" : span(at).replace(/\.0 s/, " s").replace(/ 0 s$| 0 min$/, "");
      pen.fillStyle = colour("quiet");
      const wide = pen.measureText(label).width;
      if (x + wide < width) pen.fillText(label, Math.max(0, x - (at === 0 ? 0 : wide / 2)), 8);
    }
    for (let at = 0; at + 1 < this.scale.parts.length; at++) {
      const part = this.scale.parts[at];
      const begin = this.x(part.at + part.to - part.from);
      const end = this.x(this.scale.parts[at + 1].at);
      if (end < 0 || begin > width || end - begin < 3) continue;
      pen.fillStyle = colour("raised");
      pen.fillRect(begin + 1, RULER, end - begin - 2, height - RULER - 2);
      this.label(pen, `idle ${span(this.scale.parts[at + 1].from - part.to)}`, begin + 6, RULER + 8, end - begin - 12, colour("quiet"));
    }
  }

  // Which entry is read; the lanes follow.
  mark(node) {
    this.current = node;
    if (!this.bars.length) return;
    if (node?.item.time !== undefined) {
      const at = this.scale.place(node.item.time);
      const [from, to] = this.view;
      if (at < from || at > to) return this.show(at - (to - from) * 0.3, at + (to - from) * 0.7);
    }
    this.draw();
  }
}
