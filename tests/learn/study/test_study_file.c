/* SPDX-License-Identifier: MIT
 *
 * Files of studies: what they say, what is refused and where, and the jobs that follow. */
#include "harness/learn/study/study_jobs.h"
#include "tests/support/tmp_folder.h"

TestSuite(study_file, .init = folder_make, .fini = folder_remove);

#define WHOLE                                                                                      \
    "# a study\n"                                                                                  \
    "variants = vanilla, xl\n"                                                                     \
    "variant = gated: --variant gtrxl --gate highway # with its gate\n"                            \
    "baseline = xl\n"                                                                              \
    "size = small: --layers 1 --d-model 16 --heads 2\n"                                            \
    "size = large: --layers 2 --d-model 32 --heads 2\n"                                            \
    "\n"                                                                                           \
    "corpus = copy: copy:lag=8,p=0.9,alphabet=4\n"                                                 \
    "rates = 1e-3, 2e-3 4e-3\n"                                                                    \
    "baseline-seeds = 4\n"                                                                         \
    "seeds = 2\n"                                                                                  \
    "tokens = 1000\n"                                                                              \
    "train = --seq 16 --mem 8 --batch 4\n"                                                         \
    "eval = --mem 8,0\n"

/* What most studies here say of their text. */
#define REST "corpus = c: copy:lag=8\nrates = 1e-3\nsteps = 10\n"

static enum status read_text(struct study *s, const char *text, struct err *e)
{
    folder_put_text("a.study", text);
    const enum status st = study_read(s, in_folder("a.study"), e);
    kept_copy(s, sizeof(*s));
    return st;
}

Test(study_file, says_what_it_says)
{
    struct study s;

    MUST(read_text(&s, WHOLE, &failure));
    NUMBERS({s.variants.n, 3}, {s.baseline, 1}, {s.sizes.n, 2}, {s.n_corpora, 1}, {s.n_rates, 3},
            {s.rates[2], 4e-3}, {s.baseline_seeds, 4}, {s.seeds, 2}, {s.tune_seeds, 1});
    TEXTS({s.variants.v[0].words, "--variant vanilla"}, {s.variants.v[2].name, "gated"},
          {s.variants.v[2].words, "--variant gtrxl --gate highway"});
    cr_expect(s.tokens == 1000 && s.steps == 0 && !s.equal_parameters);
}

/* The name of a variant alone is that variant, as in a list of variants. */
Test(study_file, a_variant_by_its_name_alone)
{
    struct study s;

    MUST(read_text(&s,
                   "variant = xl\nvariant = gtrxl\nvariant = own: --variant xl\n"
                   "corpus = c: copy:lag=8\nrates = 1e-3\nsteps = 10\n",
                   &failure));
    cr_assert_eq(s.variants.n, 3);
    TEXTS({s.variants.v[0].name, "xl"}, {s.variants.v[0].words, "--variant xl"},
          {s.variants.v[1].name, "gtrxl"}, {s.variants.v[1].words, "--variant gtrxl"},
          {s.variants.v[2].name, "own"});
    REFUSED(read_text(&s, "variant = nosuch\n", &failure), E_USAGE,
            "variant has no name  -> write variant = NAME: ");
    REFUSED(read_text(&s, "variants = xl\nvariant = xl\n", &failure), E_USAGE, "twice");
}

/* One file is text to train on; nothing is left to test on but its end. */
Test(study_file, a_corpus_of_one_file)
{
#define ONE "variants = xl\ncorpus = c: text\nrates = 1\nsteps = 1\n"
    struct study s;

    MUST(read_text(&s, ONE, &failure));
    cr_expect_str_eq(s.corpora[0].train, "text");
    cr_expect(!s.corpora[0].valid && !*s.corpora[0].test && !study_scores(&s));
    REFUSED(read_text(&s, ONE "eval = --mem 0\n", &failure), E_USAGE, "eval is of a test text");
    MUST(read_text(&s, ONE "eval = --mem 0\ncorpus = d: a b t\n", &failure));
    cr_expect(study_scores(&s));
}

