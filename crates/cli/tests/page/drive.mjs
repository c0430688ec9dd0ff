// Opens a session page in headless Chromium and does what a reader does. `node drive.mjs CASE PAGE` prints what it
// measured as one line of JSON, or says what is wrong and ends with 1. HAFT_PAGE_MODULES is where playwright-core is,
// HAFT_PAGE_CHROMIUM the browser, HAFT_PAGE_SHOTS a folder for pictures of what it saw.

import assert from "node:assert/strict";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";
import path from "node:path";

const { HAFT_PAGE_MODULES: modules, HAFT_PAGE_CHROMIUM: executablePath, HAFT_PAGE_SHOTS: shots } = process.env;
const { chromium } = createRequire(path.join(modules, "x"))("playwright-core");

// Nothing here waits longer.
const PATIENCE = 60_000;
const LONGEST = 170_000;

const [, , name, file] = process.argv;
const address = pathToFileURL(file).href;
const measured = {};

const browser = await chromium.launch({
  executablePath,
  headless: true,
  timeout: PATIENCE,
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage", "--enable-precise-memory-info",
    // No name means anything here: what would leave fails at once.
    "--host-resolver-rules=MAP * ~NOTFOUND",
  ],
});
const guard = setTimeout(async () => {
  console.error(`the case ${name} took longer than ${LONGEST / 1000} s`);
  await browser.close();
  process.exit(1);
}, LONGEST);

// A page, with everything it asks for.
async function open(options = {}) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 860 }, ...options });
  context.setDefaultTimeout(PATIENCE);
  const page = await context.newPage();
  const requests = [];
  const problems = [];
  const wire = await context.newCDPSession(page);
  await wire.send("Network.enable");
  wire.on("Network.requestWillBeSent", ({ request }) => requests.push(request.url));
  wire.on("Network.webSocketCreated", ({ url }) => requests.push(url));
  page.on("dialog", (dialog) => {
    problems.push(`a dialog: ${dialog.message()}`);
    dialog.dismiss();
  });
  page.on("pageerror", (error) => problems.push(`an error: ${error.stack}`));
  page.on("console", (said) => ["error", "warning"].includes(said.type()) && problems.push(said.text()));
  page.on("popup", () => problems.push("another window"));
  page.on("download", () => problems.push("a download"));
  await page.addInitScript(() => {
    window.violations = [];
    document.addEventListener("securitypolicyviolation", (event) => window.violations.push(`${event.violatedDirective} ${event.blockedURI}`));
  });
  const started = performance.now();
  await page.goto(address, { timeout: PATIENCE });
  await page.waitForSelector("html[data-ready]", { state: "attached" });
  const took = performance.now() - started;
  return { page, context, requests, problems, took, wire };
}

// The page is where it was, has asked for nothing, and nothing went wrong.
async function isQuiet({ page, requests, problems }) {
  assert.deepEqual(problems, []);
  assert.deepEqual(await page.evaluate(() => window.violations), []);
  assert.equal(page.url(), address);
  const others = requests.filter((url) => url !== address && !/^data:image\/(png|jpeg|gif|webp);base64,/.test(url));
  assert.deepEqual(others.map((url) => url.slice(0, 200)), []);
}

async function shot({ page }, title) {
  if (shots) await page.screenshot({ path: path.join(shots, `${name}-${title}.png`) });
}

const found = (page) => page.locator("#found").textContent();
const current = (page) => page.locator(".row.on").getAttribute("data-node").then(Number);
const onScreen = (page) => page.locator(".row.on").evaluate((row) => {
  const [list, box] = [document.getElementById("list").getBoundingClientRect(), row.getBoundingClientRect()];
  return box.bottom > list.top && box.top < list.bottom;
});

// Types what is looked for, and goes on to what was found: the page looks while a reader types, and Return is the next
// match, so that pressing it here would find the first or the second one, as the machine is fast.
async function search(page, words) {
  const says = (isEmpty) => page.waitForFunction((isEmpty) => (document.getElementById("found").textContent === "") === isEmpty, isEmpty);
  await page.fill("#query", "");
  await says(true);
  const started = performance.now();
  await page.fill("#query", words);
  await says(false);
  const took = performance.now() - started;
  await page.focus("#list");
  return took;
}

// What the page keeps in memory, in megabytes.
async function heap({ wire }) {
  await wire.send("HeapProfiler.enable");
  await wire.send("HeapProfiler.collectGarbage");
  const { usedSize } = await wire.send("Runtime.getHeapUsage");
  return usedSize / 1e6;
}

