/* SPDX-License-Identifier: MIT
 *
 * Help, the manual page and completion: complete, of this build's tables, and valid for those who
 * read them. */
#include "harness/command/help.h"
#include "harness/figure/figure.h"
#include "tests/support/command_line.h"
#include "tests/support/pty.h"

#include <ctype.h>

TestSuite(help, .init = folder_make, .fini = folder_remove, .timeout = 240);

/* Is the option named, not only as the beginning of a longer name? */
static bool names_option(const char *text, const char *name)
{
    char dashed[64];
    const size_t n = (size_t)snprintf(dashed, sizeof(dashed), "--%s", name);

    for (const char *at = text; (at = strstr(at, dashed)); at += n)
        if (at > text && strchr(" ,", at[-1]) && !isalnum((unsigned char)at[n]) && at[n] != '-')
            return true;
    return false;
}

/* The names in the left column: texts and examples name other options. */
static char *option_lines(const char *page)
{
    enum { COLUMN = 28 };
    char *const lines = room(2 * strlen(page) + 1, 1);

    for (const char *at = page; *at; at += strcspn(at, "\n"), at += *at == '\n')
        if (strncmp(at, "      --", 8) == 0 || (strncmp(at, "  -", 3) == 0 && at[4] == ','))
            strcat(strncat(lines, at, (size_t)min_int((int)strcspn(at, "\n"), COLUMN)), "\n");
    return lines;
}

/* A set is the default of sweeps and no variant to train: train asks for one. */
Test(help, train_shows_no_default_variant)
{
    struct ran r = run_bench("help train");
    const char *const at = strstr(r.out.data, "--variant=");

    cr_assert(at, "%s", r.out.data);
    cr_expect_null(strstr(r.out.data, "[base]"), "%s", r.out.data);
    cr_expect_null(strstr(r.out.data, "[]"), "%s", r.out.data);
    bench_exits(2, "train needs a variant", "train --ckpt x");
    r = run_bench("help sweep");
    HAS(r.out.data, "[base]");
}

/* Is the default said in words, since it follows from other options, the variant or the machine? */
static bool is_words(const char *shown)
{
    return strpbrk(shown, " *") || strncmp(shown, "--", 2) == 0 || strncmp(shown, "RUN/", 4) == 0 ||
           strcmp(shown, "d-model/heads") == 0;
}

/* Of a choice that options leave to the variant: each that has it has this value. */
static void expect_own_value(const struct option_spec *s, const char *shown)
{
    bool known = strcmp(s->name, "layers") == 0 || strcmp(s->name, "shard") == 0;

    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        for (int k = 0; variants[k] && strcmp(model_choices[i].option, s->name) == 0; k++) {
            char text[CHOICE_TEXT];
            const struct config c = config_default(variants[k], 64, 4, 16, 256, 4, 256);
            model_choice_print(text, i, &c, SCOPE_MODEL);
            cr_expect(!*text || strcmp(text, shown) == 0, "%s: --%s is %s, not %s",
                      variants[k]->name, s->name, text, shown);
            known = true;
        }
    cr_expect(known, "--%s [%s]: nobody says what it is", s->name, shown);
}

/* What a run of the command without the option has. */
Test(help, shown_defaults_are_used)
{
    forget_settings();
    for (int c = 0; c < COMMAND_COUNT; c++) {
        struct options bare, given;
        if (!command_specs[c].doc)
            continue;
        MUST(parse_words(&bare, command_specs[c].name, &failure));
        for (int i = 0; i < option_count; i++) {
            const struct option_spec *const s = &option_specs[i];
            const char *const shown = option_is_for(s, c) ? option_shown(s, c) : NULL;
            if (!shown || !*shown || is_words(shown))
                continue;
            char *const is = kept(option_value(&bare, s)), line[128];
            if (*is) {
                snprintf(line, sizeof(line), "%s --%s=%s", command_specs[c].name, s->name, shown);
                cr_expect_eq(parse_words(&given, line, &failure), OK, "%s: %s", line, failure.msg);
                char *const same = kept(option_value(&given, s));
                cr_expect_str_eq(is, same, "%s, without it %s", line, is);
            } else {
                expect_own_value(s, shown);
            }
        }
    }
}

