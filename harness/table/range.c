/* SPDX-License-Identifier: MIT
 *
 * Ranges of columns. Nearly all numbers are counts, sizes, times and rates, which are not below
 * zero; those of a model and of its input are at least one. */
#include "range.h"

/* Differences, returns, shares that are differences, and seeds, which are any 64 bits. */
static const char any[] =
    "seed rss_delta_bytes drift_pct ppl_delta_pct overlap_pct task_loss task_return "
    "valid_return valid_return_ci95_low valid_return_ci95_high test_return "
    "test_return_ci95_low test_return_ci95_high random_return optimum_return";

/* Nothing runs without one of each. */
static const char from_one[] =
    "seq_tokens batch_size layers d_model heads kv_heads d_head threads calls";

static const char *const roles[] = {"tune", "final", NULL};

/* Entropies are sums of rounded numbers: one of zero may be a little below. */
static const double NATS_LEAST = -1e-6;

struct column_range column_range(const struct column *c)
{
    struct column_range r = {-INFINITY, INFINITY, NULL};

    if (strcmp(c->name, "status") == 0)
        r.words = row_status_name;
    if (strcmp(c->name, "role") == 0)
        r.words = roles;
    if (c->type == COLUMN_TEXT || text_has_word(any, c->name, strlen(c->name)))
        return r;
    r.least = text_has_word(from_one, c->name, strlen(c->name))              ? 1
              : strcmp(c->unit, "nats") == 0 || strcmp(c->unit, "bits") == 0 ? NATS_LEAST
                                                                             : 0;
    if (strcmp(c->unit, "0/1") == 0)
        r.most = 1;
    return r;
}

void column_range_text(const struct column_range *r, char *wanted, size_t size)
{
    *wanted = '\0';
    if (!r->words && isinf(r->most))
        snprintf(wanted, size, "a number from %.0f on", fabs(r->least) < 1 ? 0 : r->least);
    else if (!r->words)
        snprintf(wanted, size, "a number from %.0f to %.0f", r->least, r->most);
    for (int i = 0; r->words && r->words[i]; i++)
        text_append(wanted, size, "%s%s",
                    i == 0            ? "one of "
                    : r->words[i + 1] ? ", "
                                      : " and ",
                    r->words[i]);
}
