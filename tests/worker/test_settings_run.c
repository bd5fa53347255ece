/* SPDX-License-Identifier: MIT
 *
 * No setting is accepted and ignored: each changes what some model computes, or how it is trained. */
#include "harness/worker/job.h"
#include "tests/support/command_line.h"
#include "tests/support/failure.h"
#include "tests/support/setting_tries.h"
#include "tests/support/words.h"

enum { D = 32, H = 4, L = 160, V = 11 };

/* What shows elsewhere: in the loss and its gradient, in the segments after the first, with a task's
 * vector, in the fourth layer, with another place of norms, where two numbers change together, or in rows that are not read. */
static const char elsewhere[] =
    "aux_coef span_cost ponder_tau mu_decay commit_coef pn_alpha budget budget_coef pn_backward "
    "swish_beta bptt replay slot_temp slot_write task_dim d_nope d_rope attn_gate recur camtl_m "
    "max_pos exit_power disagree_values disagree_outputs guide guide_previous guide_next "
    "guide_first guide_token guide_symbol aux_targets aux_weight aux_layers enc_layers "
    "pos_restart one_norm";

/* The scaling of frequencies that a setting is of. */
static enum rope_scaling scaling_of(const char *name)
{
    return strcmp(name, "rope_low") == 0 || strcmp(name, "rope_high") == 0 ? ROPE_LLAMA3
           : strcmp(name, "rope_scaled") == 0                              ? ROPE_LINEAR
                                                                           : ROPE_PLAIN;
}

/* The output of two layers, or of a model; false where it cannot be. */
static bool run(struct bench_case *c, const struct bench_case *like, const struct variant *v,
                const char *line, enum rope_scaling scaling, struct job *j)
{
    int dh, F;

    *c = *like;
    variant_sizes(v, D, H, &dh, &F);
    c->variant = v;
    c->config = config_default(v, D, H, dh, F, c->config.N, c->config.V);
    c->config.max_seq = 2 * L;
    c->mem = c->config.mem_len = variant_mem(v)->compressed ? L : 0;
    if (c->config.stream_sinks)
        c->config.window = L / 2; /* fewer than there are */
    if (scaling != ROPE_PLAIN) {
        c->config.rope_scaling = scaling;
        c->config.rope_factor = 4;
    }
    config_numbers_reset(&c->config);
    if (settings_parse(&c->config, line, false, NULL) != OK)
        return false;
    model_choices_settle(&c->config);
    const enum mem_kind kinds[] = {mem_usual(variant_mem(v), false), MEM_RECOMPUTE};
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        *j = (struct job){0};
        c->mem_kind = kinds[i];
        if (job_open(j, c, &failure) == OK && job_place(j, NULL, NULL, &failure) == OK) {
            job_run(j);
            return true;
        }
        job_close(j);
    }
    return false;
}

/* Settings that many variants have: each that lists one obeys it, in a layer or in a model deep
 * enough for layers of each kind. */
Test(settings_run, variants_obey_what_they_list, .timeout = 600)
{
    static const char *const lines[][2] = {{"scale", "scale=0.3"}, {"head_eps", "head_eps=0.5"}};
    struct options o[2];
    struct plan p[2];

    must_plan(&p[0], &o[0], "-V xl -b ref -w layer --seq 160 --mem 0 --d-model 32 --heads 4");
    must_plan(&p[1], &o[1],
              "-V xl -b ref -w segment --layers 4 --seq 160 --mem 0 --d-model 32 --heads 4");
    for (size_t k = 0; k < ARRAY_LEN(lines); k++)
        for (int v = 0; variants[v]; v++) {
            const struct config c = config_default(variants[v], D, H, D / H, 64, 4, V);
            struct settings all = {0};
            const struct choice *s;
            bool runs = false, changes = false;
            while ((s = setting_next(&all)) && strcmp(s->name, lines[k][0]) != 0)
                continue;
            cr_assert_not_null(s);
            for (int i = variants[v]->whole; i < 2 && setting_applies(s, &c) && !changes; i++) {
                struct bench_case of[2];
                struct job usual = {0}, other = {0};
                if (!run(&of[0], &p[i].cases[0], variants[v], "", ROPE_PLAIN, &usual))
                    continue;
                runs = true;
                if (run(&of[1], &p[i].cases[0], variants[v], lines[k][1], ROPE_PLAIN, &other)) {
                    changes = memcmp(other.out, usual.out, usual.n_out * sizeof(float)) != 0;
                    job_close(&other);
                }
                job_close(&usual);
            }
            cr_expect_eq(changes, runs, "%s lists %s", variants[v]->name, lines[k][0]);
        }
}

Test(settings_run, each_changes_something, .timeout = 600)
{
    struct options o[2];
    struct plan p[2];
    const struct choice *s;

    must_plan(&p[0], &o[0], "-V xl -b ref -w layer --seq 160 --mem 0 --d-model 32 --heads 4");
    must_plan(&p[1], &o[1],
              "-V xl -b ref -w segment --layers 2 --seq 160 --mem 0 --d-model 32 --heads 4");
    for (struct settings all = {0}; (s = setting_next(&all));) {
        bool changes = is_word_of(elsewhere, s->name);
        for (int i = 0; variants[i / 2] && !changes; i++) {
            const struct variant *const v = variants[i / 2];
            struct config c = config_default(v, D, H, D / H, 64, 2, i % 2 ? V : 0);
            struct bench_case of[2];
            char line[SETTING_LINE];
            struct job usual = {0}, other = {0};
            c.mem_len = variant_mem(v)->compressed ? L : 0;
            config_numbers_reset(&c);
            if (scaling_of(s->name) != ROPE_PLAIN && c.pos == &pos_rope)
                c.rope_scaling = scaling_of(s->name);
            NEED(settings_parse(&c, setting_needs(s->name), false, NULL) == OK);
            if ((v->whole && i % 2 == 0) || !setting_applies(s, &c) ||
                !run(&of[0], &p[i % 2].cases[0], v, setting_needs(s->name), scaling_of(s->name),
                     &usual))
                continue;
            for (int k = 0; !changes && setting_try(line, s, k); k++) {
                if (run(&of[1], &p[i % 2].cases[0], v, line, scaling_of(s->name), &other)) {
                    changes = other.n_out != usual.n_out ||
                              memcmp(other.out, usual.out, usual.n_out * sizeof(float)) != 0;
                    job_close(&other);
                }
            }
            job_close(&usual);
        }
        cr_expect(changes, "%s changes nothing", s->name);
    }
}
