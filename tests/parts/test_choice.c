/* SPDX-License-Identifier: MIT
 *
 * Rows of a table of choices: what each codec prints, reads, refuses and compares as equal. */
#include "tests/support/failure.h"
#include "variants/parts/choice.h"

enum colour { RED, GREEN };
static const char *const colour_name[] = {"red", "green", NULL};
struct ware {
    const char *name;
};
static const struct ware wares[] = {{"nut"}, {"bolt"}};

static const void *ware_at(int i) { return i < (int)ARRAY_LEN(wares) ? &wares[i] : NULL; }
static const struct registry ware_registry = {"ware", ware_at};

struct thing {
    char before; /* no field lies at 0 */
    int whole;
    bool flag;
    float real;
    double wide;
    enum colour colour;
    const struct ware *ware;
    struct layer_list list, counts;
    char word[8];
};

static void print_word(char text[CHOICE_TEXT], const void *base)
{
    snprintf(text, CHOICE_TEXT, "<%s>", ((const struct thing *)base)->word);
}

static enum status parse_word(void *base, const char *text, struct err *e)
{
    char word[8];

    if (sscanf(text, "<%7[a-z]>", word) != 1)
        return fail(e, E_USAGE, "word \"%.60s\": no brackets  -> <word>", text);
    strcpy(((struct thing *)base)->word, word);
    return OK;
}

#define ROW(codec_, ...)                                                                           \
    {                                                                                              \
        .help = "help", .codec = CODEC_##codec_, __VA_ARGS__                                       \
    }
#define AT(field) .name = #field, .at = offsetof(struct thing, field)
enum { WHOLE, FLAG, REAL, WIDE, COLOUR, WARE, LIST, COUNTS, WORD };
static const struct choice rows[] = {
    ROW(INT, AT(whole), .least = -2, .most = 100),
    ROW(FLAG, AT(flag)),
    ROW(REAL, AT(real), .least = 0, .most = 1),
    ROW(WIDE, AT(wide), .least = 0, .most = 1e6),
    ROW(WORD, AT(colour), .words = colour_name),
    ROW(ENTRY, AT(ware), .list = &ware_registry),
    ROW(LIST, AT(list), .most = 1e12),
    ROW(LIST, AT(counts), .least = 1, .most = 9, .whole = true),
    ROW(TEXT, AT(word), .print = print_word, .parse = parse_word),
};

