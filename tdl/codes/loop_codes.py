"""Codes TS0140 to TS0159: variables, parameters, loops, ranges of names and included files."""

from __future__ import annotations

from tdl.codes.code import Code

LOOPS = (
    Code(
        "TS0140",
        "let or param without a name or a value",
        "It is written `let NAME = VALUE`, and so is a `param`. A value of several words, or with "
        "signs such as `;`, stands in quotes.",
        "let rate 100Mb",
    ),
    Code(
        "TS0141",
        "unknown variable",
        "`$NAME` in a bare word needs a `let` before it, or a `for` around it. Strings may have "
        "variables of the shell.",
        "bridge s$i",
    ),
    Code(
        "TS0142",
        "name of a variable",
        "A variable has one value, so it is defined once where it is known; the variable of a loop "
        "has a value in each round. Its name has letters, digits and `_`, and does not begin with "
        "`TSTORM_`: the run sets these.",
        "let n = 1\nlet n = 2",
    ),
    Code(
        "TS0143",
        "for without a name or a range",
        "It is written `for i in 0..9 {`, `for i in 0..60 step 15 {`, `for c in paris;oslo {` or, "
        "for each pair of two values, `for i < j in 0..3 {`. A line with `}` ends the loop.",
        "for i of 0..3 {\nbridge s$i\n}",
    ),
    Code(
        "TS0144",
        "brace without its counterpart",
        "A `{` begins the lines of a loop and a `}` ends them.",
        "for i in 0..2 {\nbridge s$i",
    ),
    Code(
        "TS0145",
        "loops too long",
        "All loops of a file together have at most as many rounds as an experiment can have "
        "declarations and events, 1,654,822. At most 16 stand in one another.",
        "for i in 1..1000000000 {\nbridge s$i\n}",
    ),
    Code(
        "TS0146",
        "range of names or numbers",
        "`b[0..3]` stands for the names b0, b1, b2 and b3 where a list of names can stand. A link "
        "and a service have one name each: declare several in a loop. A range goes up, and a "
        "`step` is at least 1.",
        "bridge s1\nservice a[0..3]",
    ),
    Code(
        "TS0147",
        "value that does not fit",
        "What a variable stands for here is no word of a statement.",
        'let name = "[a"\nbridge $name',
    ),
    Code(
        "TS0148",
        "sum that cannot be worked out",
        "`${i*15}` and `${2*(n-1)}` have whole numbers, variables that are such, `+`, `-`, `*` and "
        "parentheses, and are at least 0.",
        "let n = 2\nat ${n-3}s quit",
    ),
    Code(
        "TS0150",
        "include without a file",
        'It is written `include "FILE"`. The name is relative to the file that the line is in, and '
        "not absolute, so that the folder can go elsewhere.",
        'include "/etc/network.tdl"',
    ),
    Code(
        "TS0151",
        "included file cannot be read",
        "There is no such file, or it cannot be read. Names are relative to the file that the line "
        "is in; a text from standard input includes files from the working directory.",
        'include "network.tdl"',
    ),
    Code(
        "TS0152",
        "file includes itself",
        "A file would be read again and again. Put what both need into a third file.",
        "",
    ),
    Code(
        "TS0153",
        "too much is included",
        "At most 16 files include one another, and all that is included has at most 64 MiB in at "
        "most 10,000 files; a file that is included twice counts twice.",
        "",
    ),
    Code(
        "TS0154",
        "empty file",
        "There is no statement in the file, so there is nothing to run.",
        "# nothing yet",
    ),
    Code(
        "TS0155",
        "param in a loop",
        "A parameter has one value, which the command line may replace. Put the line before the "
        "loop.",
        "for i in 0..3 {\nparam n = $i\n}",
    ),
    Code(
        "TS0156",
        "too many params",
        "A file has at most 100 parameters, with at most 1000 characters each.",
        "",
    ),
    Code(
        "TS0157",
        "values too long",
        "A word or a string has at most 65,536 characters with the values of its variables in it, "
        "and all values that are put in have at most 128 MiB: a variable made of others doubles "
        "from line to line.",
        "let a = 0123456789abcdef\n"
        + "".join(
            f"let {b} = ${a}${a}${a}${a}\n" for a, b in zip("abcdefg", "bcdefgh", strict=True)
        )
        + "bridge s",
    ),
)
