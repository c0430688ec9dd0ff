//! The syntax of each language, as tables.

/// The syntax of a language.
#[derive(Debug)]
pub(super) struct LanguageSyntax {
    /// Names and file extensions.
    pub(super) names: &'static [&'static str],
    pub(super) line_comments: &'static [&'static str],
    pub(super) comment_needs_blank: bool,
    pub(super) block_comments: &'static [(&'static str, &'static str)],
    pub(super) comments_nest: bool,
    /// The rules for strings. Rules with longer delimiters come first.
    pub(super) strings: &'static [StringRule],
    /// True if `'a` is a lifetime and `'a'` a character literal.
    pub(super) has_lifetimes: bool,
    pub(super) keywords: &'static str,
    pub(super) constants: &'static str,
    pub(super) types: &'static str,
    pub(super) capitals_are_types: bool,
    pub(super) has_macros: bool,
    pub(super) ignores_case: bool,
    /// Additional characters that may occur in names.
    pub(super) name_signs: &'static str,
    /// The character after a key, as in YAML.
    pub(super) key_sign: Option<char>,
    pub(super) has_tags: bool,
    /// True if the language has no calls.
    pub(super) is_data: bool,
    pub(super) is_diff: bool,
}

#[derive(Debug)]
pub(super) struct StringRule {
    pub(super) open: &'static str,
    pub(super) close: &'static str,
    pub(super) has_escapes: bool,
    pub(super) is_multiline: bool,
}

impl LanguageSyntax {
    pub(super) fn is_name_start(&self, letter: char) -> bool {
        letter.is_alphabetic()
            || letter == '_'
            || (letter != '-' && self.name_signs.contains(letter))
    }

    pub(super) fn is_in_name(&self, letter: char) -> bool {
        letter.is_alphanumeric() || letter == '_' || self.name_signs.contains(letter)
    }
}

/// Returns the language for a lower-case name.
pub(super) fn find(name: &str) -> Option<&'static LanguageSyntax> {
    LANGUAGES
        .iter()
        .find(|language| language.names.contains(&name))
}

const fn on_line(quote: &'static str) -> StringRule {
    StringRule {
        open: quote,
        close: quote,
        has_escapes: true,
        is_multiline: false,
    }
}

const fn over_lines(open: &'static str, close: &'static str) -> StringRule {
    StringRule {
        open,
        close,
        has_escapes: true,
        is_multiline: true,
    }
}

const fn raw(open: &'static str, close: &'static str) -> StringRule {
    StringRule {
        open,
        close,
        has_escapes: false,
        is_multiline: true,
    }
}

const QUOTES: &[StringRule] = &[on_line("\""), on_line("'")];
const SLASHES: &[&str] = &["//"];
const HASH: &[&str] = &["#"];
const STARS: &[(&str, &str)] = &[("/*", "*/")];

/// Defaults for most languages, similar to C.
const BASE: LanguageSyntax = LanguageSyntax {
    names: &[],
    line_comments: SLASHES,
    comment_needs_blank: false,
    block_comments: STARS,
    comments_nest: false,
    strings: QUOTES,
    has_lifetimes: false,
    keywords: "",
    constants: "true false null",
    types: "",
    capitals_are_types: true,
    has_macros: false,
    ignores_case: false,
    name_signs: "",
    key_sign: None,
    has_tags: false,
    is_data: false,
    is_diff: false,
};

/// Defaults for languages with `#` comments.
const HASHED: LanguageSyntax = LanguageSyntax {
    line_comments: HASH,
    comment_needs_blank: true,
    block_comments: &[],
    ..BASE
};