// Texts whose colour is too near to that of the ground behind them.
const faint = () => {
  const numbers = (colour) => colour.match(/[\d.]+/g).map(Number);
  const light = (colour) => {
    const [r, g, b] = colour.map((part) => part / 255).map((part) => (part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4));
    return 0.2126 * r + 0.7152 * g + 0.0722 * b;
  };
  const problems = new Set();
  const texts = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let text = texts.nextNode(); text; text = texts.nextNode()) {
    const holder = text.parentElement;
    if (!text.data.trim() || !holder.getClientRects().length || holder.closest("script, style, noscript, figure")) continue;
    let ground = holder;
    while (ground.parentElement && (numbers(getComputedStyle(ground).backgroundColor)[3] ?? 1) === 0) ground = ground.parentElement;
    const pair = [getComputedStyle(holder).color, getComputedStyle(ground).backgroundColor].map((colour) => light(numbers(colour).slice(0, 3)));
    const contrast = (Math.max(...pair) + 0.05) / (Math.min(...pair) + 0.05);
    if (contrast < 4.5) problems.add(`${contrast.toFixed(2)} ${holder.tagName}.${holder.className}: ${text.data.trim().slice(0, 30)}`);
  }
  return [...problems];
};

const cases = {
  // A session that haft made: everything a reader can do.
  async session() {
    const view = await open();
    const { page } = view;
    measured.open = view.took;
    await shot(view, "light");
    assert.deepEqual(await page.evaluate(faint), [], "light");

    // Clicks.
    const read = page.locator(".row.call", { hasText: "Read" }).first().locator(".fold");
    assert.equal(await read.getAttribute("aria-expanded"), "false");
    await read.click();
    await page.waitForSelector(".row.call .inside .inputs");
    assert.equal(await read.getAttribute("aria-expanded"), "true");
    assert.ok((await page.locator(".diff code.plus em.k").count()) > 0, "a difference is coloured");
    assert.ok((await page.locator(".diff code.plus i").count()) > 0, "what changed in a line is marked");
    const thinking = page.locator(".row.thinking .fold").first();
    await thinking.click();
    await page.waitForSelector(".row.thinking .inside");
    const agents = await page.locator(".row.agent").count();
    assert.ok(agents >= 2, "subagents");
    const before = await page.locator(".row.nested").count();
    await page.locator(".row.agent .fold").first().click();
    await page.waitForFunction((before) => document.querySelectorAll(".row.nested").length > before, before);
    await shot(view, "open");
    await page.keyboard.press("G");
    await page.waitForSelector("figure img");
    await page.waitForFunction(() => [...document.images].every((picture) => picture.naturalWidth > 0));
    await shot(view, "end");
    await page.keyboard.press("g");

    // Search.
    measured.search = await search(page, "DISCOUNT");
    assert.match(await found(page), /^1 of \d+$/);
    assert.ok(await onScreen(page));
    const first = await current(page);
    await page.keyboard.press("n");
    assert.match(await found(page), /^2 of \d+$/);
    assert.notEqual(await current(page), first);
    await page.keyboard.press("N");
    assert.equal(await current(page), first);
    assert.equal(await page.evaluate(() => CSS.highlights.get("match-now").size > 0), true);
    await shot(view, "search");
    await page.focus("#query");
    await page.keyboard.press("Enter");
    assert.match(await found(page), /^2 of \d+$/);
    await search(page, "there is no such text");
    assert.equal(await found(page), "none");
    // What a subagent said is found although it is folded.
    await search(page, "only in the subagent");
    assert.match(await found(page), /^\d of \d+$/);
    assert.ok(await onScreen(page));
    await page.keyboard.press("Escape");
    assert.equal(await found(page), "");

    // Filter.
    const filter = page.locator("#filters button", { hasText: /^Bash/ });
    await filter.click();
    assert.equal(await filter.getAttribute("aria-pressed"), "true");
    const names = await page.locator(".row .fold .name").allTextContents();
    assert.ok(names.length > 0 && names.every((name) => name === "Bash"), `${names}`);
    await page.click("#everything");
    assert.ok((await page.locator(".row").count()) > names.length);
    await page.keyboard.press("e");
    assert.ok((await page.locator(".row .fold:not(.error)").count()) === 0 && (await page.locator(".row .error").count()) > 0);
    await page.keyboard.press("e");

    // Keys.
    await page.keyboard.press("g");
    const start = await current(page);
    await page.keyboard.press("j");
    assert.equal(await current(page), start + 1);
    await page.keyboard.press("k");
    assert.equal(await current(page), start);
    await page.keyboard.press("G");
    assert.ok((await current(page)) > start + 5 && (await onScreen(page)));
    await page.keyboard.press("?");
    assert.equal(await page.locator("#help").evaluate((help) => help.open), true);
    await shot(view, "help");
    await page.keyboard.press("Escape");
    assert.equal(await page.locator("#help").evaluate((help) => help.open), false);
    await page.keyboard.press("f");
    assert.equal(await page.evaluate(() => document.activeElement.closest("#filters") !== null), true);
    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => document.activeElement.id), "query");
    await page.keyboard.press("Escape");
    assert.equal(await page.evaluate(() => document.activeElement.id), "list");
    await page.keyboard.press("t");
    assert.equal(await page.locator("#time").isVisible(), false);
    await page.keyboard.press("t");

    // The timeline: bars are named, and lead to their entries.
    const box = await page.locator("#canvas").boundingBox();
    const kinds = new Set();
    let calls = 0;
    for (let y = box.y + 26; y < Math.min(box.y + box.height, box.y + 150) && calls < 3; y += 16) {
      for (let x = box.x + 2; x < box.x + box.width && calls < 3; x += 12) {
        await page.mouse.move(x, y);
        if (!(await page.locator("#tip").isVisible())) continue;
        const tip = await page.locator("#tip div").first().textContent();
        if (kinds.has(tip)) continue;
        kinds.add(tip);
        if (!/^(Bash|Read|Edit|Agent|Write|Grep)/.test(tip)) continue;
        await page.mouse.click(x, y);
        calls++;
        assert.ok(await onScreen(page), `${tip} is on the screen`);
        const name = await page.locator(".row.on .name").first().textContent();
        assert.equal(name, tip.split(" ")[0]);
      }
    }
    assert.ok(calls >= 2, `bars: ${[...kinds]}`);
    await page.mouse.move(5, 400);
    await page.click("#in");
    await page.click("#in");
    await page.focus("#canvas");
    await page.keyboard.press("ArrowRight");
    await page.click("#fit");

    // Light and dark.
    await page.keyboard.press("g");
    const theme = () => page.evaluate(() => [document.documentElement.dataset.theme, getComputedStyle(document.body).backgroundColor]);
    const [, white] = await theme();
    await page.emulateMedia({ colorScheme: "dark" });
    await page.waitForSelector("html[data-theme=dark]");
    assert.notEqual((await theme())[1], white);
    assert.deepEqual(await page.evaluate(faint), [], "dark");
    await shot(view, "dark");
    await page.keyboard.press("d");
    assert.deepEqual(await theme(), ["light", white]);
    await page.click("#theme");
    assert.equal((await theme())[0], "dark");

    // Paper: everything, on white; afterwards all is as it was.
    const paper = await page.pdf({ format: "A4" });
    assert.ok(paper.length > 10_000);
    measured.paper = paper.length;
    await page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
    if (shots) (await import("node:fs")).writeFileSync(path.join(shots, "session.pdf"), paper);

    // A narrow window.
    await page.setViewportSize({ width: 480, height: 800 });
    await shot(view, "narrow");
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), "nothing sticks out");
    await isQuiet(view);
  },

  // A transcript that attacks its reader.
  async hostile() {
    const view = await open();
    const { page } = view;
    measured.open = view.took;
    // Everything is opened and looked at.
    for (let round = 0; round < 60; round++) {
      const closed = page.locator('.row .fold[aria-expanded="false"]');
      if (!(await closed.count())) break;
      await closed.first().click();
    }
    await shot(view, "open");
    const seen = await page.evaluate(() => ({
      hacked: window.hacked,
      scripts: document.scripts.length,
      elements: document.querySelectorAll("a, iframe, object, embed, link, base, svg, video, audio, form[action], [onclick], [onerror], [onload], [style*=url]").length,
      pictures: [...document.images].map((picture) => picture.src.slice(0, 22)),
      title: document.title,
      text: document.getElementById("rows").textContent,
    }));
    assert.equal(seen.hacked, undefined);
    assert.equal(seen.scripts, 1);
    assert.equal(seen.elements, 0);
    assert.ok(seen.pictures.every((source) => source === "data:image/png;base64,"), `${seen.pictures}`);
    assert.ok(seen.title.includes("</title>"), seen.title);
    for (const words of ["</script><script>window.hacked", "javascript:window.hacked", "⟨U+202E⟩", "<img src=x onerror="]) assert.ok(seen.text.includes(words), words);

    // Ten megabytes in one result: little of it is on the page, and the end is found.
    await search(page, "the very end of it");
    assert.match(await found(page), /^1 of 1$/);
    assert.ok(await page.locator(".row.on pre").textContent().then((text) => text.includes("the very end of it")));
    measured.characters = await page.evaluate(() => document.body.textContent.length);
    assert.ok(measured.characters < 2_000_000, `${measured.characters} characters on the page`);
    measured.search = await search(page, "xyzzy");
    await page.keyboard.press("Escape");
    await page.keyboard.press("G");
    await shot(view, "end");
    measured.heapMegabytes = await heap(view);
    await isQuiet(view);

    // Even if markup got in: the policy lets none of it run or load.
    const seenBefore = view.requests.length;
    const blocked = await page.evaluate(async () => {
      const add = (tag, properties) => document.body.append(Object.assign(document.createElement(tag), properties));
      add("script", { textContent: "window.hacked = 1" });
      add("script", { src: "http://example.com/a.js" });
      add("img", { src: "http://example.com/a.png" });
      add("img", { src: "x.png" });
      add("iframe", { src: "http://example.com/" });
      add("link", { rel: "stylesheet", href: "http://example.com/a.css" });
      add("style", { textContent: "body { background: url(http://example.com/b.png) }" });
      const holder = document.createElement("div");
      holder.innerHTML = "<p onclick='window.hacked = 2' style='color: red'>x</p>";
      document.body.append(holder);
      holder.firstChild.click();
      const refused = await fetch("http://example.com/").then(() => "answered", () => "refused");
      navigator.sendBeacon?.("http://example.com/", "x");
      await new Promise((done) => setTimeout(done, 300));
      return { hacked: window.hacked, refused, violations: window.violations.length };
    });
    assert.equal(blocked.hacked, undefined);
    assert.equal(blocked.refused, "refused");
    assert.ok(blocked.violations >= 7, `${blocked.violations} violations`);
    const sent = view.requests.slice(seenBefore).filter((url) => /^(https?|wss?|file):/.test(url) && url !== address);
    measured.blocked = blocked.violations;
    // Chromium names what it refuses, too; none of it was answered.
    const answered = await page.evaluate(() => performance.getEntriesByType("resource").filter((entry) => entry.responseStatus > 0 || entry.transferSize > 0).map((entry) => entry.name));
    assert.deepEqual(answered, [], `asked for: ${sent}`);
  },

  // Five thousand turns.
  async large() {
    const view = await open();
    const { page } = view;
    measured.open = view.took;
    const rows = () => page.locator(".row").count();
    measured.rows = await rows();
    assert.ok(measured.rows < 120, `${measured.rows} rows on the page`);
    measured.search = await search(page, "needle 4321");
    assert.equal(await found(page), "1 of 1");
    assert.ok(await onScreen(page));
    const every = await search(page, "turn");
    measured.searchEvery = every;
    let started = performance.now();
    await page.keyboard.press("G");
    assert.ok(await onScreen(page));
    assert.ok(await page.locator(".row.on").textContent().then((text) => text.includes("turn 4999")), "the end is the end");
    measured.end = performance.now() - started;
    // By the wheel through some of it: what is shown is what belongs there, and in order.
    await page.keyboard.press("g");
    await page.mouse.move(700, 600);
    started = performance.now();
    for (let round = 0; round < 40; round++) {
      await page.mouse.wheel(0, 1500);
      await page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done))));
      const order = await page.locator(".row").evaluateAll((rows) => rows.map((row) => Number(row.dataset.node)));
      assert.ok(order.length > 3 && order.every((node, at) => at === 0 || node > order[at - 1]), `${order}`);
    }
    measured.scroll = (performance.now() - started) / 40;
    const middle = await page.evaluate(() => {
      const list = document.getElementById("list");
      list.scrollTop = list.scrollHeight / 2;
      return new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => {
        const box = list.getBoundingClientRect();
        done(document.elementFromPoint(box.left + box.width / 2, box.top + box.height / 2)?.closest(".row") !== null);
      })));
    });
    assert.ok(middle, "the middle is not empty");
    started = performance.now();
    await page.locator("#filters button", { hasText: /^Edit/ }).click();
    measured.filter = performance.now() - started;
    assert.ok((await rows()) < 120);
    await shot(view, "filter");
    await page.click("#everything");
    await page.keyboard.press("g");
    await shot(view, "light");
    measured.heapMegabytes = await heap(view);
    assert.ok((await rows()) < 120);
    await isQuiet(view);
  },

  // Only what it looks like: `docs/pictures/make` uses it.
  async picture() {
    const { HAFT_PAGE_PICTURE: to, HAFT_PAGE_KEYS: keys } = process.env;
    const view = await open({ viewport: { width: 1180, height: 760 }, colorScheme: process.env.HAFT_PAGE_SCHEME ?? "light" });
    for (const key of (keys ?? "").split(" ").filter(Boolean)) await view.page.keyboard.press(key);
    await view.page.screenshot({ path: to });
  },
};

try {
  await cases[name]();
  console.log(JSON.stringify(measured, (_, value) => (typeof value === "number" ? Math.round(value * 10) / 10 : value)));
} catch (error) {
  console.error(error);
  process.exitCode = 1;
} finally {
  clearTimeout(guard);
  await browser.close();
}