/* The cases of a gate without options are those of its file, which scripts/gate.sh gives. */
Test(help, the_gates_defaults_are_those_of_its_file)
{
    struct options bare, file;

    forget_settings();
    MUST(parse_words(&bare, "gate", &failure));
    MUST(parse_words(&file, "gate @harness/sweeps/gate.args", &failure));
    char *const one = kept(options_canonical(&bare, CONTINUED_RUN)), *const two =
                                                                         kept(options_canonical(
                                                                             &file, CONTINUED_RUN));
    cr_expect_str_eq(one, two);
}

Test(help, a_page_for_each_command_with_its_options)
{
    for (int c = 0; c < COMMAND_COUNT; c++) {
        const struct command_spec *const spec = &command_specs[c];
        if (!spec->doc)
            continue;
        struct ran r = must_bench("help %s --help-all", spec->name);
        struct ran same = run_bench("%s --help-all", spec->name);
        cr_expect_str_eq(r.out.data, same.out.data);
        cr_expect_leq(widest(r.out.data), 80, "%s", r.out.data);
        char *const lines = option_lines(r.out.data);
        for (int i = 0; i < option_count; i++)
            cr_expect_eq(names_option(lines, option_specs[i].name),
                         option_is_for(&option_specs[i], c), "%s: --%s", spec->name,
                         option_specs[i].name);
        for (int i = 0; i < EXAMPLES && spec->example[i].line; i++)
            cr_expect(strstr(r.out.data, spec->example[i].line), "%s: %s", spec->name,
                      spec->example[i].line);
    }
}

/* The first page has the usual options, about fifteen, and says where the others are. */
Test(help, a_page_of_usual_options)
{
    enum { FEW = 18 };

    for (int c = 0; c < COMMAND_COUNT; c++) {
        int usual = 0, all = 0;
        for (int i = 0; i < option_count; i++) {
            const bool here = option_specs[i].usual & 1u << c;
            usual += here;
            all += option_is_for(&option_specs[i], c);
            cr_expect(!here || option_is_for(&option_specs[i], c), "%s --%s", command_specs[c].name,
                      option_specs[i].name);
        }
        if (!command_specs[c].doc)
            continue;
        struct ran r = run_bench("help %s", command_specs[c].name);
        struct ran same = run_bench("%s --help", command_specs[c].name);
        char *const lines = option_lines(r.out.data);
        expect_exit(&r, 0);
        cr_expect_str_eq(r.out.data, same.out.data);
        cr_expect_leq(widest(r.out.data), 80, "%s", r.out.data);
        cr_expect_leq(usual, FEW, "%s", command_specs[c].name);
        cr_expect_eq(count_in(lines, "\n"), usual > 0 ? usual : all, "%s", r.out.data);
        cr_expect_eq(strstr(r.out.data, "--help-all lists all") != NULL, usual > 0);
    }
    struct ran word = must_bench("train help"), page = run_bench("help train");
    cr_expect_str_eq(word.out.data, page.out.data);
}

/* A page is of one command: its texts do not say "plot: ...", nor do its options' defaults. */
Test(help, texts_of_options_name_no_other_command)
{
    for (int c = 0; c < COMMAND_COUNT; c++)
        for (int i = 0; i < option_count && command_specs[c].doc; i++) {
            char *const text =
                option_is_for(&option_specs[i], c) ? kept(option_text(&option_specs[i], c)) : NULL;
            for (int k = 0; text && k < COMMAND_COUNT; k++) {
                char label[32];
                snprintf(label, sizeof(label), "%s:", command_specs[k].name);
                bool named = strncmp(text, label, strlen(label)) == 0;
                EACH_TEXT (before, "; ", ", ", "(") {
                    snprintf(label, sizeof(label), "%s%s:", before, command_specs[k].name);
                    named = named || strstr(text, label);
                }
                cr_expect_not(named, "%s --%s: %s", command_specs[c].name, option_specs[i].name,
                              text);
            }
        }
}