/* Each with the number of its line. */
Test(study_file, refuses_what_it_does_not_know)
{
    static const struct {
        const char *text, *says;
    } bad[] = {
        {"variants = vanilla\nsteps: 3\n", "line 2"},
        {"variants = vanilla\nstep = 3\n", "line 2"}, /* an unknown key */
        {"\nvanilla\n", "line 2"},
        {"steps = 1 2\n", "line 1"},
        {"\n\nrates = 1e-3 1e-3\n", "line 3"},
        {"rates = fast\n", "line 1"},
        {"variants = a\nrates-of = a:\n", "line 2"},
        {"variants = a\nrates-of = b: a\n", "line 2"},
        {"variants = a\nrates-of = a: b\n", "line 2"},
        {"variants = vanilla\ncorpus = c: copy:lag=8\nrates = auto 1 2\nsteps = 1\n", "auto"},
        {"steps = 3\nsteps = 4\n", "line 2"},
        {"steps = 0\n", "line 1"},
        {"seeds =\n", "line 1"},
        {"variants = a, a\n", "line 1"},
        {"variants = a\nbaseline = b\n", "line 2"},
        {"size = --layers 2\n", "line 1"},
        {"size = a/b: --layers 2\n", "line 1"},
        {"corpus = c: one two\n", "line 1"},
        {"corpus = c: one two three four\n", "line 1"},
        {"task = t: copy:lag=8\n", "line 1"},
        {"task = t: tmaze: catch:\n", "line 1"},
        {"task = t: tmaze:\ntask = t: catch:\n", "line 2"},
        {"corpus = c: copy:lag=8\ntask = t: tmaze:\n", "line 2"},
        {"task = t: tmaze:\ncorpus = c: copy:lag=8\n", "line 2"},
        {"equal-parameters = perhaps\n", "line 1"},
        {"skeleton = mine\n", "line 1"},
        {"train = --seq \"12\n", "line 1"},
        {"variants = vanilla\ncorpus = c: copy:lag=8\nsteps = 1\n", "rates"},
        {"variants = vanilla\ncorpus = c: copy:lag=8\nrates = 1\n", "steps"},
        {"variants = vanilla\ncorpus = c: copy:lag=8\nrates = 1\nsteps = 1\ntokens = 1\n", "steps"},
        {"variants = vanilla\ncorpus = c: copy:lag=8\nrates = 1\nsteps = 1\nseeds = 2\n"
         "tune-seeds = 3\n",
         "tune-seeds"},
    };

    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct study s;
        REFUSED(read_text(&s, bad[i].text, &failure), E_USAGE, bad[i].says, in_folder("a.study"),
                "  -> ");
    }
    struct study s;
    cr_expect_eq(study_read(&s, "/nowhere", &failure), E_IO);
}

/* ---- jobs ----------------------------------------------------------------------------------- */

struct planned {
    struct study study;
    struct study_plan plan;
    struct options opt;
};

static enum status plan_text(struct planned *p, const char *text, const char *options)
{
    *p = (struct planned){0};
    MUST(read_text(&p->study, text, &failure));
    MUST(options_parse_line(&p->opt, options, &failure));
    const enum status st = study_plan_make(&p->plan, &p->study, &p->opt, &failure);
    kept_copy(p, sizeof(*p));
    return st;
}

static void plan_good(struct planned *p, const char *text, const char *options)
{
    MUST(plan_text(p, text, options));
}

static int count_jobs(const struct study_plan *p, const char *contender, enum study_role role)
{
    int n = 0;

    for (int i = 0; i < p->n; i++)
        n += strcmp(p->jobs[i].model->variant->name, contender) == 0 && p->jobs[i].role == role;
    return n;
}

Test(study_file, jobs_of_each_group)
{
    struct planned p;

    plan_good(&p, WHOLE, "");
    cr_expect_eq(p.plan.n_models, 6);
    cr_expect_eq(count_jobs(&p.plan, "xl", STUDY_TUNE), 2 * 3); /* two sizes */
    cr_expect_eq(count_jobs(&p.plan, "xl", STUDY_FINAL), 2 * 4);
    cr_expect_eq(count_jobs(&p.plan, "gated", STUDY_FINAL), 2 * 2);
    cr_expect(p.plan.jobs[0].model->baseline, "the baseline comes first");
    cr_expect_eq(p.plan.models[0].steps, 16, "1000 tokens in steps of 64");
    for (int i = 0; i < p.plan.n; i++) {
        cr_expect(isnan(p.plan.jobs[i].lr) == (p.plan.jobs[i].role == STUDY_FINAL));
        for (int k = 0; k < i; k++)
            cr_expect_str_neq(p.plan.jobs[i].id, p.plan.jobs[k].id);
    }
}

