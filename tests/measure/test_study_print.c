/* SPDX-License-Identifier: MIT
 *
 * The table of a study, what stands below it, and its answer in sentences. */
#include "harness/measure/study_answer.h"
#include "tests/support/pasted.h"
#include "tests/support/study_rows.h"
#include "tests/support/words.h"

static char *printed(const struct study_verdicts *v, enum format format)
{
    return PRINTED(f, study_verdicts_print(f, v, format));
}

/* How many more or fewer parameters a contender has than its control, beyond the 2 % that the usual
 * sizes differ by: a note of its row for programs, a line below the table for people; a row that
 * failed has none. */
Test(study_print, says_other_numbers_of_parameters)
{
    static const struct {
        const char *contender, *control;
        int64_t parameters;
        const char *note; /* NULL: none */
    } is[] = {{"base", "", 1000000, NULL},
              {"equal", "base", 1000000, NULL},
              {"close", "base", 1019999, NULL},
              {"closer", "base", 980001, NULL},
              {"large", "base", 1210000, "21 % more parameters than its control base"},
              {"small", "base", 900000, "10 % fewer parameters than its control base"},
              {"twice", "small", 1000000, "11.1 % more parameters than its control small"},
              {"older", "", 1030000, "3 % more parameters than the baseline base"}};
    struct table_of_rows t = make_rows();

    for (size_t i = 0; i < ARRAY_LEN(is); i++)
        for (int seed = 1; seed <= 3; seed++) {
            struct study_row *const r = add(&t, is[i].contender, "s", seed, 2 + 0.01 * seed);
            text_put(r->control, TEXT_SIZE, is[i].control);
            r->parameters = is[i].parameters;
            if (seed == 1) { /* and none, where a training failed */
                text_put(r->status, TEXT_SIZE, "failed");
                r->parameters = I64_EMPTY;
                r->test_nats = NAN;
            }
        }
    struct study_verdicts v = verdicts(&t);
    char *const csv = printed(&v, FORMAT_CSV), *const md = printed(&v, FORMAT_MD);
    for (size_t i = 0; i < ARRAY_LEN(is); i++) {
        char cell[64], line[128];
        snprintf(cell, sizeof(cell), ",%s,%s,", is[i].contender, is[i].control);
        const char *const at = strstr(csv, cell), *const end = at ? strchr(at, '\n') : NULL;
        cr_assert(end, "%s: %s", is[i].contender, csv);
        const char *const note = strstr(at, is[i].note ? is[i].note : " parameters than ");
        cr_expect_eq(note && note < end, is[i].note != NULL, "%s: %s", is[i].contender, csv);
        snprintf(line, sizeof(line), "\n%s has ", is[i].contender);
        if (is[i].note)
            snprintf(line, sizeof(line), "\n%s has %s\n", is[i].contender, is[i].note);
        cr_expect_eq(strstr(md, line) != NULL, is[i].note != NULL, "%s: %s", line, md);
    }
}

/* The sentences name as better and worse whom the verdicts do, and no one else; of a study at several
 * places they say where. */
