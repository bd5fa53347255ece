/* SPDX-License-Identifier: MIT
 *
 * The pages are true: their tables name every command, their generated parts are what
 * the program prints, their links lead somewhere, and each command in them is one that the program
 * takes. */
#include "harness/cli/option_table.h"
#include "tests/support/program.h"
#include "tests/support/tmp_folder.h"

#include <ctype.h>
#include <glob.h>

TestSuite(pages, .init = folder_make, .fini = folder_remove, .timeout = 300);

static glob_t pages(void)
{
    static const char *const patterns[] = {"README.md",    "CONTRIBUTING.md", "docs/*.md",
                                           "results/*.md", "results/*/*.md",  "results/*/*/*.md"};
    glob_t found = {0};

    for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++)
        cr_assert_eq(glob(patterns[i], i ? GLOB_APPEND : 0, NULL, &found), 0, "%s", patterns[i]);
    return found;
}

/* The table below this heading line, cut out of the text. */
static char *table_of(char *text, const char *heading)
{
    char *const at = strstr(text, heading);

    cr_assert(at, "no table %s", heading);
    char *const end = strstr(at, "\n\n");
    if (end)
        *end = '\0';
    return at;
}

static bool in_code(const char *table, const char *name)
{
    return strstr(table, kept_text("`%s`", name)) != NULL;
}

Test(pages, generated_parts)
{
    static const char *const generated[] = {"README.md", "docs/variants.md", "docs/systems.md",
                                            "results/README.md", "results/reference/README.md"};

    must_shell("cd $SRC; scripts/pages.sh \"$BENCH\" $OLDPWD");
    for (size_t i = 0; i < sizeof(generated) / sizeof(*generated); i++) {
        struct bytes made = must_load(in_folder(generated[i])), tracked = must_load(generated[i]);
        cr_expect(strcmp(made.data, tracked.data) == 0,
                  "%s is not what the program prints  -> make && scripts/pages.sh", generated[i]);
    }
}

/* As "bench NAME", or alone in code among others. */
Test(pages, table_of_commands)
{
    struct bytes text = must_load("README.md");
    char *const table = table_of(text.data, "| command | does |");

    for (int c = 0; c < COMMAND_COUNT; c++) {
        const char *const called = kept_text("bench %s", command_specs[c].name);
        const bool sweep = c == CMD_SWEEP && strstr(table, "`bench [sweep]`");
        if (command_specs[c].doc)
            cr_expect(sweep || strstr(table, called) || in_code(table, command_specs[c].name),
                      "no row for %s", command_specs[c].name);
    }
}

/* Those of the first lines: what other machines took is said in ratios. "blocks of 5 ms" is a setting. */
Test(pages, readme_has_times_of_one_machine)
{
    struct bytes text = must_load("README.md");
    const char *const rest = strstr(text.data, "\n## ");
    int n = 0;

    cr_assert(rest);
    for (const char *at = text.data; (at = strpbrk(at, "0123456789")); n++) {
        at += strspn(at, "0123456789.");
        if (strncmp(at, " ms", 3) != 0 && strncmp(at, " us", 3) != 0) {
            n--;
            continue;
        }
        cr_expect(at < rest || strncmp(at - 11, "blocks of 5", 11) == 0, "%.*s: of which machine?",
                  24, at - 12);
    }
    cr_expect_gt(n, 3);
}

/* In the pages that name no other program's options. */
Test(pages, options_exist)
{
    static const char *const ours[] = {"README.md",       "docs/variants.md", "docs/measuring.md",
                                       "docs/scoring.md", "docs/training.md", "docs/texts.md"};
    int n = 0;

    for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++) {
        struct bytes text = must_load(ours[i]);
        for (const char *at = text.data; (at = strstr(at, "--")); at += 2) {
            char name[32] = "";
            const bool begins = at > text.data && strchr(" `\n(", at[-1]);
            if (!begins || sscanf(at + 2, "%31[a-z-]", name) != 1 || *name == '-')
                continue;
            cr_expect(option_find(name) >= 0, "%s: bench has no --%s", ours[i], name);
            n++;
        }
    }
    cr_expect_gt(n, 150);
}

/* Is the line at `at`, indented as code, a command of ours? Its words, up to what the shell reads;
 * lines that end in a backslash go on. NULL: it is none. */
static char *command_at(const char *at)
{
    char *const words = room(1, 2048), *w = words;
    const size_t indent = strspn(at, " ");

    at += indent;
    at += strncmp(at, "$ ", 2) == 0 ? 2 : 0;
    at += strncmp(at, "./", 2) == 0 ? 2 : 0;
    if (indent < 4 || strncmp(at, "bench ", 6) != 0)
        return NULL;
    char quote = '\0';
    for (at += 6; *at && (quote || !strchr("\n;&|<>", *at)); at++) {
        if (at[0] == '\\' && at[1] == '\n')
            at++;
        if (*at == '\'' || *at == '"')
            quote = quote == *at ? '\0' : quote ? quote : *at;
        cr_assert_lt(w - words, 2047);
        *w++ = *at == '\n' ? ' ' : *at;
    }
    *w = '\0';
    return words;
}