/* What a job takes from the training of the largest budget ends before the last fifth of its own. */
Test(study_file, jobs_of_budgets)
{
    static const int stable[] = {6, 12, 0}, before[] = {0, 6, 12};
    struct planned p;
    plan_good(&p,
              "variants = xl\nrates = 1\ncorpus = c: copy:lag=8\nbaseline-seeds = 1\n"
              "budgets = 0.5Ki..2Ki*2\ntrain = --seq 16 --batch 4 --d-model 16 --heads 2\n",
              "");
    cr_expect_eq(p.plan.n, 3);
    for (int i = 0; i < p.plan.n; i++) {
        const struct study_job *const j = &p.plan.jobs[i];
        cr_expect(j->steps == 8 << i && j->stable == stable[i] && j->before == before[i], "%d", i);
    }
}

/* A search has its start, twice and half of it, and the others only if these ask for them; its budget is
 * its own. Whoever takes a rate has no tuning, and is in the shard of the other; models of a fixed list
 * are tuned with the whole budget. */
Test(study_file, jobs_of_a_search)
{
    static const char text[] =
        "variants = vanilla xl shaw rope\nrates = auto 2e-3\nrates-of = xl: shaw vanilla\n"
        "corpus = c: copy:lag=8\ntokens = 1Ki\ntune-tokens = 512\ntrain = --seq 16 --batch 4 --mem "
        "0 --layers 1 --d-model 16 --heads 2\n";
    struct planned p;

    plan_good(&p, text, "");
    cr_expect_eq(count_jobs(&p.plan, "xl", STUDY_TUNE), 13);
    cr_expect_eq(count_jobs(&p.plan, "shaw", STUDY_TUNE), 0);
    cr_expect_eq(count_jobs(&p.plan, "vanilla", STUDY_TUNE), 0);
    cr_expect_eq(count_jobs(&p.plan, "shaw", STUDY_FINAL), 3);
    for (int i = 0; i < p.plan.n; i++) {
        const struct study_job *const j = &p.plan.jobs[i];
        char *const line = kept(study_train_line(j, 1, j->steps));
        const bool tunes = j->role == STUDY_TUNE;
        NUMBERS({j->maybe, tunes && (j->lr > 4e-3 || j->lr < 1e-3)}, {isnan(j->lr), !tunes});
        cr_expect(!tunes || (j->lr >= 2e-3 / 64 && j->lr <= 2e-3 * 64), "%g", j->lr);
        cr_expect(strstr(line, tunes ? " --steps 8 " : " --steps 16 "), "%s", line);
    }
    for (int i = 1; i <= 4; i++) {
        const char *const shard = kept_text("--shard %d/4", i);
        plan_good(&p, text, shard);
        const int xl = count_jobs(&p.plan, "xl", STUDY_TUNE);
        cr_expect_eq(count_jobs(&p.plan, "shaw", STUDY_FINAL), xl > 0 ? 3 : 0);
        cr_expect_eq(count_jobs(&p.plan, "vanilla", STUDY_FINAL), xl > 0 ? 6 : 0);
    }
    plan_good(&p,
              "variants = xl\nrates = auto 9\ncorpus = c: copy:lag=8\nsteps = 1\n"
              "train = --layers 1 --d-model 16 --heads 2\n",
              "");
    cr_expect_eq(count_jobs(&p.plan, "xl", STUDY_TUNE), 7, "no rate is above 10");
}

/* Variants that are one model: by their configs, whatever they are called, and only if they are trained alike.
 * Their control, and whose rate they take, is the first. */