Test(choice, every_codec_reads_what_it_prints)
{
    static const struct {
        int row;
        const char *text, *other;
    } cases[] = {
        {WHOLE, "-2", "3"},
        {WHOLE, "100", "-2"},
        {FLAG, "0", "1"},
        {FLAG, "1", "0"},
        {REAL, "0.1", "0.10000001"}, /* a float's neighbour */
        {REAL, "1", "0"},
        {WIDE, "0.10000000000000001", "0.10000000000000002"},
        {WIDE, "1000000", "999999.99999999988"},
        {COLOUR, "red", "green"},
        {COLOUR, "green", "red"},
        {WARE, "bolt", "nut"},
        {LIST, "", "0"},
        {LIST, "1000000,0,0.5", "1000000,0"},
        {LIST, "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16", "1"},
        {COUNTS, "1,9", "9,1"},
        {WORD, "<abc>", "<abd>"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct choice *const row = &rows[cases[i].row];
        struct thing a = {0}, b = {0}, other = {0};
        char text[CHOICE_TEXT];
        MUST(choice_parse(row, &a, cases[i].text, &failure));
        choice_print(text, row, &a);
        cr_expect_str_eq(text, cases[i].text, "%s", row->name);
        MUST(choice_parse(row, &b, text, &failure));
        MUST(choice_parse(row, &other, cases[i].other, &failure));
        cr_expect(choice_equal(row, &a, &b), "%s %s", row->name, text);
        cr_expect_not(choice_equal(row, &a, &other), "%s %s", row->name, text);
    }
}

Test(choice, values_go_to_their_field_alone)
{
    static const char *const values[] = {"7",    "1",   "0.5", "0.25", "green",
                                         "bolt", "4,0", "3",   "<x>"};
    struct thing t = {0};

    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        MUST(choice_parse(&rows[i], &t, values[i], &failure));
    cr_expect(t.before == 0 && t.whole == 7 && t.flag && t.real == 0.5F && t.wide == 0.25);
    cr_expect(t.colour == GREEN && t.ware == &wares[1] && strcmp(t.word, "x") == 0);
    cr_expect(t.list.n == 2 && t.list.at[0] == 4 && t.list.at[1] == 0);
    cr_expect(t.counts.n == 1 && t.counts.at[0] == 3);
}

Test(choice, refusals_say_what_would_do_and_change_nothing)
{
    static const struct {
        int row;
        const char *text, *said;
    } cases[] = {
        {WHOLE, "", "whole \"\": help  -> use -2 to 100"},
        {WHOLE, "-3", "  -> use -2 to 100"},
        {WHOLE, "101", "  -> use -2 to 100"},
        {WHOLE, "1.5", "  -> use -2 to 100"},
        {WHOLE, "7x", "  -> use -2 to 100"},
        {WHOLE, "nan", "  -> use -2 to 100"},
        {WHOLE, "1e999", "  -> use -2 to 100"},
        {FLAG, "", "flag \"\": help  -> use 0 or 1"},
        {FLAG, "yes", "  -> use 0 or 1"},
        {FLAG, "01", "  -> use 0 or 1"},
        {REAL, "1.01", "real \"1.01\": help  -> use 0 to 1"},
        {REAL, "nan", "  -> use 0 to 1"},
        {WIDE, "inf", "wide \"inf\": help  -> use 0 to 1000000"},
        {COLOUR, "blue", "colour \"blue\" is unknown  -> use red, green"},
        {COLOUR, "", "colour \"\" is unknown"},
        {COLOUR, "gree", "colour \"gree\" is unknown"},
        {WARE, "screw", "ware \"screw\" is unknown  -> use nut, bolt"},
        {WARE, "", "ware \"\" is unknown"},
        {LIST, "4,", "list \"4,\": not up to 16 numbers from 0 to 1000000000000  -> "},
        {LIST, ",4", "list"},
        {LIST, "-1", "list"},
        {LIST, "nan", "list"},
        {LIST, "4;0", "list"},
        {LIST, "1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17", "not up to 16"},
        {COUNTS, "1.5", "counts \"1.5\": not up to 16 whole numbers from 1 to 9"},
        {COUNTS, "0", "whole numbers from 1 to 9"},
        {COUNTS, "10", "whole numbers from 1 to 9"},
        {WORD, "abc", "word \"abc\": no brackets"},
    };

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        const struct choice *const row = &rows[cases[i].row];
        struct thing t = {.word = "old",
                          .whole = 9,
                          .real = 0.5F,
                          .wide = 2,
                          .colour = GREEN,
                          .list = {1, {7}},
                          .counts = {1, {7}}};
        const struct thing before = t;
        REFUSED(choice_parse(row, &t, cases[i].text, &failure), E_USAGE, cases[i].said);
        cr_expect(choice_equal(row, &t, &before), "%s \"%s\"", row->name, cases[i].text);
    }
}

Test(choice, no_entry_is_no_text)
{
    const struct thing none = {0}, nut = {.ware = &wares[0]};
    char text[CHOICE_TEXT] = "?";

    choice_print(text, &rows[WARE], &none);
    cr_expect_str_eq(text, "");
    cr_expect_not(choice_equal(&rows[WARE], &none, &nut));
}

Test(choice, an_unsaid_word_is_no_text)
{
    struct choice row = rows[COLOUR];
    const struct thing red = {.colour = RED}, green = {.colour = GREEN};
    char text[CHOICE_TEXT] = "?";

    row.unsaid = "green";
    choice_print(text, &row, &green);
    cr_expect_str_eq(text, "");
    choice_print(text, &row, &red);
    cr_expect_str_eq(text, "red");
}

Test(choice, words_end)
{
    cr_expect_str_eq(choice_word(&rows[COLOUR], 1), "green");
    cr_expect_null(choice_word(&rows[COLOUR], 2));
    cr_expect_str_eq(choice_word(&rows[WARE], 0), "nut");
    cr_expect_null(choice_word(&rows[WARE], 2));
    cr_expect_null(choice_word(&rows[WHOLE], 0));
    cr_expect_null(choice_word(&rows[WORD], 0));
    cr_expect_eq(registry_find(&ware_registry, "bolt"), &wares[1]);
    cr_expect_null(registry_find(&ware_registry, "bol"));
}

static bool never(const struct config *c) { return false; }

Test(choice, applies_from_its_scope_on)
{
    struct choice row = rows[WHOLE];

    row.scope = SCOPE_LAYER;
    cr_expect_not(choice_applies(&row, NULL, SCOPE_CORE));
    cr_expect(choice_applies(&row, NULL, SCOPE_LAYER));
    cr_expect(choice_applies(&row, NULL, SCOPE_MODEL));
    row.applies = never;
    cr_expect_not(choice_applies(&row, NULL, SCOPE_MODEL));
}
