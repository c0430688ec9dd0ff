// Elements and figures. Text of the transcript reaches the page only as text nodes: no markup is ever parsed.

const $ = (id) => document.getElementById(id);

// An element with properties, children and text. `style` and `on…` are no strings here, and none is taken from data.
function el(tag, properties, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties ?? {})) {
    if (value === undefined || value === false) continue;
    if (name === "class") made.className = value;
    else if (name === "click") made.addEventListener("click", value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.filter((child) => child !== null && child !== undefined && child !== false));
  return made;
}

function count(number, one, many = `${one}s`) {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

function tokens(number) {
  if (number < 1000) return String(number);
  if (number < 100000) return `${(number / 1000).toFixed(1)}k`;
  if (number < 1e6) return `${Math.round(number / 1000)}k`;
  return `${(number / 1e6).toFixed(2)}M`;
}

function money(dollars) {
  return `$${dollars.toFixed(dollars < 1 ? 4 : 2)}`;
}

function span(milliseconds) {
  if (milliseconds < 1000) return `${Math.max(0, Math.round(milliseconds))} ms`;
  const seconds = milliseconds / 1000;
  if (seconds < 60) return `${seconds.toFixed(1)} s`;
  const minutes = Math.floor(seconds / 60);
  if (minutes < 60) return `${minutes} min ${Math.round(seconds % 60)} s`;
  return `${Math.floor(minutes / 60)} h ${minutes % 60} min`;
}

const two = (number) => String(number).padStart(2, "0");

function clock(time) {
  const at = new Date(time);
  return `${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

function day(time) {
  const at = new Date(time);
  return `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())} ${two(at.getHours())}:${two(at.getMinutes())}`;
}

// A path as seen from the session's directory.
function near(path, cwd) {
  return cwd && path.startsWith(`${cwd}/`) ? path.slice(cwd.length + 1) : path;
}
