/* SPDX-License-Identifier: MIT
 *
 * The control of each variant: it is a command line, and its model differs from the variant's only in
 * what the variant's file sets. */
#include "tests/support/command_line.h"
#include "tests/support/program.h"
#include "variants/model/attention/around.h"
#include "variants/model/config/control.h"
#include "variants/model/config/keys.h"

enum { FIELD_TEXT = 512 };

/* What is no row of files or options, but a part. */
static const struct choice parts[] = {
    {.name = "gate",
     .codec = CODEC_ENTRY,
     .at = offsetof(struct config, gate),
     .list = &gate_registry},
    {.name = "mixer",
     .codec = CODEC_ENTRY,
     .at = offsetof(struct config, mixer),
     .list = &mixer_registry},
    {.name = "positions",
     .codec = CODEC_ENTRY,
     .at = offsetof(struct config, pos),
     .list = &pos_registry},
};

/* A field of a model that has a name, in a struct of it. */
struct field {
    const struct choice *row;
    ptrdiff_t at;
};

/* The i-th of what a part of attention has of its own; no row after the last. */
static struct field around_at(int i)
{
    for (enum part_slot s = SLOT_AROUND; s < SLOT_COUNT; s++) {
        const struct part_numbers *const numbers = around_of(s)->numbers;
        for (const struct choice *row = numbers ? numbers->choices : NULL; row && row->name; row++)
            if (i-- == 0)
                return (struct field){row, offsetof(struct config, numbers) +
                                               (ptrdiff_t)s * (ptrdiff_t)sizeof(union part_values)};
    }
    return (struct field){0};
}

/* The i-th of all; no row after the last. */
static struct field field_at(int i)
{
    const int n = ARRAY_LEN(parts);
    int keys = 0;

    while (model_key(keys))
        keys++;
    return i < n                        ? (struct field){&parts[i], 0}
           : i - n < MODEL_CHOICE_COUNT ? (struct field){&model_choices[i - n], 0}
           : i - n - MODEL_CHOICE_COUNT < keys
               ? (struct field){model_key(i - n - MODEL_CHOICE_COUNT), 0}
               : around_at(i - n - MODEL_CHOICE_COUNT - keys);
}

static void print(char text[CHOICE_TEXT], struct field f, const struct config *c)
{
    *text = '\0';
    if (choice_applies(f.row, c, SCOPE_MODEL))
        choice_print(text, f.row, (const char *)c + f.at);
}

static bool differ(struct field f, const struct config *a, const struct config *b)
{
    char of_a[CHOICE_TEXT], of_b[CHOICE_TEXT];

    print(of_a, f, a);
    print(of_b, f, b);
    return strcmp(of_a, of_b) != 0;
}

/* The model of a line; of a stack its recurrent layers. */
static struct config layers_of(const char *line)
{
    const struct config c = model_of_line(line);

    return config_of_layers(&c, false);
}

/* Does a field say how norms, sums and feed-forward networks are, that most ideas leave alone? */
static bool is_skeleton(const char *name)
{
    static const char *const of[] = {"norm_place", "norm", "ffn", "gate"};

    for (int i = 0; i < (int)ARRAY_LEN(of); i++)
        if (strcmp(name, of[i]) == 0)
            return true;
    return false;
}

/* Families whose ideas are norms, sums, feed-forward networks, or a model as published. */
static bool changes_skeletons(enum family f)
{
    return f == FAMILY_NORM || f == FAMILY_FEED_FORWARD || f == FAMILY_ARCHITECTURE ||
           f == FAMILY_FULL;
}

Test(controls, all_variants_but_the_first_have_one)
{
    cr_expect_null(variants[0]->control);
    for (int i = 1; variants[i]; i++)
        cr_expect(variants[i]->control && *variants[i]->control, "%s", variants[i]->name);
}

/* All options of a control are options that it has: a plan of it is no error. */
Test(controls, are_command_lines)
{
    for (int i = 1; variants[i]; i++) {
        const struct variant *const control = layers_of(variants[i]->control).variant;

        struct plan p =
            planned("-b ref --workload %s --seq 8 --mem 0 -V %s",
                    control_acts_between_layers(control) ? "segment --layers 6" : "layer",
                    variants[i]->control);
        cr_expect_eq(p.n, 1, "%s: %d cases", variants[i]->control, p.n);
    }
}