Test(study_print, the_answer_in_sentences)
{
    static const struct {
        const char *contender, *size;
        double nats, spread;
        int64_t parameters;
    } is[] = {{"base", "s", 2, 0.01, 1000},        {"good", "s", 1.92, 0.001, 1210},
              {"bad", "s", 9, 0.01, 1000},         {"like", "s", 2, 0.02, 1000},
              {"wild", "s", 1.5, 5, 1000},         {"base", "other", 2, 0.01, 1000},
              {"good", "other", 2.001, 0.01, 1000}};

    for (int places = 1; places <= 2; places++) {
        struct table_of_rows t = make_rows();
        char text[2048] = "";
        for (size_t i = 0; i < ARRAY_LEN(is) - 2 * (places == 1); i++)
            for (int seed = 1; seed <= 3; seed++)
                add(&t, is[i].contender, is[i].size, seed,
                    is[i].nats + is[i].spread * ((seed + (int)i) % 3 - 1))
                    ->parameters = is[i].parameters;
        struct study_verdicts v = verdicts(&t);
        FILE *const f = fmemopen(text, sizeof(text), "w");
        cr_assert(f);
        study_answer(f, &v);
        fclose(f);
        const char *const where = places > 1 ? "text, s: " : "";
        const char *const good = kept_text("%sgood is 0.080 nats better than base (p ", where);
        const char *const others = kept_text("\n%sNo difference is shown for like (-0.0", where);
        cr_expect_eq(strncmp(text, good, strlen(good)), 0, "%s", text);
        HAS(text, "), with 21 % more parameters.\n", "bad is 7.000 nats worse than base (p ",
            others, "), wild (-1", "): more is ruled out at 95 %.\n");
        cr_expect_eq(strstr(text, "\ntext, other: No difference is shown for good (-0.0") != NULL,
                     places > 1, "%s", text);
        cr_expect_eq(count_in(text, "\n"), 2 + places, "and nothing else: %s", text);
    }
}

Test(study_print, prints_a_row_each)
{
    struct table_of_rows t = make_rows();

    for (int seed = 1; seed <= 3; seed++) {
        add(&t, "base", "s", seed, 2 + 0.01 * seed);
        add(&t, "far", "s", seed, 9 + 0.01 * seed);
    }
    struct study_verdicts v = verdicts(&t);
    char *const out = PRINTED(f, study_verdicts_print(f, &v, FORMAT_CSV));
    NUMBERS_OF(out, {count_in(out, "\n"), 3}, {strncmp(out, "corpus,size,contender,", 22), 0});
    cr_expect(strstr(out, "text,s,far,") && strstr(out, ",worse,"), "%s", out);
}

/* To paste: what the screen shows, neither columns for programs nor empty ones. */
Test(study_print, to_paste)
{
    struct table_of_rows t = make_rows();

    for (int seed = 1; seed <= 3; seed++) {
        struct study_row *const r = add(&t, "base", "s", seed, 2 + 0.01 * seed);
        text_put(r->corpus, LINE_SIZE, "50%_of#a&b|c");
        struct study_row *const other = add(&t, "far", "s", seed, 1 + 0.01 * seed);
        text_put(other->corpus, LINE_SIZE, r->corpus);
    }
    struct study_verdicts v = verdicts(&t);
    char *const table = printed(&v, FORMAT_TABLE), *const md = printed(&v, FORMAT_MD),
                *const tex = printed(&v, FORMAT_TEX);
    cr_expect_eq(expect_pasted(table, md, tex), 3, "%s", md);
    cr_expect_not(strstr(md, "noise_nats") || strstr(md, "way_least"), "%s", md);
    HAS(tex, "50\\%\\_of\\#a\\&b\\textbar{}c", "\n% noise floor");
}

/* Where a verdict is "not shown", people are told which differences it rules out; tables for programs
 * have rows alone. */
Test(study_print, says_what_not_shown_rules_out)
{
    static const enum format formats[] = {FORMAT_MD, FORMAT_CSV};

    for (int far = 0; far <= 1; far++) {
        struct table_of_rows t = make_rows();
        for (int seed = 1; seed <= 3; seed++) {
            add(&t, "base", "s", seed, 2 + 0.01 * seed);
            add(&t, "other", "s", seed, 2 + 0.01 * (seed % 3 + 1) + 7 * far);
        }
        struct study_verdicts v = verdicts(&t);
        for (size_t i = 0; i < ARRAY_LEN(formats); i++) {
            char *const out = PRINTED(f, study_verdicts_print(f, &v, formats[i]));
            cr_expect_eq(strstr(out, "not shown") != NULL, !far, "%s", out);
            cr_expect_eq(strstr(out, "outside its ci95_low to ci95_high") != NULL,
                         !far && formats[i] == FORMAT_MD, "%s", out);
        }
    }
}