static LANGUAGES: [LanguageSyntax; 32] = [
    LanguageSyntax {
        names: &["rust", "rs"],
        comments_nest: true,
        strings: &[
            raw("r##\"", "\"##"),
            raw("r#\"", "\"#"),
            raw("r\"", "\""),
            over_lines("\"", "\""),
        ],
        has_lifetimes: true,
        keywords: "as async await break const continue crate dyn else enum extern fn for if impl in let loop match mod move mut pub ref return self static struct super trait type union unsafe use where while yield",
        constants: "true false None Some Ok Err",
        types: "bool char f32 f64 i8 i16 i32 i64 i128 isize str u8 u16 u32 u64 u128 usize Self",
        has_macros: true,
        ..BASE
    },
    LanguageSyntax {
        names: &["python", "py", "pyi", "python3"],
        comment_needs_blank: false,
        strings: &[
            over_lines("\"\"\"", "\"\"\""),
            over_lines("'''", "'''"),
            on_line("\""),
            on_line("'"),
        ],
        keywords: "and as assert async await break case class continue def del elif else except finally for from global if import in is lambda match nonlocal not or pass raise return try while with yield",
        constants: "True False None self cls",
        types: "int float str bool bytes list dict set tuple object",
        name_signs: "@",
        ..HASHED
    },
    LanguageSyntax {
        names: &[
            "javascript",
            "js",
            "jsx",
            "mjs",
            "cjs",
            "typescript",
            "ts",
            "tsx",
            "mts",
            "cts",
            "node",
        ],
        strings: &[over_lines("`", "`"), on_line("\""), on_line("'")],
        keywords: "abstract as async await break case catch class const continue debugger declare default delete do else enum export extends finally for from function get if implements import in infer instanceof interface is keyof let namespace new of private protected public readonly return satisfies set static super switch this throw try type typeof var void while with yield",
        constants: "true false null undefined NaN Infinity",
        types: "any bigint boolean never number object string symbol unknown",
        name_signs: "$",
        ..BASE
    },
    LanguageSyntax {
        names: &["c", "h"],
        keywords: "auto break case const continue default do else enum extern for goto if inline register restrict return sizeof static struct switch typedef union volatile while #include #define #ifdef #ifndef #if #else #endif #pragma",
        constants: "NULL true false",
        types: "bool char double float int long short signed size_t ssize_t unsigned void int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t",
        name_signs: "#",
        ..BASE
    },
    LanguageSyntax {
        names: &[
            "cpp", "c++", "cc", "cxx", "hpp", "hh", "objc", "m", "mm", "cuda", "cu",
        ],
        strings: &[raw("R\"(", ")\""), on_line("\""), on_line("'")],
        keywords: "alignas auto break case catch class co_await co_return co_yield concept const consteval constexpr continue decltype default delete do else enum explicit export extern final for friend goto if inline mutable namespace new noexcept operator override private protected public requires return sizeof static static_cast struct switch template this throw try typedef typename union using virtual volatile while #include #define #ifdef #ifndef #if #else #endif #pragma",
        constants: "nullptr NULL true false",
        types: "bool char double float int long short signed size_t string unsigned void vector wchar_t",
        name_signs: "#",
        ..BASE
    },
    LanguageSyntax {
        names: &["csharp", "cs", "c#"],
        strings: &[raw("@\"", "\""), on_line("\""), on_line("'")],
        keywords: "abstract as async await base break case catch checked class const continue default delegate do else enum event explicit extern finally fixed for foreach get goto if implicit in init interface internal is lock namespace new operator out override params private protected public readonly record ref return sealed set sizeof stackalloc static struct switch this throw try typeof unchecked unsafe using var virtual volatile when where while with yield",
        types: "bool byte char decimal double dynamic float int long object sbyte short string uint ulong ushort void",
        ..BASE
    },
    LanguageSyntax {
        names: &["java"],
        strings: &[over_lines("\"\"\"", "\"\"\""), on_line("\""), on_line("'")],
        keywords: "abstract assert break case catch class continue default do else enum extends final finally for if implements import instanceof interface native new package permits private protected public record return sealed static strictfp super switch synchronized this throw throws transient try var volatile while yield",
        types: "boolean byte char double float int long short void",
        name_signs: "@",
        ..BASE
    },
    LanguageSyntax {
        names: &["kotlin", "kt", "kts"],
        strings: &[over_lines("\"\"\"", "\"\"\""), on_line("\""), on_line("'")],
        comments_nest: true,
        keywords: "abstract as break by catch class companion const constructor continue crossinline data do else enum final finally for fun get if import in init inline inner interface internal is lateinit object open operator out override package private protected public return sealed set super suspend this throw try typealias val var when where while",
        ..BASE
    },
    LanguageSyntax {
        names: &["go", "golang"],
        strings: &[raw("`", "`"), on_line("\""), on_line("'")],
        keywords: "break case chan const continue default defer else fallthrough for func go goto if import interface map package range return select struct switch type var",
        constants: "true false nil iota",
        types: "any bool byte complex64 complex128 error float32 float64 int int8 int16 int32 int64 rune string uint uint8 uint16 uint32 uint64 uintptr",
        ..BASE
    },
    LanguageSyntax {
        names: &["swift"],
        strings: &[over_lines("\"\"\"", "\"\"\""), on_line("\"")],
        comments_nest: true,
        keywords: "actor as async await break case catch class continue default defer deinit do else enum extension fallthrough fileprivate final for func guard if import in init inout internal is lazy let mutating open override private protocol public repeat rethrows return self some static struct subscript super switch throw throws try typealias var weak where while",
        constants: "true false nil",
        ..BASE
    },
    LanguageSyntax {
        names: &["ruby", "rb"],
        strings: &[
            over_lines("\"", "\""),
            over_lines("'", "'"),
            over_lines("`", "`"),
        ],
        keywords: "alias and begin break case class def defined? do else elsif end ensure for if in module next not or redo require require_relative rescue retry return self super then undef unless until when while yield attr_accessor attr_reader",
        constants: "true false nil",
        name_signs: "@?!",
        ..HASHED
    },
    LanguageSyntax {
        names: &["php"],
        line_comments: &["//", "#"],
        strings: &[over_lines("\"", "\""), over_lines("'", "'")],
        keywords: "abstract and array as break case catch class clone const continue declare default do echo else elseif enum extends final finally fn for foreach function global if implements include instanceof interface match namespace new or print private protected public readonly require require_once return static switch throw trait try use var while yield",
        name_signs: "$",
        ..BASE
    },
    LanguageSyntax {
        names: &[
            "bash",
            "sh",
            "shell",
            "zsh",
            "fish",
            "console",
            "shellsession",
        ],
        strings: &[over_lines("\"", "\""), raw("'", "'"), over_lines("`", "`")],
        keywords: "case do done elif else esac export fi for function if in local readonly return select set shift source then trap unset until while",
        constants: "true false",
        capitals_are_types: false,
        name_signs: "$-",
        is_data: true,
        ..HASHED
    },
    LanguageSyntax {
        names: &["powershell", "ps1", "pwsh"],
        block_comments: &[("<#", "#>")],
        keywords: "begin break catch class continue do else elseif end exit finally for foreach function if in param process return switch throw try until while",
        ignores_case: true,
        name_signs: "$-",
        ..HASHED
    },
    LanguageSyntax {
        names: &["sql", "postgres", "mysql", "sqlite", "plsql"],
        line_comments: &["--"],
        strings: &[over_lines("'", "'"), over_lines("\"", "\"")],
        keywords: "add all alter and any as asc begin between by cascade case check column commit constraint create cross database default delete desc distinct drop else end except exists explain foreign from full function grant group having if in index inner insert intersect into is join key left like limit not offset on or order outer over partition primary procedure references returning revoke right rollback select set table then to transaction trigger truncate union unique update using values view when where with",
        types: "bigint blob boolean bytea char date decimal double float int integer json jsonb numeric real serial smallint text time timestamp timestamptz uuid varchar",
        capitals_are_types: false,
        ignores_case: true,
        ..BASE
    },
    LanguageSyntax {
        names: &["html", "htm", "xml", "svg", "vue", "xhtml", "xsl"],
        line_comments: &[],
        block_comments: &[("<!--", "-->")],
        strings: &[over_lines("\"", "\"")],
        constants: "",
        capitals_are_types: false,
        name_signs: "-:!",
        has_tags: true,
        is_data: true,
        ..BASE
    },
    LanguageSyntax {
        names: &["css", "scss", "less", "sass"],
        line_comments: &[],
        keywords: "@media @import @include @mixin @use @keyframes @font-face @supports @layer @container !important",
        constants: "none auto inherit initial unset",
        capitals_are_types: false,
        name_signs: "-@!.#",
        key_sign: Some(':'),
        ..BASE
    },
    LanguageSyntax {
        names: &["json", "jsonc", "json5", "jsonl", "ndjson"],
        capitals_are_types: false,
        is_data: true,
        ..BASE
    },
    LanguageSyntax {
        names: &["yaml", "yml"],
        constants: "true false null yes no on off",
        capitals_are_types: false,
        name_signs: "-./",
        key_sign: Some(':'),
        is_data: true,
        ..HASHED
    },
    LanguageSyntax {
        names: &["toml", "ini", "cfg", "conf", "properties", "env"],
        line_comments: &["#", ";"],
        strings: &[
            over_lines("\"\"\"", "\"\"\""),
            raw("'''", "'''"),
            on_line("\""),
            on_line("'"),
        ],
        capitals_are_types: false,
        name_signs: "-.",
        key_sign: Some('='),
        is_data: true,
        ..HASHED
    },
    LanguageSyntax {
        names: &["lua"],
        line_comments: &["--"],
        block_comments: &[("--[[", "]]")],
        strings: &[raw("[[", "]]"), on_line("\""), on_line("'")],
        keywords: "and break do else elseif end for function goto if in local not or repeat return then until while",
        constants: "true false nil self",
        ..BASE
    },
    LanguageSyntax {
        names: &["haskell", "hs", "elm", "purescript"],
        line_comments: &["--"],
        block_comments: &[("{-", "-}")],
        comments_nest: true,
        strings: &[on_line("\"")],
        has_lifetimes: true,
        keywords: "as case class data default deriving do else family forall foreign hiding if import in infix infixl infixr instance let module newtype of qualified then type where",
        constants: "True False Nothing Just",
        name_signs: "'",
        ..BASE
    },
    LanguageSyntax {
        names: &["scala", "sc", "sbt"],
        strings: &[over_lines("\"\"\"", "\"\"\""), on_line("\""), on_line("'")],
        comments_nest: true,
        keywords: "abstract case catch class def do else enum export extends extension final finally for forSome given if implicit import lazy match new object opaque override package private protected return sealed super then this throw trait try type using val var while with yield",
        ..BASE
    },
    LanguageSyntax {
        names: &["elixir", "ex", "exs", "erlang", "erl"],
        strings: &[
            over_lines("\"\"\"", "\"\"\""),
            over_lines("\"", "\""),
            on_line("'"),
        ],
        keywords: "after alias and case catch cond def defmacro defmodule defp defstruct do else end fn for if import in not or quote raise receive require rescue try unless unquote use when with",
        constants: "true false nil",
        name_signs: "?!@",
        ..HASHED
    },
    LanguageSyntax {
        names: &["perl", "pl", "pm"],
        strings: &[over_lines("\"", "\""), over_lines("'", "'")],
        keywords: "and cmp continue die do else elsif eq for foreach if last local my ne next no not or our package print redo return require sub unless until use while",
        constants: "undef",
        name_signs: "$@%",
        ..HASHED
    },
    LanguageSyntax {
        names: &["r", "julia", "jl"],
        keywords: "begin break do else elseif end for function if import in let library macro module mutable next repeat return struct try using while",
        constants: "TRUE FALSE NULL NA Inf NaN true false nothing",
        name_signs: ".",
        ..HASHED
    },
    LanguageSyntax {
        names: &["dart"],
        strings: &[
            over_lines("'''", "'''"),
            over_lines("\"\"\"", "\"\"\""),
            on_line("\""),
            on_line("'"),
        ],
        keywords: "abstract as assert async await base break case catch class const continue covariant default do else enum export extends extension factory final finally for get if implements import in interface is late library mixin new on operator part required return sealed set static super switch sync this throw try typedef var when while with yield",
        types: "bool double dynamic int num void",
        ..BASE
    },
    LanguageSyntax {
        names: &["zig"],
        block_comments: &[],
        keywords: "align allowzero and asm async await break catch comptime const continue defer else enum errdefer error export extern fn for if inline noalias opaque or orelse packed pub resume return struct suspend switch test threadlocal try union unreachable usingnamespace var volatile while",
        constants: "true false null undefined",
        types: "anyerror anytype bool comptime_int f32 f64 i8 i16 i32 i64 isize noreturn type u8 u16 u32 u64 usize void",
        name_signs: "@",
        ..BASE
    },
    LanguageSyntax {
        names: &["dockerfile", "docker", "containerfile"],
        keywords: "add arg as cmd copy entrypoint env expose from healthcheck label onbuild run shell stopsignal user volume workdir",
        constants: "",
        capitals_are_types: false,
        ignores_case: true,
        is_data: true,
        ..HASHED
    },
    LanguageSyntax {
        names: &["makefile", "make", "mk", "cmake", "just", "justfile"],
        keywords: "define else endef endif export ifdef ifeq ifndef ifneq include override .PHONY",
        constants: "",
        capitals_are_types: false,
        name_signs: ".$-",
        key_sign: Some(':'),
        is_data: true,
        ..HASHED
    },
    LanguageSyntax {
        names: &[
            "nix",
            "hcl",
            "terraform",
            "tf",
            "proto",
            "graphql",
            "gql",
            "groovy",
            "gradle",
        ],
        line_comments: &["//", "#"],
        keywords: "assert data def else enum fragment if import in inherit input interface let locals message module mutation output package provider query rec rpc resource returns scalar service subscription syntax then type union variable with",
        name_signs: "-",
        ..BASE
    },
    LanguageSyntax {
        names: &["diff", "patch"],
        is_diff: true,
        ..BASE
    },
];

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn each_name_belongs_to_one_language_and_openings_do_not_hide_each_other() {
        let mut names = BTreeSet::new();
        for language in &LANGUAGES {
            for name in language.names {
                assert!(names.insert(*name), "{name} is there twice");
            }
            for (at, rule) in language.strings.iter().enumerate() {
                let hidden = language.strings[..at]
                    .iter()
                    .find(|before| rule.open.starts_with(before.open));
                assert!(hidden.is_none(), "{:?}: {}", language.names, rule.open);
            }
        }
        assert!(LANGUAGES.len() >= 25);
    }
}