/* What an option means to a command is said to that command, and in the manual. */
Test(help, own_texts)
{
    const struct option_spec *const s = &option_specs[option_find("base")];
    struct ran plot = run_bench("help plot"), compare = run_bench("help compare");

    cr_expect_str_neq(option_doc(s, CMD_PLOT), option_doc(s, CMD_COMPARE));
    cr_expect_str_eq(option_doc(s, CMD_PLOT), option_doc(s, CMD_REPORT));
    HAS(compare.out.data, "--axis");
    cr_expect_not(strstr(plot.out.data, "--axis"), "%s", plot.out.data);
    for (int i = 0; i < option_count; i++)
        for (int k = 0; k < OWN_DOCS && option_specs[i].docs[k].doc; k++)
            cr_expect_eq(option_specs[i].docs[k].only & ~option_specs[i].only, 0,
                         "--%s is not of %x", option_specs[i].name, option_specs[i].docs[k].only);
    HAS(plot.out.data, "[RUN/plots]");
    cr_expect_not(strstr(plot.out.data, "[results]"), "one default: %s", plot.out.data);
}

Test(help, the_general_page_names_every_command_and_is_short)
{
    struct ran r = must_bench("help");
    struct ran same = run_bench("--help");

    cr_expect_str_eq(r.out.data, same.out.data);
    for (int c = 0; c < COMMAND_COUNT; c++) {
        const char *const line = kept_text("\n  %s ", command_specs[c].name);
        cr_expect_eq(strstr(r.out.data, line) != NULL, command_specs[c].doc != NULL, "%s", line);
    }
    cr_expect_leq(count_in(r.out.data, "\n"), 41);
    cr_expect_leq(widest(r.out.data), 80, "%s", r.out.data);
}

/* Every example is a command line that the program accepts. */
Test(help, examples_can_be_parsed)
{
    forget_settings();
    for (int c = 0; c < COMMAND_COUNT; c++)
        for (int i = 0; i < EXAMPLES && command_specs[c].doc; i++) {
            const char *const line = command_specs[c].example[i].line;
            char words[256];
            struct options o;
            cr_assert(line || i > 0, "%s has no example", command_specs[c].name);
            if (!line)
                continue;
            if (strncmp(line, "bench", 5) != 0)
                continue;
            snprintf(words, sizeof(words), "%s", line + 5 + (line[5] == ' '));
            words[strcspn(words, ">")] = '\0';
            for (size_t n = strlen(words); n > 0 && words[n - 1] == ' ';)
                words[--n] = '\0';
            cr_expect_eq(parse_words(&o, words, &failure), OK, "%s: %s", line, failure.msg);
        }
}

Test(help, plot_names_its_figures)
{
    struct ran r = run_bench("help plot");

    for (int i = 0; i < figure_count; i++)
        cr_expect(strstr(r.out.data, figures[i].name), "%s", figures[i].name);
}

Test(help, the_manual_page_is_valid_and_complete)
{
    struct ran r = run_shell("\"$BENCH\" help man >bench.1 || exit; command -v man >/dev/null || "
                             "exit 99; MANWIDTH=100 LC_ALL=C.UTF-8 man --warnings -l bench.1");

    if (r.code == 99)
        cr_skip_test("man is not installed");
    expect_exit(&r, 0);
    cr_expect_eq(r.err.n, 0, "%s", r.err.data);
    for (int i = 0; i < option_count; i++)
        cr_expect(names_option(r.out.data, option_specs[i].name), "--%s", option_specs[i].name);
    for (int c = 0; c < COMMAND_COUNT; c++) {
        const char *const title = kept_text("bench %s", command_specs[c].name);
        cr_expect(!command_specs[c].doc || strstr(r.out.data, title), "%s", title);
    }
}

/* ---- completion ---------------------------------------------------------------------------- */

/* What bash would offer for the last of these words. */
static struct ran offered(const char *words)
{

    return run_shell("PATH=${BENCH%%/*}:$PATH exec bash -c 'source <(bench completion bash) && "
                     "COMP_WORDS=(%s) && COMP_CWORD=$((${#COMP_WORDS[@]} - 1)) && _bench && printf "
                     "\"%%s\\n\" \"${COMPREPLY[@]}\"'",
                     words);
}