/* A field that a file sets is one in which its model differs from that of a file that sets nothing.
 * Each sets positions and memory, and the settings of parts follow from the parts. */
Test(controls, differ_from_variants_in_what_their_files_set)
{
    static const struct variant nothing = {.name = "nothing", .pos = &pos_none, .mem = &mem_none};

    for (int i = 1; variants[i]; i++) {
        const struct variant *const v = variants[i];
        const struct config a = layers_of(v->name), b = layers_of(v->control);
        struct config bare = config_default(&nothing, a.D, a.H, a.D / a.H, 4 * a.D, 4, a.V);
        struct field f;

        bare.mem_len = a.mem_len;
        bare.max_seq = a.max_seq;
        bare.ffn = &ffn_relu;
        model_choices_settle(&bare);
        for (int k = 0; (f = field_at(k)).row; k++)
            if (differ(f, &a, &b) && strcmp(f.row->name, "positions") != 0 &&
                strcmp(f.row->name, "final_ln") != 0) { /* follows from norm_place */
                char of_a[CHOICE_TEXT], of_b[CHOICE_TEXT];

                print(of_a, f, &a);
                print(of_b, f, &b);
                cr_expect(differ(f, &a, &bare) || !*of_b || !*of_a,
                          "%s: its file sets no %s \"%s\", and its control (%s) has \"%s\"",
                          v->name, f.row->name, of_a, v->control, of_b);
                cr_expect(!is_skeleton(f.row->name) || changes_skeletons(variant_family(i)),
                          "%s: %s is \"%s\", of its control (%s) \"%s\"", v->name, f.row->name,
                          of_a, v->control, of_b);
            }
    }
}

static void expect_hidden(const struct variant *v, const char *workload)
{
    struct options o;
    struct plan p;
    char line[256];

    snprintf(line, sizeof(line), "-b ref --seq 8 --mem 0 -w %s --layers 1,6 -V vanilla,%s",
             workload, v->name);
    must_plan(&p, &o, line);
    cr_assert_eq(p.n, 4, "%s", line);
    cr_expect(p.cases[1].unsupported && strstr(p.cases[1].unsupported, "--layers"), "%s", line);
    cr_expect_null(p.cases[3].unsupported, "%s: %s", line, p.cases[3].unsupported);
    snprintf(line, sizeof(line), "-b ref --seq 8 --mem 0 -w %s --layers 1 -V %s", workload,
             v->name);
    cr_assert_eq(parse_words(&o, line, &failure), OK);
    cr_expect_eq(plan_asked(&p, &o, &failure), E_UNSUPPORTED, "%s", line);
    HAS(failure.msg, "-> use --layers 6");
}

/* A call of its attention alone is not about layers. */
static void expect_seen_in_cross(const struct variant *v)
{
    const struct plan p = planned("-b ref --seq 8 --mem 4 -w cross -V vanilla,%s", v->name);

    cr_assert_eq(p.n, 2, "%s", v->name);
    const char *const why = p.cases[1].unsupported;
    cr_expect(!why || !strstr(why, "between layers"), "%s: %s", v->name, why);
}

/* What acts between layers has no rows of one layer, and hybrids none without an attention layer. */
Test(controls, models_of_too_few_layers_are_left_out)
{
    int n = 0;

    for (int i = 0; variants[i]; i++) {
        const struct variant *const v = variants[i];
        const bool hides = control_acts_between_layers(v);
        cr_expect_eq(control_hides(v, 1), hides, "%s", v->name);
        cr_expect_eq(control_hides(v, 2),
                     v->stack.n > 2 && !v->stack.attends[0] && !v->stack.attends[1], "%s", v->name);
        cr_expect_not(control_hides(v, 6), "%s", v->name);
        n += hides;
        if (hides) {
            expect_hidden(v, "segment");
            expect_hidden(v, "decode");
            expect_hidden(v, "train");
            expect_seen_in_cross(v);
        }
    }
    cr_expect_gt(n, 12);
}