Test(study_file, one_model_under_several_names)
{
    static const struct {
        const char *name, *same, *control;
    } is[] = {{"rope", "", ""},       {"again", "rope", "rope"},  {"factor", "rope", "rope"},
              {"blind", "", "rope"},  {"other", "blind", "rope"}, {"muon", "", "rope"},
              {"longer", "", "rope"}, {"muon2", "muon", "rope"},  {"gru", "", "rope"},
              {"lstm", "", "rope"},   {"yarn", "", "rope"}};
    struct planned p;

    plan_good(&p,
              "variant = rope: --variant rope\nvariant = again: --variant rope\n"
              "variant = factor: --variant yarn --rope-scaling none\n"
              "variant = blind: --variant rope --layer-rope-base 0\n"
              "variant = other: --variant rope --layer-rope-base 0\n"
              "variant = muon: --variant rope --optimizer muon\n"
              "variant = longer: --variant rope --lr-warmup 3\n"
              "variant = muon2: --variant gated --out-gate none --optimizer muon\n"
              "variant = gru: --variant mingru\nvariant = lstm: --variant minlstm\n"
              "variant = yarn: --variant yarn\nrates-of = other: lstm\nskeleton = llama\n"
              "corpus = c: copy:lag=8\nrates = 1e-3 2e-3\nsteps = 4\nequal-parameters = yes\n"
              "train = --seq 16 --mem 8 --batch 4 --layers 1 --d-model 16 --heads 2\n",
              "");
    for (size_t i = 0; i < ARRAY_LEN(is); i++)
        for (int k = 0; k < p.plan.n_models; k++) {
            const struct study_model *const m = &p.plan.models[k];
            if (strcmp(m->variant->name, is[i].name) != 0)
                continue;
            const char *const why = kept_text(*is[i].same ? "same as %s" : "%s", is[i].same);
            cr_expect_str_eq(m->why, why, "%s: %s", is[i].name, m->why);
            cr_expect_str_eq(m->control ? m->control->name : "", is[i].control, "%s", is[i].name);
            if (strcmp(is[i].name, "lstm") == 0)
                cr_expect_str_eq(m->rates->variant->name, "blind");
        }
    cr_expect_eq(count_jobs(&p.plan, "again", STUDY_TUNE), 0);
    /* Each is xl's control without norms before, under a name of its own. */
    plan_good(&p,
              "variant = a: --variant vanilla\nvariant = b: --variant xl\n"
              "variant = c: --variant xl --norm pre\nbaseline = control\nvariants = adanorm\n"
              "corpus = c: copy:lag=8\nrates = 1e-3\nsteps = 4\n"
              "train = --seq 16 --mem 8 --batch 4 --layers 1 --d-model 16 --heads 2\n",
              "");
    for (int k = 0; k < p.plan.n_models; k++) {
        const struct study_model *const m = &p.plan.models[k];
        cr_expect(!m->control || !m->same || m->control != m->variant);
        for (int i = 0; i < p.plan.n_models; i++) /* no control is skipped */
            cr_expect(m->control != p.plan.models[i].variant || !p.plan.models[i].same, "%s",
                      m->variant->name);
    }
}

/* The shards have each job once, with the same names, and groups stay whole. */
Test(study_file, shards_are_whole_groups)
{
    struct planned all;
    int n = 0;

    plan_good(&all, WHOLE, "");
    for (int i = 1; i <= 3; i++) {
        struct planned p;
        plan_good(&p, WHOLE, kept_text("--shard %d/3", i));
        n += p.plan.n;
        for (int k = 0; k < p.plan.n; k++) {
            int found = 0;
            for (int a = 0; a < all.plan.n; a++)
                found += strcmp(all.plan.jobs[a].id, p.plan.jobs[k].id) == 0;
            NUMBERS({found, 1}, {p.plan.jobs[k].group % 3, i - 1});
        }
    }
    cr_expect_eq(n, all.plan.n);
    struct planned many;
    cr_expect_eq(plan_text(&many, WHOLE, "--shard 1/7"), E_USAGE, "six groups");
}

#define EQUAL REST "size = s: --layers 2 --d-model 64 --heads 4\nequal-parameters = yes\n"

/* One rate: nothing is tuned. All models within 1 % of each other's parameters. */
Test(study_file, equal_parameters)
{
    struct planned p;
    int64_t least = INT64_MAX, most = 0;

    plan_good(&p, EQUAL "variants = base\n", "");
    for (int i = 0; i < p.plan.n_models; i++) {
        const int64_t n = p.plan.models[i].parameters;
        cr_expect_str_eq(p.plan.models[i].why, "");
        least = n < least ? n : least;
        most = n > most ? n : most;
    }
    cr_expect_leq((double)most, 1.01 * 1.01 * (double)least);
    for (int i = 0; i < p.plan.n; i++)
        cr_expect(p.plan.jobs[i].role == STUDY_FINAL && p.plan.jobs[i].lr == 1e-3);
}

/* A memory of many times the others' parameters is trained as it is, says so, and changes no other. */
Test(study_file, equal_parameters_but_for_memories)
{
    struct planned with, without;

    plan_good(&without, EQUAL "variants = vanilla, xl, rope\n", "");
    plan_good(&with, EQUAL "variants = vanilla, xl, rope, pkm\n", "");
    for (int i = 0; i < 3; i++) {
        cr_expect_str_eq(with.plan.models[i].line, without.plan.models[i].line);
        cr_expect_str_eq(with.plan.models[i].remark, "");
    }
    const struct study_model *const pkm = &with.plan.models[3];
    cr_expect_gt(pkm->parameters, 3 * with.plan.models[0].parameters);
    cr_expect(strstr(pkm->remark, "no width") && !*pkm->why, "%s%s", pkm->remark, pkm->why);
}

