// As much Markdown as replies use, as elements. Markup in it stays text, pictures are named and not loaded, and an
// address is shown, not linked: a page made of what a model said takes its reader nowhere by a click.

function markdown(source) {
  const box = el("div", { class: "prose" });
  if (source.length > LONG) {
    box.append(el("div", { class: "plain" }, source));
    return box;
  }
  blocks(source.split("\n"), box, 0);
  return box;
}

const BULLET = /^(\s{0,12})([-*+]|\d{1,9}[.)])\s+(\[[ xX]\]\s+)?(.*)$/;
const DEEPEST = 8;

function blocks(lines, box, depth) {
  let at = 0;
  let paragraph = [];
  const flush = () => {
    if (paragraph.length) box.append(inline(paragraph.join("\n"), el("p")));
    paragraph = [];
  };
  while (at < lines.length) {
    const line = lines[at];
    const fence = /^\s{0,3}(`{3,}|~{3,})\s*([\w+#.-]*)[^`]*$/.exec(line);
    if (fence) {
      flush();
      const end = fence[1];
      const code = [];
      at++;
      while (at < lines.length) {
        const close = lines[at].trim();
        if (close.length >= end.length && close === end[0].repeat(close.length)) break;
        code.push(lines[at++]);
      }
      at++;
      const inside = el("code");
      code.forEach((text, number) => {
        if (number) inside.append("\n");
        highlight(text, language(fence[2]), inside);
      });
      box.append(el("pre", null, inside));
      continue;
    }
    const heading = /^(#{1,6})\s+(.*?)\s*#*$/.exec(line);
    if (heading) {
      flush();
      const level = Math.min(5, heading[1].length + 2);
      box.append(inline(heading[2], el(`h${level}`)));
      at++;
      continue;
    }
    if (/^\s{0,3}([-*_])(\s*\1){2,}\s*$/.test(line)) {
      flush();
      box.append(el("hr"));
      at++;
      continue;
    }
    if (/^\s{0,3}>/.test(line) && depth < DEEPEST) {
      flush();
      const inner = [];
      while (at < lines.length && /^\s{0,3}>/.test(lines[at])) inner.push(lines[at++].replace(/^\s{0,3}> ?/, ""));
      const quote = el("blockquote");
      blocks(inner, quote, depth + 1);
      box.append(quote);
      continue;
    }
    if (line.includes("|") && /^[\s|:-]*-[\s|:-]*$/.test(lines[at + 1] ?? "") && (lines[at + 1] ?? "").includes("|")) {
      flush();
      at = table(lines, at, box);
      continue;
    }
    const bullet = BULLET.exec(line);
    if (bullet && depth < DEEPEST && (paragraph.length === 0 || !/^\d/.test(bullet[2]) || bullet[2].length === 2)) {
      flush();
      at = list(lines, at, bullet, box, depth);
      continue;
    }
    if (line.trim() === "") flush();
    else paragraph.push(line);
    at++;
  }
  flush();
}

function list(lines, at, first, box, depth) {
  const ordered = /^\d/.test(first[2]);
  const made = el(ordered ? "ol" : "ul", ordered ? { start: parseInt(first[2], 10) } : null);
  const indent = first[1].length;
  while (at < lines.length) {
    const bullet = BULLET.exec(lines[at]);
    if (!bullet || bullet[1].length > indent + 1 || bullet[1].length < indent || /^\d/.test(bullet[2]) !== ordered) break;
    const inner = [bullet[4]];
    at++;
    while (at < lines.length) {
      const line = lines[at];
      const space = /^\s*/.exec(line)[0].length;
      const blank = line.trim() === "";
      if (blank && /^\s*/.exec(lines[at + 1] ?? "")[0].length <= indent) break;
      if (!blank && space <= indent) break;
      inner.push(line.slice(Math.min(space, indent + bullet[2].length + 1)));
      at++;
    }
    const entry = el("li");
    if (bullet[3]) entry.append(bullet[3].includes("]") && /x/i.test(bullet[3]) ? "☑ " : "☐ ");
    blocks(inner, entry, depth + 1);
    made.append(entry);
    while (at < lines.length && lines[at].trim() === "" && BULLET.test(lines[at + 1] ?? "")) at++;
  }
  box.append(made);
  return at;
}

function table(lines, at, box) {
  const cells = (line) => line.trim().replace(/^\||\|$/g, "").split("|").map((cell) => cell.trim());
  const made = el("table");
  made.append(el("tr", null, ...cells(lines[at]).map((cell) => inline(cell, el("th")))));
  at += 2;
  while (at < lines.length && lines[at].includes("|") && lines[at].trim()) {
    made.append(el("tr", null, ...cells(lines[at]).map((cell) => inline(cell, el("td")))));
    at++;
  }
  box.append(made);
  return at;
}

// Each alternative is bounded, so that no text takes long.
const INLINE = /(`{1,4})([^`]{1,2000}?)\1(?!`)|\*\*([^*\n]{1,2000})\*\*|(?<![\w*])\*([^*\s][^*\n]{0,2000})\*(?![\w*])|(?<!\w)_([^_\s][^_\n]{0,2000})_(?!\w)|~~([^~\n]{1,2000})~~|(!?)\[([^\]\n]{0,1000})\]\(([^)\s]{0,4000})[^)\n]{0,200}\)/g;

function inline(source, into, depth = 0) {
  let at = 0;
  const nest = (tag, text) => (depth < 4 ? inline(text, el(tag), depth + 1) : el(tag, null, text));
  for (const found of source.matchAll(INLINE)) {
    if (found.index > at) into.append(source.slice(at, found.index));
    at = found.index + found[0].length;
    const [, , code, strong, star, underline, struck, picture, label, address] = found;
    if (code !== undefined) into.append(el("code", null, code));
    else if (strong !== undefined) into.append(nest("strong", strong));
    else if (star !== undefined || underline !== undefined) into.append(nest("em", star ?? underline));
    else if (struck !== undefined) into.append(nest("s", struck));
    else {
      if (picture) into.append("picture: ");
      into.append(label || "link", " ", el("span", { class: "address" }, `⟨${address}⟩`));
    }
  }
  into.append(source.slice(at));
  return into;
}
