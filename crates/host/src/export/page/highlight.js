// Colours for code: comments, strings, numbers and words of the language, a line at a time. It runs on what is on the
// screen only; colours made at export would double the size of the file.

const SLASHES = "//";
const WORDS = {
  rust: "as async await break const continue crate dyn else enum extern false fn for if impl in let loop match mod move mut pub ref return self Self static struct super trait true type unsafe use where while",
  js: "async await break case catch class const continue default delete do else export extends false finally for from function if implements import in instanceof interface let new null of return static super switch this throw true try type typeof undefined var void while yield enum readonly private public protected",
  python: "and as assert async await break class continue def del elif else except False finally for from global if import in is lambda None nonlocal not or pass raise return True try while with yield match case self",
  shell: "if then else elif fi for while until do done case esac in function return local export readonly set unset shift exit break continue trap source echo",
  c: "auto bool break case catch char class const constexpr continue default delete do double else enum explicit extern false final float for func go goto if import inline int interface let long map namespace new nil null nullptr operator override package private protected public range return select short signed sizeof static string struct super switch template this throw true try type typedef typename union unsigned using var virtual void volatile when while chan defer fun val object data sealed guard extension protocol",
  ruby: "begin class def do else elsif end ensure false for if in module next nil not or and redo rescue retry return self super then true unless until when while yield require",
  sql: "select from where insert into values update set delete create table alter drop index join left right inner outer on group by order limit as and or not null primary key references union all distinct having case when then else end",
  data: "true false null yes no on off",
};

const LANGUAGES = {
  rust: ["rust", SLASHES], rs: ["rust", SLASHES],
  js: ["js", SLASHES], mjs: ["js", SLASHES], cjs: ["js", SLASHES], jsx: ["js", SLASHES], ts: ["js", SLASHES], tsx: ["js", SLASHES],
  javascript: ["js", SLASHES], typescript: ["js", SLASHES],
  py: ["python", "#"], python: ["python", "#"],
  sh: ["shell", "#"], bash: ["shell", "#"], zsh: ["shell", "#"], shell: ["shell", "#"], console: ["shell", "#"],
  c: ["c", SLASHES], h: ["c", SLASHES], cc: ["c", SLASHES], cpp: ["c", SLASHES], hpp: ["c", SLASHES], cs: ["c", SLASHES],
  java: ["c", SLASHES], go: ["c", SLASHES], kt: ["c", SLASHES], swift: ["c", SLASHES], php: ["c", SLASHES], scala: ["c", SLASHES], dart: ["c", SLASHES],
  css: ["data", "/*"], scss: ["data", SLASHES],
  rb: ["ruby", "#"], ruby: ["ruby", "#"],
  sql: ["sql", "--"], lua: ["ruby", "--"],
  json: ["data", SLASHES], jsonc: ["data", SLASHES], yaml: ["data", "#"], yml: ["data", "#"], toml: ["data", "#"], ini: ["data", "#"], mk: ["shell", "#"],
};

for (const family of Object.keys(WORDS)) WORDS[family] = new Set(WORDS[family].split(" "));

const TOKENS = /("(?:[^"\\]|\\.){0,4000}"|'(?:[^'\\\n]|\\.){0,2000}'|`(?:[^`\\]|\\.){0,4000}`)|(\b\d[\w.]{0,40})|([A-Za-z_]\w{0,80})|(\/\/|#|--|\/\*)/g;
const LONGEST_LINE = 2000;

// The language of a file's name, or of a fence.
function language(name) {
  const end = (name ?? "").split(/[./]/).pop().toLowerCase();
  return Object.hasOwn(LANGUAGES, end) ? LANGUAGES[end] : null;
}

function highlight(line, known, into) {
  if (!known || line.length > LONGEST_LINE) {
    into.append(line);
    return;
  }
  const [family, comment] = known;
  const words = WORDS[family];
  let at = 0;
  const put = (kind, from, to) => {
    if (from > at) into.append(line.slice(at, from));
    into.append(el("em", { class: kind }, line.slice(from, to)));
    at = to;
  };
  for (const found of line.matchAll(TOKENS)) {
    const [whole, string, number, word, mark] = found;
    const end = found.index + whole.length;
    if (string !== undefined) {
      // A lifetime is no string.
      if (!(family === "rust" && whole[0] === "'" && whole.length > 4 && whole[1] !== "\\")) put("s", found.index, end);
    } else if (number !== undefined) put("n", found.index, end);
    else if (word !== undefined) {
      if (words.has(family === "sql" ? word.toLowerCase() : word)) put("k", found.index, end);
    } else if (mark === comment || (mark === "/*" && comment === SLASHES)) {
      // In a shell, what follows a letter is no comment.
      if (mark === "#" && found.index > 0 && !/\s/.test(line[found.index - 1])) continue;
      put("c", found.index, line.length);
      return;
    }
  }
  if (at < line.length) into.append(line.slice(at));
}