/* What a control says of norms and feed-forward networks gives way to a skeleton: less is trained. */
Test(study_file, controls_with_a_skeleton)
{
    static const char *const pairs[][2] = {
        {"xl", "vanilla"}, {"alibi", NULL},     {"vanilla", NULL},
        {"adanorm", "xl"}, {"switch", "alibi"}, {"own", "alibi --norm pre --skeleton own"}};
    struct planned p;

    plan_good(&p,
              "variants = adanorm switch xl\nvariant = own: --variant switch --skeleton own\n"
              "baseline = control\nskeleton = post\nsize = s: --layers 2 --d-model 64 --heads "
              "4\n" REST,
              "");
    for (int i = 0; i < p.plan.n_models; i++) {
        const struct study_model *const m = &p.plan.models[i];
        size_t at = 0;
        while (at < ARRAY_LEN(pairs) && strcmp(pairs[at][0], m->variant->name) != 0)
            at++;
        cr_expect(at < ARRAY_LEN(pairs) ||
                      strcmp(m->variant->name, "alibi --norm pre --skeleton own") == 0,
                  "%s", m->variant->name);
        if (at < ARRAY_LEN(pairs) && pairs[at][1])
            cr_expect(m->control && strcmp(m->control->name, pairs[at][1]) == 0, "%s: %s",
                      m->variant->name, m->control ? m->control->name : "none");
        const bool own = strcmp(m->variant->name, "own") == 0 || strchr(m->variant->name, ' ');
        cr_expect_eq(strstr(m->line, "--skeleton post") != NULL, !own, "%s", m->line);
        cr_expect_eq(m->config.wiring, own ? WIRING_PRE : WIRING_POST, "%s", m->line);
    }
}

/* A control takes the settings that it has a part for; the others are of the idea. */
Test(study_file, settings_of_a_control)
{
    struct study s;

    MUST(read_text(&s,
                   "variant = a: --variant delight --set dextra=code,ff_bias=0\n"
                   "variant = b: --variant delight --norm pre --set=dextra=code\n"
                   "baseline = control\n" REST,
                   &failure));
    cr_assert_eq(s.variants.n, 4);
    cr_expect_str_eq(s.variants.v[2].words, "--variant alibi --set ff_bias=0");
    cr_expect_str_eq(s.variants.v[3].words, "--variant alibi --norm pre");
}

/* Every registered variant is a model, and no two are one, with their options; it has a plan, an estimate,
 * and a reason where sizes cannot be equal. */
Test(study_file, plans_every_variant)
{
    struct planned p;
    const struct speeds speeds = {
        .threads = 1, .reference = {.products = 1e9, .attention = 1e8, .backward = 1e8}};

    plan_good(&p,
              "variants = all\n" REST
              "train = --seq 16 --mem 8 --batch 4 --layers 4 --d-model 16 --heads 4\n",
              "");
    for (int k = 0; k < p.plan.n_models; k++)
        cr_expect(!p.plan.models[k].same, "%s is %s", p.plan.models[k].variant->name,
                  p.plan.models[k].why);

    plan_good(&p,
              "variants = all\nsize = s: --layers 2 --d-model 32 --heads 4\n" REST
              "equal-parameters = yes\ntrain = --seq 16 --mem 16\n",
              "--backend ref");
    int n = 0, unequal = 0;
    while (variants[n])
        n++;
    cr_assert_eq(p.plan.n_models, n);
    for (int i = 0; i < p.plan.n; i++) {
        const struct study_model *const m = p.plan.jobs[i].model;
        cr_expect((m->parameters > 0) == !*m->why, "%s", m->variant->name);
        unequal += *m->why || *m->remark;
        cr_expect_geq(study_job_s(p.plan.study, &p.plan.jobs[i], &speeds), 0);
    }
    cr_expect_lt(unequal, p.plan.n / 4);
}

