// Puts the parts together: head, figures, filters, search, keys, light and dark, print.

const KEYS = [
  ["j k", "next and previous entry"],
  ["Enter", "open or close it"],
  ["/", "search"],
  ["n N", "next and previous match"],
  ["g G", "to the beginning, to the end"],
  ["f", "filters"],
  ["e", "only what failed"],
  ["t", "timeline"],
  ["d", "light or dark"],
  ["?", "these keys"],
  ["Esc", "clear search and filters"],
];

function start() {
  const holder = $("data");
  const data = JSON.parse(holder.textContent);
  holder.remove();
  const session = new Session(data);
  let list;
  const renderer = new Renderer(session, (node, inside) => {
    if (!inside) node.open = !node.open;
    if (node.kind === "agent") {
      session.filter();
      node.stale = true;
      list.refresh();
    } else list.change(node);
  });
  const timeline = new Timeline(session, (node) => select(node, "middle"));
  list = new List(session, renderer);
  const searching = new Search(session, list, timeline);

  function select(node, into) {
    list.select(node, into);
    timeline.mark(node);
    showFilters();
  }

  showHead(data);
  showFigures(data, session);
  for (const [kind, name] of [["model", "model"], ["queue", "until its turn"], ["wait", "waiting for permission"], ["run", "running"], ["bad", "failed"]]) $("legend").append(el("li", { class: kind }, name));

  const filters = new Map();
  for (const [name, number] of session.categories()) {
    const button = el("button", { type: "button", click: () => {
      if (!session.only.delete(name)) session.only.add(name);
      refilter();
    } }, name, el("small", null, String(number)));
    filters.set(name, button);
    $("filters").append(button);
  }
  const failed = session.nodes.filter((node) => node.item.error || node.kind === "failed").length;
  const failures = el("button", { type: "button", click: () => toggleErrors() }, "Failed", el("small", null, String(failed)));
  if (failed) $("filters").append(failures);

  function showFilters() {
    for (const [name, button] of filters) button.setAttribute("aria-pressed", session.only.has(name));
    failures.setAttribute("aria-pressed", session.errors);
    $("everything").hidden = !session.isFiltered;
  }

  function refilter() {
    session.filter();
    list.refresh();
    searching.again();
    showFilters();
  }

  function toggleErrors() {
    session.errors = failed > 0 && !session.errors;
    refilter();
  }

  function clear() {
    session.only.clear();
    session.errors = false;
    refilter();
  }

  $("everything").addEventListener("click", clear);
  showFilters();

  const theme = new Theme(() => timeline.draw());
  $("theme").addEventListener("click", () => theme.toggle());
  $("print").addEventListener("click", () => window.print());
  window.addEventListener("beforeprint", () => {
    theme.paper(true);
    list.showEverything(true);
  });
  window.addEventListener("afterprint", () => {
    theme.paper(false);
    list.showEverything(false);
  });
  $("help").append(el("h2", null, "Keys"), el("dl", null, ...KEYS.flatMap(([keys, what]) => [el("dt", null, ...keys.split(" ").flatMap((key) => [el("kbd", null, key), " "])), el("dd", null, what)])));
  $("keys").addEventListener("click", () => $("help").showModal());
  $("rows").addEventListener("click", (event) => {
    const row = event.target.closest(".row");
    if (!row) return;
    list.current = session.nodes[row.dataset.node];
    list.draw();
    timeline.mark(list.current);
  });

  const end = (last) => {
    const rows = session.rows;
    if (rows.length) select(rows[last ? rows.length - 1 : 0]);
  };
  const step = (by) => {
    list.step(by);
    timeline.mark(list.current);
  };
  const actions = {
    j: () => step(1),
    k: () => step(-1),
    Enter: () => list.current && renderer.toggled(list.current),
    "/": () => {
      $("query").focus();
      $("query").select();
    },
    n: () => searching.step(1),
    N: () => searching.step(-1),
    g: () => end(false),
    G: () => end(true),
    f: () => $("filters").querySelector("button")?.focus(),
    e: toggleErrors,
    t: () => ($("time").hidden = !timeline.bars.length || !$("time").hidden),
    d: () => theme.toggle(),
    "?": () => $("help").showModal(),
    Escape: () => {
      searching.clear();
      clear();
      $("list").focus();
    },
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey || $("help").open) return;
    const inside = event.target;
    if (event.key === "Escape" && inside === $("query")) inside.blur();
    else if (inside.tagName === "INPUT" || (event.key === "Enter" && inside.tagName === "BUTTON")) return;
    const action = Object.hasOwn(actions, event.key) && actions[event.key];
    if (!action) return;
    event.preventDefault();
    action();
  });
  $("list").focus({ preventScroll: true });
  document.documentElement.dataset.ready = "true";
}

