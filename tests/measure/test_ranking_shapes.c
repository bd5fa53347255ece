/* SPDX-License-Identifier: MIT
 *
 * Rankings of rows that differ in more than their length: memories, threads, and noise in some of
 * the shapes. */
#include "tests/support/each.h"
#include "tests/support/ranked.h"

TestSuite(ranking_shapes, .init = folder_make, .fini = folder_remove, .timeout = 240);

/* A row of a shape: memory and threads, too; rounds of blocks, of which the first
 * `disturbed` were preempted. A team that `sleeps` has half the time of its blocks as CPU time. */
struct shaped {
    struct made_case is;
    int mem, threads, disturbed;
    bool sleeps;
};
static const char *const *held; /* [n] how each has its context; NULL = as usual */
static int rounds = 20;

static void add_shaped(struct rundir *d, const struct shaped *v, int n)
{
    for (int i = 0; i < n; i++) {
        struct key_row k = made_key(d, &v[i].is, "host");
        k.mem_tokens = v[i].mem;
        if (held)
            text_put(k.mem_kind, sizeof(k.mem_kind), held[i]);
        k.threads = v[i].threads;
        struct latency_row row = ROW_OF(latency, LATENCY, &k);
        row.median_ns = v[i].is.ns;
        row.cpu_time_median_ns = v[i].is.ns * (v[i].sleeps ? 0.5 : 1);
        row.ci95_low_ns = row.ci95_high_ns = v[i].is.ns;
        made_write(d, TABLE_LATENCY, &row);
    }
    for (int round = 0; round < rounds; round++)
        for (int i = 0; i < n; i++)
            made_slept_sample(d, v[i].is.id, round, v[i].is.ns, round < v[i].disturbed,
                              v[i].sleeps ? 0.5 : 1);
}

static void add_score(struct rundir *d, const char *variant, const char *id, int mem, double bits)
{
    const struct made_case c = {variant, "ref", id, 64, 0};
    struct key_row k = made_key(d, &c, "host");

    k.mem_tokens = mem;
    struct perplexity_row p = ROW_OF(perplexity, PERPLEXITY, &k);
    p.bits_per_unit = bits;
    text_put(p.unit, TEXT_SIZE, "word");
    made_write(d, TABLE_PERPLEXITY, &p);
}

static const struct contestant *named(const struct ranking *r, const char *name)
{
    int i = 0;

    while (i < r->n && strcmp(r->v[i].name, name) != 0)
        i++;
    cr_assert_lt(i, r->n, "no %s", name);
    return &r->v[i];
}

/* Of several memories the longest that a variant was timed with; a score of another memory is not
 * taken for it, and of two scores neither. */
Test(ranking_shapes, perplexity_is_that_of_the_longest_memory)
{
    static const struct shaped v[] = {
        {{"xl", "avx2", "1", 64, 1000}, 128, 1, 0, false},
        {{"xl", "avx2", "2", 64, 1500}, 512, 1, 0, false},
        {{"xl", "avx2", "3", 64, 900}, 0, 1, 0, false},
        {{"rope", "avx2", "4", 64, 2000}, 0, 1, 0, false},
        {{"rope", "avx2", "5", 64, 2500}, 128, 1, 0, false},
        {{"gqa", "avx2", "6", 64, 3000}, 0, 1, 0, false},
        {{"window", "avx2", "7", 64, 3500}, 0, 1, 0, false},
        {{"window", "avx2", "8", 64, 3600}, 64, 1, 0, false},
    };
    struct rundir d = made_open("aaaa");
    add_shaped(&d, v, ARRAY_LEN(v));
    add_score(&d, "xl", "s1", 0, 3), add_score(&d, "xl", "s2", 128, 2.5);
    add_score(&d, "xl", "s3", 512, 2), add_score(&d, "xl", "s4", 1024, 1);
    add_score(&d, "rope", "s5", 0, 4), add_score(&d, "rope", "s6", 128, 3.5);
    add_score(&d, "gqa", "s7", 0, 5), add_score(&d, "gqa", "s8", 0, 6);
    add_score(&d, "window", "s9", 0, 7);
    struct rankings r = ranked_end(&d, RANKED_VARIANTS);
    cr_assert_eq(r.n, 1);
    NUMBERS({r.v[0].shapes, 4}, {named(&r.v[0], "xl")->bits, 2},
            {named(&r.v[0], "rope")->bits, 3.5});
    cr_expect(isnan(named(&r.v[0], "gqa")->bits), "scored twice");
    cr_expect(isnan(named(&r.v[0], "window")->bits), "not scored with 64");
    cr_expect_str_eq(r.unit, "word");
}

