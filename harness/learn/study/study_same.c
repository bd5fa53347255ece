/* SPDX-License-Identifier: MIT
 *
 * Variants of a study that are one model, trained alike, under several names. */
#include "study_jobs.h"

#include "variants/model/checkpoint/checkpoint.h"

/* Does this line of options_canonical say what the model is? Its config says it better. */
static bool is_of_model(const char *line)
{
    static const char *const more[] = {"variant", "kv-heads", "d-head",
                                       "d-inner", "set",      "skeleton"};
    const size_t n = strcspn(line, "=");
    bool is = false;

    for (size_t i = 0; i < ARRAY_LEN(more); i++)
        is = is || (strncmp(more[i], line, n) == 0 && !more[i][n]);
    for (int i = 0; i < MODEL_CHOICE_COUNT; i++)
        is = is || (strncmp(model_choices[i].option, line, n) == 0 && !model_choices[i].option[n]);
    return is;
}

/* The next line of options_canonical that is not of the model. */
static const char *next(const char *text)
{
    while (*text && is_of_model(text))
        text = strchr(text, '\n') + 1;
    return text;
}

static bool same_training(const struct study_model *a, const struct study_model *b)
{
    char *const of_a = options_canonical(&a->o, CONTINUED_TRAINING);
    char *const of_b = options_canonical(&b->o, CONTINUED_TRAINING);
    const char *p = next(of_a), *q = next(of_b);

    while (*p && *q && strcspn(p, "\n") == strcspn(q, "\n") &&
           strncmp(p, q, strcspn(p, "\n")) == 0) {
        p = next(strchr(p, '\n') + 1);
        q = next(strchr(q, '\n') + 1);
    }
    const bool same = !*p && !*q;
    free(of_a);
    free(of_b);
    return same;
}

void study_find_same(struct study_model *m, int n)
{
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < i && !m[i].same; k++)
            if (!*m[i].why && !*m[k].why && checkpoint_same_model(&m[i].config, &m[k].config) &&
                same_training(&m[i], &m[k]))
                m[i].same = &m[k];
        if (m[i].same)
            snprintf(m[i].why, sizeof(m[i].why), "same as %s", m[i].same->variant->name);
    }
    for (int i = 0; i < n; i++) {
        for (int k = 0; k < n; k++)
            if (m[k].same && m[i].control == m[k].variant)
                m[i].control = m[k].same->variant;
        if (m[i].rates->same)
            m[i].rates = m[i].rates->same;
    }
}