class Theme {
  constructor(changed) {
    this.changed = changed;
    this.system = window.matchMedia("(prefers-color-scheme: dark)");
    this.system.addEventListener("change", () => this.apply());
    this.apply();
  }

  get dark() {
    return this.chosen ?? this.system.matches;
  }

  toggle() {
    this.chosen = !this.dark;
    this.apply();
  }

  // Paper is white.
  paper(on) {
    this.onPaper = on;
    this.apply();
  }

  apply() {
    const dark = this.dark && !this.onPaper;
    document.documentElement.dataset.theme = dark ? "dark" : "light";
    $("theme").textContent = this.dark ? "Light" : "Dark";
    this.changed();
  }
}

class Search {
  constructor(session, list, timeline) {
    Object.assign(this, { session, list, timeline, at: -1 });
    $("query").addEventListener("input", () => {
      clearTimeout(this.timer);
      this.timer = setTimeout(() => this.run(), 120);
    });
    $("search").addEventListener("submit", (event) => {
      event.preventDefault();
      clearTimeout(this.timer);
      if ($("query").value.toLowerCase() === this.session.query) this.step(1);
      else this.run();
      $("list").focus({ preventScroll: true });
    });
    $("next").addEventListener("click", () => this.step(1));
    $("previous").addEventListener("click", () => this.step(-1));
    list.drawn = () => this.paint();
  }

  run() {
    this.session.search($("query").value);
    const { matches, rows } = { matches: this.session.matches, rows: this.session.rows };
    // From what is on the screen on, not from the beginning.
    const from = rows[this.list.at(this.list.box.scrollTop)]?.index ?? 0;
    this.at = matches.findIndex((node) => node.index >= from) - 1;
    if (matches.length) this.step(1);
    else this.report();
  }

  // Filters have changed.
  again() {
    if (!this.session.query) return;
    const current = this.session.matches[this.at];
    this.session.search(this.session.query);
    this.at = this.session.matches.indexOf(current);
    this.report();
  }

  step(by) {
    const { matches } = this.session;
    if (!matches.length) return;
    this.at = (this.at + by + matches.length) % matches.length;
    const node = matches[this.at];
    this.openAt(node);
    this.list.select(node, "middle");
    this.timeline.mark(node);
    this.report();
  }

  // A match may be in what is folded, or far down in a long text.
  openAt(node) {
    const { item } = node;
    const { query } = this.session;
    if (node.kind === "agent") return;
    const isFolded = ["call", "thinking"].includes(node.kind) || (node.kind === "user" && item.author !== "person");
    const shownFolded = node.kind === "call" && `${item.name} ${subject(item, this.session.data.session.cwd)}`.toLowerCase().includes(query);
    if (isFolded && !node.open && !shownFolded) node.open = true;
    const source = item.text ?? "";
    const place = source.toLowerCase().indexOf(query);
    if (place >= 0 && (node.kind === "call" || source.length > LONG)) {
      const name = { call: "result", thinking: "thinking", text: "body" }[node.kind] ?? (item.author === "person" ? "body" : "note");
      const end = cut(source, 0, PREVIEW, PREVIEW * 160);
      if (place + query.length > end || source.length > LONG) {
        const line = source.lastIndexOf("\n", Math.max(0, place - 400));
        const from = place < CHUNK_CHARACTERS / 4 ? 0 : place - line > 5000 ? place - 400 : line + 1;
        (node.views ??= new Map()).set(name, { from, open: true });
      }
    }
    for (const patch of item.patches ?? []) if (changesLength(item) > 60) (node.whole ??= new Set()).add(patch);
    this.list.change(node);
  }