/* Energy per new token, over what all ran; silent where a row has none. */
Test(ranking_shapes, energy_stands_beside_the_time)
{
    enum { SHAPES = 2 };
    static const struct energy_case {
        struct made_case is;
        double joules;
    } v[] = {
        {{"xl", "avx2", "1", 100, 1000}, 1e-3},   {{"xl", "avx2", "2", 400, 2000}, 1e-3},
        {{"rope", "avx2", "3", 100, 2000}, 2e-3}, {{"rope", "avx2", "4", 400, 3000}, NAN},
        {{"gqa", "avx2", "5", 100, 3000}, 4e-3},  {{"gqa", "avx2", "6", 400, 5000}, 16e-3},
    };
    struct rundir d = made_open("aaaa");
    for (size_t i = 0; i < ARRAY_LEN(v); i++) {
        const struct key_row k = made_key(&d, &v[i].is, "host");
        struct latency_row row = ROW_OF(latency, LATENCY, &k);
        row.median_ns = v[i].is.ns;
        row.tokens_per_s = v[i].is.seq / (row.median_ns * 1e-9);
        row.energy_j = v[i].joules;
        made_write(&d, TABLE_LATENCY, &row);
    }
    struct rankings r = ranked_end(&d, RANKED_VARIANTS);
    cr_assert(r.n == 1 && r.v[0].shapes == SHAPES);
    /* sqrt(1e-5 2.5e-6) and sqrt(4e-5 4e-5) joules */
    cr_expect_float_eq(named(&r.v[0], "xl")->joules, 5e-6, 1e-12);
    cr_expect_float_eq(named(&r.v[0], "gqa")->joules, 4e-5, 1e-12);
    cr_expect(isnan(named(&r.v[0], "rope")->joules), "not read in one shape");

    char *text = PRINTED(f, rankings_print(f, &r, RANKED_VARIANTS, 80, false));
    HAS(text, " energy/token", " 40.0 uJ");
    for (int i = 0; i < r.v[0].n; i++)
        r.v[0].v[i].joules = NAN;
    text = PRINTED(without, rankings_print(without, &r, RANKED_VARIANTS, 80, false));
    cr_expect_not(strstr(text, "energy"), "%s", text);
}

/* Three lengths, two threads. In `noisy` of them both sides were preempted more often than not, and
 * the faster one by CPU time slept half of each block: in doubt by 2. */
static bool slower_over_all(int noisy, bool *each)
{
    static const char *const id[] = {"1", "2", "3", "4", "5", "6"};
    struct shaped v[6];

    for (int i = 0; i < 6; i++)
        v[i] = (struct shaped){{i % 2 ? "rope" : "xl", "avx2", id[i], 64 << i / 2,
                                i % 2 == 0      ? 1000
                                : i / 2 < noisy ? 750
                                                : 1500},
                               0,
                               2,
                               i / 2 < noisy ? 15 : 0,
                               i % 2 == 0 && i / 2 < noisy};
    struct rundir d = made_open("aaaa");
    add_shaped(&d, v, 6);
    struct rankings r = ranked_end(&d, RANKED_VARIANTS);
    cr_assert(r.n == 1 && r.v[0].n == 2 && r.v[0].common == 3);
    cr_expect_str_eq(r.v[0].v[1].name, "rope");
    expect_ratio(&r.v[0].v[1].change.log, 1.5);
    for (int s = 0; s < 3; s++)
        each[s] = is_slower(&r.v[0].v[1].place[s].change);
    const bool slower = is_slower(&r.v[0].v[1].change);
    folder_remove();
    folder_make();
    return slower;
}

Test(ranking_shapes, noise_in_most_shapes_is_no_verdict)
{
    bool each[3];

    for (int noisy = 0; noisy <= 3; noisy++) {
        cr_expect_eq(slower_over_all(noisy, each), noisy <= 1, "%d of 3 shapes", noisy);
        for (int s = 0; s < 3; s++)
            cr_expect_eq(each[s], s >= noisy, "shape %d of %d noisy", s, noisy);
    }
}

/* Threads tell settings apart, and each has its leader; lengths and memories are shapes of one. */
Test(ranking_shapes, settings_are_not_mixed)
{
    static const struct shaped v[] = {
        {{"xl", "avx2", "1", 64, 1000}, 0, 1, 0, false},
        {{"rope", "avx2", "2", 64, 2000}, 0, 1, 0, false},
        {{"xl", "avx2", "3", 64, 800}, 0, 2, 0, false},
        {{"rope", "avx2", "4", 64, 400}, 0, 2, 0, false},
        {{"xl", "avx2", "5", 64, 1000}, 64, 2, 0, false},
        {{"rope", "avx2", "6", 64, 700}, 64, 2, 0, false},
    };
    struct rundir d = made_open("aaaa");
    add_shaped(&d, v, ARRAY_LEN(v));
    struct run run = made_read(&d);
    struct rankings r = ranked(&run, RANKED_VARIANTS);
    cr_assert_eq(r.n, 2);
    cr_expect(r.v[0].shapes == 1 && r.v[1].shapes == 2);
    cr_expect_str_eq(r.v[0].v[0].name, "xl");
    expect_ratio(&r.v[0].v[1].change.log, 2);
    cr_expect_str_eq(r.v[1].v[0].name, "rope");
    expect_ratio(&r.v[1].v[1].change.log, sqrt(2.0 * 1000 / 700));

    r = ranked(&run, RANKED_BACKENDS);
    cr_expect_eq(r.n, 0, "one backend is not ranked");
}

