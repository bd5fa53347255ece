/* SPDX-License-Identifier: MIT
 *
 * A sweep with --ckpt DIR measures the model in that folder: its sizes and choices replace the
 * defaults. Only its config and the shapes of its tensors are read. */
#include "harness/cli/option_table.h"
#include "plan.h"
#include "variants/model/import/published.h"

static enum status set(struct options *o, const char *option, const char *text, struct err *e)
{
    return options_default(o, option, options_keep(o, text, strlen(text)), e);
}

static enum status set_like(struct options *o, const struct bench_case *c, struct err *e)
{
    static const int sizes[] = {CASE_variant, CASE_layers,  CASE_d_model, CASE_heads,
                                CASE_d_head,  CASE_d_inner, CASE_vocab,   CASE_kv_heads};
    const struct config usual = case_usual_config(c);
    char text[CHOICE_TEXT];

    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        case_print(text, sizes[i], c);
        if (sizes[i] != CASE_kv_heads || c->config.kv_heads != usual.kv_heads)
            TRY(set(o, chosen_at(sizes[i]).option, text, e));
    }
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        if (case_differs(text, i, c, &usual))
            TRY(set(o, chosen_at(CASE_BEFORE_MODEL + i).option, text, e));
    settings_print(text, &c->config, true, false);
    return *text ? set(o, chosen_at(SETTINGS_CHOICE).option, text, e) : OK;
}

enum status plan_published(struct options *o, struct err *e)
{
    struct published p;

    if (!o->ckpt || strcmp(o->ckpt, "none") == 0 || !published_is(o->ckpt))
        return OK;
    TRY(published_open(&p, o->ckpt, e));
    const struct bench_case like = {.variant = p.config.variant,
                                    .workload = WORK_SEGMENT,
                                    .layers = p.config.N,
                                    .config = p.config,
                                    .opt = o};
    const enum status st = set_like(o, &like, e);
    o->published = p.config.variant;
    o->longest = p.endless ? 0 : p.context;
    published_close(&p);
    return st;
}