/* Taken by the command that it names; a sweep has cases, unless this machine or build lacks a backend
 * that it names (exit code 6), or the backend is a file of the reader's. */
static void expect_taken(const char *page, const char *words)
{
    struct options o = {0};
    const enum status st = options_parse_line(&o, words, &failure);

    cr_expect_eq(st, OK, "%s: bench %s: %s", page, words, failure.msg);
    for (int i = 0; i < option_count && st == OK; i++)
        if (options_written(&o, option_specs[i].name))
            cr_expect(option_is_for(&option_specs[i], command_find(o.command)),
                      "%s: bench %s: no --%s", page, words, option_specs[i].name);
    if (st == OK && strcmp(o.command, "sweep") == 0 && !o.ckpt && !o.resume &&
        !strstr(words, ".so")) {
        struct ran r = run_shell("cd $SRC; $BENCH %.*s -n -q", (int)strcspn(words, "#"), words);
        cr_expect(r.code == 0 || r.code == 6, "%s: bench %s: %s", page, words, r.err.data);
    }
    options_free(&o);
}

Test(pages, commands_are_taken)
{
    glob_t all = pages();
    int n = 0;

    for (size_t i = 0; i < all.gl_pathc; i++) {
        struct bytes text = must_load(all.gl_pathv[i]);
        for (const char *at = text.data; at; at = strchr(at, '\n')) {
            at += *at == '\n';
            char *const words = command_at(at);
            if (words) {
                expect_taken(all.gl_pathv[i], words);
                n++;
            }
        }
    }
    globfree(&all);
    cr_expect_gt(n, 60);
}

/* Does a heading of the page have this name in links: its words in lower case, joined by hyphens? */
static bool has_heading(const char *page, const char *name, size_t len)
{
    struct bytes text = must_load(page);
    bool found = false;

    for (const char *at = text.data; at && !found; at = strchr(at, '\n')) {
        at += *at == '\n';
        const char *c = at + strspn(at, "# ");
        bool same = *at == '#';
        size_t n = 0;
        for (; same && *c && *c != '\n'; c++)
            if (isalnum((unsigned char)*c) || *c == ' ' || *c == '-')
                same = n < len && name[n++] == (*c == ' ' ? '-' : tolower((unsigned char)*c));
        found = same && n == len;
    }
    return found;
}

/* A link leads from the page to a file or folder, and to a heading where it names one. */
static void expect_link(const char *page, const char *link)
{
    const char *const slash = strrchr(page, '/');
    const int len = (int)strcspn(link, "#)");

    if (strncmp(link, "http", 4) == 0)
        return;
    const char *const path =
        kept_text("%.*s%.*s", slash ? (int)(slash + 1 - page) : 0, page, len, link);
    cr_expect_eq(access(path, F_OK), 0, "%s links to %s, which is not there", page, path);
    if (link[len] == '#' && access(path, F_OK) == 0) {
        const char *const name = link + len + 1;
        const size_t n = strcspn(name, ")");
        cr_expect(has_heading(len ? path : page, name, n), "%s: %s has no heading #%.*s", page,
                  len ? path : page, (int)n, name);
    }
}

Test(pages, links_lead_somewhere)
{
    glob_t all = pages();
    int n = 0;

    for (size_t i = 0; i < all.gl_pathc; i++) {
        struct bytes text = must_load(all.gl_pathv[i]);
        for (const char *at = text.data; (at = strstr(at, "](")); at++, n++)
            expect_link(all.gl_pathv[i], at + 2);
    }
    globfree(&all);
    cr_expect_gt(n, 80);
}

/* A difference on a page of results is that of a row, with its interval and p; another one is found. */
Test(pages, differences_are_rows)
{
    static const struct {
        const char *text;
        int code;
    } written[] = {
        {"+0.012 (-0.001 to +0.026, p 0.14)", 0},       /* no-d of claims/terms */
        {"| +0.0124 | -0.0012 to +0.0259 | 0.14 |", 0}, /* the same in a table */
        {"| +0.0125 | -0.0012 to +0.0259 | 0.14 |", 1},
        {"+0.013 (-0.001 to +0.026, p 0.14)", 1},
        {"+0.012 (-0.002 to +0.026, p 0.14)", 1},
        {"+0.012 (-0.001 to +0.025, p 0.14)", 1},
        {"+0.012 (-0.001 to +0.026, p 0.15)", 1},
        {"+0.013 (-0.001 to +0.026, p 0.3 by itself)", 0},
    };

    must_shell("cd $SRC; scripts/claims.py --bench \"$BENCH\"");
    for (size_t i = 0; i < ARRAY_LEN(written); i++) {
        folder_put_text("page.md", written[i].text);
        shell_exits(written[i].code, NULL,
                    "cd $SRC; scripts/claims.py --bench \"$BENCH\" $OLDPWD/page.md");
    }
}

Test(pages, leaderboard_is_its_rows)
{
    struct bytes page = must_load("results/reference/leaderboard.md");
    struct ran r = must_shell("cd $SRC; scripts/leaderboard.py --bench \"$BENCH\"");
    cr_expect(strstr(page.data, r.out.data), "scripts/leaderboard.py prints another one");
}