/* ---- the answer --------------------------------------------------------------------------- */

enum { MOST = 8, WORD = 16 };

/* Rows of "VARIANT/BACKEND[:LENGTH][@CONTEXT]=NS ...", their number. Behind NS "!": preempted in all rounds;
 * "~": and a team that slept half the time. */
static int rows_of(struct shaped v[MOST], const char *text)
{
    static char word[MOST][4][WORD];
    static const char *kinds[MOST];
    int n = 0;

    held = strchr(text, '@') ? kinds : NULL;
    for (; *text; n++, text += strspn(text, " ")) {
        char *const variant = word[n][0], *const backend = word[n][1], *const kind = word[n][2];
        char *const id = word[n][3], *at;
        int seq = 64, used = 0;
        cr_assert(sscanf(text, "%15[^/]/%15[^:@=]%n", variant, backend, &used) == 2, "%s", text);
        at = strchr(text, '=');
        (void)sscanf(text + used, ":%d", &seq);
        (void)sscanf(text + used, "@%15[^=]", kind);
        const double ns = strtod(at + 1, &at);
        const bool disturbed = *at == '!' || *at == '~', sleeps = *at == '~';
        snprintf(id, WORD, "%d", n + 1);
        kinds[n] = kind;
        v[n] = (struct shaped){
            {variant, backend, id, seq, ns}, held ? 64 : 0, 2, disturbed ? 20 : 0, sleeps};
        text = at + disturbed;
    }
    return n;
}

#define LIKE_ROPE "gqa against rope is undecided: they differ by less than 0.1 %.\n"
static struct answer_case {
    char rows[128];
    enum ranked what;
    int rounds;
    double gqa, rope; /* bits; 0 = not scored */
    char answer[256];
} answers[] = {
    /* The fast one is not taken for the good one. */
    {"gqa/avx2=1000 rope/onednn=1500", RANKED_VARIANTS, 20, 4, 1.5,
     "Use gqa on avx2: 1.50 times as fast as rope. Quality: rope 1.500 bits per word, "
     "gqa 4.000; less is better.\n"},
    {"gqa/avx2=1000 rope/onednn=1500", RANKED_VARIANTS, 20, 1.5, 4,
     "Use gqa on avx2: 1.50 times as fast as rope.\n"},
    {"gqa/avx2=1000 rope/onednn=1500 xl/avx2=67000", RANKED_VARIANTS, 20, 0, 0,
     "Use gqa on avx2: 1.50 times as fast as rope, the next.\n"},
    /* Preempted, and a team that slept half the time: 1.5 by CPU time is doubtful, 67 is not. */
    {"gqa/avx2=1000~ rope/onednn=750!", RANKED_VARIANTS, 20, 0, 0,
     "Probably use gqa on avx2: 1.50 times as fast as rope.\n"},
    {"gqa/avx2=1000~ vanilla/avx2=33500!", RANKED_VARIANTS, 20, 0, 0,
     "Use gqa on avx2: 67.0 times as fast as vanilla.\n"},
    /* One variant: the backends, over two shapes; one of them leads alike. */
    {"xl/avx2=1000 xl/onednn=1200 xl/avx2:128=2000 xl/onednn:128=2400", RANKED_BACKENDS, 20, 0, 0,
     "Use avx2: 1.20 times as fast as onednn (mean of 2 cases).\n"},
    {"xl/avx2=1000", RANKED_BACKENDS, 20, 0, 0, ""},
    /* What is undecided is said. */
    {"gqa/avx2=1000 rope/avx2=1000 xl/avx2=3000", RANKED_VARIANTS, 20, 0, 0,
     "Use gqa or rope on avx2: 3.00 times as fast as xl, the next. " LIKE_ROPE},
    {"gqa/avx2=1000 rope/avx2=1000", RANKED_VARIANTS, 20, 0, 0,
     "No variant is shown to be the fastest. " LIKE_ROPE},
    {"gqa/avx2=1000 rope/avx2=1000 window/onednn=1000 xl/avx2=3000", RANKED_VARIANTS, 20, 0, 0,
     "Use gqa on avx2, rope on avx2 or window on onednn: 3.00 times as fast as xl, the "
     "next. " LIKE_ROPE},
    {"gqa/avx2=1000 rope/avx2=1000 window/onednn=1000 alibi/avx2=1000 t5/avx2=1000 xl/avx2=3000",
     RANKED_VARIANTS, 20, 0, 0,
     "Use gqa on avx2 or one of 4 others: 3.00 times as fast as xl, the next. " LIKE_ROPE},
    /* Few samples are doubtful as those of a busy machine are, for another reason. */
    {"gqa/avx2=1000~ rope/avx2=500!", RANKED_VARIANTS, 20, 0, 0,
     "No variant is shown to be the fastest. gqa against rope is undecided on this busy "
     "machine.\n"},
    {"gqa/avx2=1000 rope/avx2=1000", RANKED_VARIANTS, 4, 0, 0,
     "No variant is shown to be the fastest. gqa against rope is undecided: too few samples.\n"},
    /* How contexts are held, of those that may be the fastest, over all shapes; in no way: nothing. */
    {"gqa/onednn@kv=1000 rope/avx2@state=1000 xl/avx2@hidden=3000", RANKED_VARIANTS, 20, 0, 0,
     "Use gqa on onednn or rope on avx2 (context: kv or state): 3.00 times as fast as xl, the "
     "next. " LIKE_ROPE},
    {"gqa/onednn@kv=1000 rope/avx2@state=2000 xl/avx2@hidden=3000", RANKED_VARIANTS, 20, 0, 0,
     "Use gqa on onednn (context: kv): 2.00 times as fast as rope, the next.\n"},
};