/* A training starts a process, each score another; a text twice as long takes twice the scoring. */
Test(study_file, estimates_count_scores)
{
    struct planned p;
    struct speeds speeds = {.threads = 1,
                            .reference = {.products = 1e9, .attention = 1e8, .backward = 1e8}};
    double s[2][2]; /* bytes 1000, 2000; tune, final */

    for (int twice = 0; twice <= 1; twice++) {
        const char *const text =
            kept_text("variant = v: --variant xl\nsize = s: --layers 1 --d-model 32 --heads 4\n"
                      "corpus = c: copy:lag=8\nrates = 1e-3, 2e-3\nsteps = 10\n"
                      "train = --seq 16 --mem 16\neval = --mem 0,16,32 --bytes %d\n",
                      twice ? 2000 : 1000);
        plan_good(&p, text, "--backend ref");
        for (int i = 0; i < p.plan.n; i++) {
            const struct study_job *const j = &p.plan.jobs[i];
            const double quick = study_job_s(p.plan.study, j, &speeds);
            speeds.start_s = 5;
            const double slow = study_job_s(p.plan.study, j, &speeds);
            speeds.start_s = 0;
            cr_expect_float_eq(slow - quick, j->role == STUDY_FINAL ? 20 : 5, 1e-9);
            s[twice][j->role] = quick;
        }
    }
    NUMBERS({s[0][STUDY_TUNE], s[1][STUDY_TUNE], 1e-12},
            {s[1][STUDY_FINAL] - s[0][STUDY_FINAL], s[0][STUDY_FINAL] - s[0][STUDY_TUNE], 1e-9});
}

Test(study_file, refuses_options_that_are_not_the_files)
{
    EACH_TEXT (bad, "train = --lr 3\n", "train = --ckpt x\n", "train = --unknown 3\n",
               "train = --seq 16,32\n", "eval = --ckpt x\n", "eval = --steps 3\n",
               "size = x: --d-model 7\n", "variant = x: --variant xlx\n",
               "variant = xl: --d-inner a\n") {
        struct planned p;
        const char *const text =
            kept_text("%s" REST "%s", strstr(bad, "variant") ? "" : "variants = xl\n", bad);
        cr_expect_neq(plan_text(&p, text, ""), OK, "%s", bad);
        HAS(failure.msg, "  -> ");
    }
}

/* ---- tasks ---------------------------------------------------------------------------------- */

#define OF_TASKS                                                                                   \
    "variants = vanilla, xl\ntask = maze: tmaze:len=6\ntask = ball: catch:delay=3\nsteps = 10\n"   \
    "rates = 1e-3 2e-3\nseeds = 2\nbaseline-seeds = 2\n"

/* A task stands in place of the text; the score has its episodes, and no lengths. */
Test(study_file, jobs_of_tasks)
{
    struct planned p;
    const struct speeds speeds = {.reference = reference_rates_least, .threads = 1};

    plan_good(&p, OF_TASKS "train = --seq 8 --mem 8 --entropy-coef 0.02\neval = --episodes 50\n",
              "");
    cr_expect(study_of_tasks(&p.study));
    cr_assert_eq(p.plan.n, 2 * 2 * (2 + 2));
    for (int i = 0; i < p.plan.n; i++) {
        const struct study_job *const j = &p.plan.jobs[i];
        char *const train = kept(study_train_line(j, 1e-3, j->steps));
        char *const eval = kept(study_eval_line(&p.study, j, "w"));
        const char *const task = i < 8 ? "--task tmaze:len=6" : "--task catch:delay=3";
        cr_expect(strstr(train, task) && !strstr(train, "--corpus"), "%s", train);
        cr_expect(strstr(eval, "--episodes 50") && strstr(eval, "--ckpt w"), "%s", eval);
        cr_expect(!strstr(eval, "--seq") && !strstr(eval, "--corpus"), "%s", eval);
        cr_expect_eq(j->model->config.V, i < 8 ? 4 : 11, "symbols of %s", task);
        cr_expect_gt(study_job_s(&p.study, j, &speeds),
                     i > 0 && j->role > j[-1].role ? study_job_s(&p.study, j - 1, &speeds) : 0,
                     "episodes are scored, too");
    }
}

Test(study_file, what_a_study_of_tasks_refuses)
{
    EACH_TEXT (bad, "eval = --seq 8\n", "eval = --corpus x\n", "eval = --threads 1\n",
               "train = --task catch:\n", "train = --dropout 0.1\n", "train = --corpus x\n",
               "task = bad: tmaze:len=-1\n") {
        struct planned p;
        REFUSED(plan_text(&p, kept_text(OF_TASKS "%s", bad), ""), E_USAGE, "  -> ");
    }
}