  report() {
    const { matches, query } = this.session;
    $("next").hidden = $("previous").hidden = !matches.length;
    $("found").textContent = query ? (!matches.length ? "none" : this.at < 0 ? `${matches.length.toLocaleString("en")} found` : `${this.at + 1} of ${matches.length.toLocaleString("en")}`) : "";
    this.paint();
  }

  clear() {
    $("query").value = "";
    this.session.search("");
    this.at = -1;
    this.report();
  }

  // Marks what was found in what is on the screen.
  paint() {
    if (!CSS.highlights) return;
    const { query, matches } = this.session;
    CSS.highlights.clear();
    if (!query) return;
    const [others, current] = [new Highlight(), new Highlight()];
    let first = null;
    for (const [node, row] of this.list.made) {
      const texts = document.createTreeWalker(row, NodeFilter.SHOW_TEXT);
      let left = 500;
      for (let text = texts.nextNode(); text && left > 0; text = texts.nextNode()) {
        const source = text.data.toLowerCase();
        for (let at = source.indexOf(query); at >= 0 && left-- > 0; at = source.indexOf(query, at + query.length)) {
          if (at + query.length > text.length) break;
          const range = new StaticRange({ startContainer: text, startOffset: at, endContainer: text, endOffset: at + query.length });
          if (node === matches[this.at]) {
            current.add(range);
            first ??= text;
          } else others.add(range);
        }
      }
    }
    CSS.highlights.set("match", others);
    CSS.highlights.set("match-now", current);
    if (first && this.scrolled !== matches[this.at]) {
      this.scrolled = matches[this.at];
      first.parentElement.closest("pre, .diff")?.scrollTo({ top: Math.max(0, first.parentElement.offsetTop) });
    }
  }
}

function showHead(data) {
  const { session, agents } = data;
  $("title").textContent = session.title;
  const models = [...new Set(agents[0].replies.map((reply) => reply.model).filter(Boolean))];
  const about = [session.cwd, session.branch && `branch ${session.branch}`, models.join(", "), session.from !== undefined && day(session.from), `session ${session.id}`];
  $("about").textContent = about.filter(Boolean).join(" · ");
}

function showFigures(data, session) {
  const put = (name, value, kind) => $("figures").append(el("div", null, el("dt", null, name), el("dd", { class: kind }, value)));
  const calls = session.nodes.filter((node) => node.kind === "call");
  const failed = calls.filter((node) => node.item.error).length;
  const waited = calls.reduce((sum, node) => sum + (node.item.waited ?? 0), 0);
  const { from, to } = data.session;
  if (from !== undefined) put("Started", day(from));
  if (to !== undefined && to > from) put("Took", span(to - from));
  put("Prompts", String(session.nodes.filter((node) => node.kind === "user" && node.item.author === "person" && node.depth === 0).length));
  put("Replies", data.agents.reduce((sum, agent) => sum + agent.replies.length, 0).toLocaleString("en"));
  put("Tool calls", calls.length.toLocaleString("en"));
  if (failed) put("Failed", failed.toLocaleString("en"), "bad");
  if (data.agents.length > 1) put("Subagents", String(data.agents.length - 1));
  if (waited) put("Waiting for you", span(waited));
  const cost = data.spent.reduce((sum, one) => sum + (one.cost ?? 0), 0);
  if (data.spent.some((one) => one.cost !== undefined)) put("Cost", `${data.spent.some((one) => one.cost === undefined) ? "over " : ""}${money(cost)}`);
  const table = $("spent");
  $("spent-title").hidden = table.hidden = !data.spent.length;
  for (const one of data.spent) {
    const line = (name, value) => table.append(el("tr", null, el("th", null, name), el("td", null, value)));
    table.append(el("tr", { class: "model" }, el("th", { colspan: 2 }, one.model || "model")));
    line("read", tokens(one.input));
    if (one.cacheRead || one.cacheWrite) {
      line("from the cache", tokens(one.cacheRead));
      line("into the cache", tokens(one.cacheWrite));
    }
    line("written", tokens(one.output));
    line("cost", one.cost === undefined ? "not known" : money(one.cost));
  }
  if (data.repairs.length) $("repairs").append(...data.repairs.map((what) => el("p", null, what)));
}

start();