TEST_EACH(struct answer_case *c, ranking_shapes, answers, EVERY(answers))
{
    struct shaped v[MOST];

    rounds = c->rounds;
    struct rundir d = made_open("aaaa");
    add_shaped(&d, v, rows_of(v, c->rows));
    if (c->gqa > 0)
        add_score(&d, "gqa", "s1", 0, c->gqa), add_score(&d, "rope", "s2", 0, c->rope);
    struct rankings r = ranked_end(&d, c->what);
    cr_expect_str_eq(PRINTED(f, rankings_answer(f, &r, c->what, 1000)), c->answer, "%s", c->rows);
}

/* Twelve rounds of 0.11 s: rope is slower than gqa by 10 % in eight of them, `least` times as slow in
 * four. The interval reaches from the 3rd to the 10th of the ratios. */
static void expect_answer_if_four(double least, const char *answer)
{
    static const struct made_case gqa = {"gqa", "avx2", "1", 64, 1e7},
                                  rope = {"rope", "avx2", "2", 64, 1.1e7};
    struct rundir d = made_open("aaaa");
    for (int i = 0; i < 2; i++) {
        const struct made_case *const c = i ? &rope : &gqa;
        const struct key_row k = made_key(&d, c, "host");
        struct latency_row row = ROW_OF(latency, LATENCY, &k);
        row.median_ns = c->ns;
        row.samples = 12;
        row.inner_calls = 10;
        made_write(&d, TABLE_LATENCY, &row);
    }
    for (int round = 0; round < 12; round++) {
        made_sample(&d, gqa.id, round, gqa.ns, 0);
        made_sample(&d, rope.id, round, gqa.ns * (round < 8 ? 1.1 : least), 0);
    }
    struct rankings r = ranked_end(&d, RANKED_VARIANTS);
    const struct change *const c = &r.v[0].v[1].change;
    cr_expect(fabs(c->log.low - log(least)) < 1e-9 && fabs(c->log.high - log(1.1)) < 1e-9,
              "%g [%g %g] of %d", c->log.mid, c->log.low, c->log.high, c->n);
    char *text = PRINTED(f, rankings_answer(f, &r, RANKED_VARIANTS, 1000));
    cr_expect_str_eq(text, answer);
}

/* It begins at -5 %: in logs 0.147 below a middle of 0.095. To begin at 0 it takes 1.32 s
 * (0.147 / 0.095)^2 = 3.1 s. */
Test(ranking_shapes, the_time_that_would_decide_it)
{
    expect_answer_if_four(0.95, "No variant is shown to be the fastest. gqa against rope is "
                                "undecided; --max-time 4 would decide it.\n");
}

/* "1.00 to 1.10 times as fast" would be no difference at one end. */
Test(ranking_shapes, an_interval_that_begins_at_nothing)
{
    expect_answer_if_four(1.002, "Use gqa on avx2: up to 1.10 times as fast as rope.\n");
    expect_answer_if_four(1.02, "Use gqa on avx2: 1.02 to 1.10 times as fast as rope.\n");
}