Test(completion, bash, .init = folder_make, .fini = folder_remove)
{
    static const struct {
        const char *words, *offer;
    } cases[] = {
        {"bench pl", "plot\n"},
        {"bench help pl", "plot\n"},
        {"bench list var", "variants\n"},
        {"bench completion z", "zsh\n"},
        {"bench plot --fig", "--figure\n"},
        {"bench plot --figure latency-s", "latency-seq\n"},
        {"bench plot --figure latency-seq,latency-m", "latency-seq,latency-mem\n"},
        {"bench --variant gtr", "gtrxl\n"},
        {"bench -V xl,gtr", "xl,gtrxl\n"},
        {"bench --backend = re", "ref\n"},
        {"bench --filter variant : gtr", "gtrxl\n"},
        {"bench --filter !backend : re", "ref\n"},
        {"bench --corpus copy : l", "\n"},
        {"bench topo --se", "\n"},
        {"bench --order g", "given\n"},
        {"bench --workload = de", "decode\n"},
        {"bench --workload=attn,de", "--workload=attn,decode\n"}, /* where = ends no word */
        {"bench --workload=de", "--workload=decode\n"},
        {"bench --filter variant:gtr", "variant:gtrxl\n"},
        {"bench --filter=!backend:re", "--filter=!backend:ref\n"},
        {"bench explain x", "\n"},
        {"bench explain 0123456789abcdef resu", "results\n"},
        {"bench @har", "@harness\n"},
    };
    must_shell("mkdir harness && $BENCH -q --variant xl --backend ref --workload attn --seq 4,8 "
               "--mem 0 --quick >/dev/null");

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct ran r = offered(cases[i].words);
        expect_exit(&r, 0);
        cr_expect_str_eq(r.out.data, cases[i].offer, "%s: %s", cases[i].words, r.out.data);
        cr_expect_eq(r.err.n, 0, "%s", r.err.data);
    }
}

/* Whoever asks gets the same words: every option of a command, every variant, cases of the latest run. */
Test(completion, words, .init = folder_make, .fini = folder_remove)
{
    struct ran r =
        must_shell("check() { awk -F, 'FNR == 1 { for (i = 1; $i != \"case_id\"; i++); c = i; next "
                   "} { print $c }' results/latest/$1.csv | sort >ids && [ -s ids ] || exit; for c "
                   "in explain rerun; do $BENCH __complete $c '' | cut -f1 | sort | cmp - ids || "
                   "exit; done; }; $BENCH -q --variant xl --backend ref --workload attn --seq 4,8 "
                   "--mem 0 --quick >/dev/null && rm -f results/latest/perplexity.csv && check "
                   "latency && $BENCH eval --ckpt ${BENCH%%/build/*}/results/models/xl.safetensors "
                   "--bytes 300 --seq 16 --mem 0,16 --threads 1 -q >/dev/null && check perplexity "
                   "&& $BENCH __complete --; $BENCH __complete -V ''");
    for (int k = 0; k < option_count; k++)
        if (option_is_for(&option_specs[k], CMD_SWEEP)) {
            const char *const line = kept_text("--%s\t", option_specs[k].name);
            cr_expect(strstr(r.out.data, line), "%s", line);
        }
    for (int k = 0; variants[k]; k++)
        cr_expect(strstr(r.out.data, variants[k]->name), "%s", variants[k]->name);
    bench_exits(1, "", "__complete --corpus ''");
    bench_exits(0, "", "__complete --seq ''");
}

/* A shell that is not here cannot check its script. */
Test(completion, every_shell, .init = folder_make, .fini = folder_remove)
{
    EACH_TEXT (shell, "bash", "zsh", "fish") {
        struct ran r = must_shell(
            "\"$BENCH\" completion %s >script && { ! command -v %s >/dev/null || %s -n script; }",
            shell, shell, shell);
        cr_expect_eq(r.err.n, 0, "%s: %s", shell, r.err.data);
    }
}
