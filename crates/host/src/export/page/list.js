// The rows that can be seen, and a few more; all others are two empty boxes as high as they would be.

const MORE = 600;

class List {
  constructor(session, renderer) {
    this.session = session;
    this.renderer = renderer;
    this.box = $("list");
    this.rows = $("rows");
    this.made = new Map();
    this.current = null;
    this.everything = false;
    this.box.addEventListener("scroll", () => this.schedule(), { passive: true });
    this.sizes = new ResizeObserver((entries) => this.measured(entries));
    new ResizeObserver(() => this.resized()).observe(this.box);
    this.refresh();
  }

  schedule() {
    if (this.scheduled) return;
    this.scheduled = true;
    requestAnimationFrame(() => {
      this.scheduled = false;
      this.draw();
    });
  }

  height(node) {
    return node.height || (node.guess ??= this.renderer.guess(node));
  }

  // Rows came, went or changed their order.
  refresh() {
    const anchor = this.anchor();
    this.sum();
    this.restore(anchor);
    this.draw();
  }

  sum() {
    const { rows } = this.session;
    const tops = new Float64Array(rows.length + 1);
    for (let at = 0; at < rows.length; at++) tops[at + 1] = tops[at] + this.height(rows[at]);
    this.tops = tops;
  }

  // The row at this height.
  at(height) {
    let [low, high] = [0, this.session.rows.length];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (this.tops[middle + 1] <= height) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // What stands at the upper edge, and how far above it begins: it stays there whatever changes around it.
  anchor() {
    const { rows } = this.session;
    if (!this.tops) return null;
    const first = [...this.made.keys()].filter((node) => node.row !== undefined && rows[node.row] === node);
    const top = this.box.scrollTop;
    let best = null;
    for (const node of first) {
      const begin = this.made.get(node).offsetTop - this.box.offsetTop;
      if (begin + this.height(node) > top && (!best || begin < best.begin)) best = { node, begin };
    }
    return best && { node: best.node, above: top - best.begin };
  }

  restore(anchor) {
    if (!anchor || this.session.rows[anchor.node.row] !== anchor.node) return;
    this.place();
    this.box.scrollTop = this.tops[anchor.node.row] + anchor.above;
  }

  place() {
    const [from, to] = this.range ?? [0, 0];
    $("above").style.height = `${this.tops[Math.min(from, this.tops.length - 1)]}px`;
    $("below").style.height = `${this.tops[this.tops.length - 1] - this.tops[Math.min(to, this.tops.length - 1)]}px`;
  }

  draw() {
    const { rows } = this.session;
    const top = this.box.scrollTop;
    const from = this.everything ? 0 : Math.max(0, this.at(top - MORE));
    const to = this.everything ? rows.length : Math.min(rows.length, this.at(top + this.box.clientHeight + MORE) + 1);
    this.range = [from, to];
    const wanted = new Set(rows.slice(from, to));
    for (const [node, row] of this.made) {
      if (wanted.has(node) && !node.stale) continue;
      this.sizes.unobserve(row);
      row.remove();
      this.made.delete(node);
    }
    let before = this.rows.firstChild;
    for (let at = from; at < to; at++) {
      const node = rows[at];
      let row = this.made.get(node);
      if (!row) {
        node.stale = false;
        row = this.renderer.row(node);
        row.setAttribute("aria-setsize", rows.length);
        this.made.set(node, row);
        this.sizes.observe(row);
      }
      row.setAttribute("aria-posinset", at + 1);
      row.classList.toggle("on", node === this.current);
      if (row === before) before = before.nextSibling;
      else this.rows.insertBefore(row, before);
    }
    this.place();
    this.drawn?.();
  }

  measured(entries) {
    if (this.everything) return;
    let changed = false;
    const anchor = this.anchor();
    for (const entry of entries) {
      const node = this.session.nodes[entry.target.dataset.node];
      const height = entry.borderBoxSize[0].blockSize;
      if (this.made.get(node) !== entry.target || Math.abs(node.height - height) < 0.5) continue;
      node.height = height;
      changed = true;
    }
    if (!changed) return;
    this.sum();
    this.restore(anchor);
    this.draw();
  }

  // At another width all rows have other heights.
  resized() {
    const width = this.box.clientWidth;
    if (this.width !== undefined && this.width !== width) for (const node of this.session.nodes) node.height = 0;
    this.width = width;
    for (const [node, row] of this.made) node.height = row.offsetHeight;
    this.refresh();
  }

  // A node looks different from now on.
  change(node) {
    node.stale = true;
    node.height = 0;
    node.guess = undefined;
    this.refresh();
  }

  select(node, into = "near") {
    if (this.session.reveal(node)) this.refresh();
    this.current = node;
    const view = this.box.clientHeight;
    // Twice: what is drawn there may be higher or lower than it was guessed to be.
    for (let round = 0; round < 2; round++) {
      const top = this.tops[node.row];
      const height = this.height(node);
      const above = this.box.scrollTop;
      const outside = top < above + 8 || top + Math.min(height, view * 0.7) > above + view;
      if (into === "middle" || outside) this.box.scrollTop = top - (into === "middle" ? view * 0.3 : Math.min(60, view * 0.1));
      this.draw();
      for (const [made, row] of this.made) made.height = row.offsetHeight;
      this.sum();
    }
    this.draw();
  }

  step(by) {
    const { rows } = this.session;
    if (!rows.length) return;
    let at = this.current && rows[this.current.row] === this.current ? this.current.row + by : this.at(this.box.scrollTop + 1);
    at = Math.max(0, Math.min(rows.length - 1, at));
    this.select(rows[at]);
  }

  // All of it at once, for paper.
  showEverything(on) {
    this.everything = on;
    if (!on) this.resized();
    else this.draw();
  }
}
