/* SPDX-License-Identifier: MIT
 *
 * Names of cases on the screen of a sweep. */
#include "console_labels.h"

/* Only choices with words are part of a name; the type of elements is always in the heading. */
static bool is_named(int i) { return choice_word(&model_choices[i], 0) != NULL; }

static bool all_have(const struct bench_case *cases, int n, int i)
{
    char first[CHOICE_TEXT], text[CHOICE_TEXT];

    for (int k = 0; k < n; k++) {
        const struct config usual = case_usual_config(&cases[k]);
        if (!case_differs(k ? text : first, i, &cases[k], &usual) ||
            (k && strcmp(text, first) != 0))
            return false;
    }
    return n > 0;
}

static void find_types(struct case_labels *l, const struct bench_case *cases, int n)
{
    bool seen[ELEM_COUNT] = {false};
    int types = 0;

    for (int k = 0; k < n; k++) {
        const enum elem type = cases[k].config.dtype;
        types += !seen[type];
        if (!seen[type])
            text_join(l->dtypes, sizeof(l->dtypes), ",", elem_name[type]);
        seen[type] = true;
    }
    if (types < 2)
        *l->dtypes = '\0';
}

static bool remembers(const struct bench_case *c)
{
    return c->mem != 0 && c->mem_kind != MEM_NONE && !c->unsupported;
}

/* How most cases of a workload hold their context; of as many, the first of the enum. */
static void find_contexts(struct case_labels *l, const struct bench_case *cases, int n)
{
    int of[WORK_COUNT][PHASE_COUNT][MEM_KIND_COUNT] = {0};

    for (int i = 0; i < n; i++) {
        const struct bench_case *const c = &cases[i];
        enum mem_kind *const most = &l->context[c->workload][c->phase];
        int *const held = of[c->workload][c->phase];
        held[c->mem_kind] += remembers(c);
        for (enum mem_kind k = MEM_NONE + 1; k < MEM_KIND_COUNT; k++)
            if (held[k] > held[*most] || (held[k] == held[*most] && held[k] > 0 && k < *most))
                *most = k;
    }
}

/* A case with heads that share the model's width, if there is one. */
static const struct config *usual_widths(const struct bench_case *cases, int n)
{
    for (int i = 0; i < n; i++)
        if (cases[i].config.dh * cases[i].config.H == cases[i].config.D)
            return &cases[i].config;
    return &cases[0].config;
}

void case_labels_find(struct case_labels *l, const struct bench_case *cases, int n, int room)
{
    char variant[64];

    *l = (struct case_labels){.excess = 0};
    if (n > 0) {
        l->d_head = usual_widths(cases, n)->dh;
        l->d_inner = usual_widths(cases, n)->F;
    }
    find_types(l, cases, n);
    find_contexts(l, cases, n);
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        l->shared[i] = is_named(i) && all_have(cases, n, i);
    for (int k = 0; k < n; k++) {
        case_variant(l, &cases[k], variant, sizeof(variant));
        const int width = terminal_columns(variant) + 1 + (int)strlen(cases[k].backend->name);
        l->excess = max_int(l->excess, width - room);
    }
}

bool same_heading(const struct case_labels *l, const struct bench_case *a,
                  const struct bench_case *b)
{
    return a->workload == b->workload && a->phase == b->phase && a->batch == b->batch &&
           a->layers == b->layers && a->config.D == b->config.D && a->config.H == b->config.H &&
           (*l->dtypes || a->config.dtype == b->config.dtype) && a->threads == b->threads;
}

void case_heading(const struct case_labels *l, const struct bench_case *c, char *buf, size_t size)
{
    const struct config usual = case_usual_config(c);
    const enum mem_kind context = l->context[c->workload][c->phase];
    char text[CHOICE_TEXT];

    snprintf(buf, size, "%s%s%s  batch=%d  layers=%d  d=%d  h=%d  d_head=%d  %s  threads=%d",
             workload_name[c->workload], case_names_phase(c) ? "  " : "",
             case_names_phase(c) ? phase_name[c->phase] : "", c->batch, c->layers, c->config.D,
             c->config.H, l->d_head, *l->dtypes ? l->dtypes : elem_name[c->config.dtype],
             c->threads);
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        if (l->shared[i] && i != CHOICE_dtype && case_differs(text, i, c, &usual))
            text_append(buf, size, "  %s=%s", model_choices[i].name, text);
    if (context)
        text_append(buf, size, "  context=%s", mem_kind_name[context]);
}

void case_variant(const struct case_labels *l, const struct bench_case *c, char *buf, size_t size)
{
    const struct config usual = case_usual_config(c);
    char text[CHOICE_TEXT];

    snprintf(buf, size, "%s", c->variant->name);
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        if (is_named(i) && !l->shared[i] && case_differs(text, i, c, &usual))
            text_append(buf, size, "/%s", text);
    if (c->config.dh != l->d_head)
        text_append(buf, size, "/d_head=%d", c->config.dh);
    if (c->config.F != l->d_inner)
        text_append(buf, size, "/d_inner=%d", c->config.F);
    if (remembers(c) && c->mem_kind != l->context[c->workload][c->phase])
        text_append(buf, size, ":%s", mem_kind_name[c->mem_kind]);
}
