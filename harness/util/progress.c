/* SPDX-License-Identifier: MIT
 *
 * Progress. */
#include "progress.h"

#include <time.h>

static double now_s(void)
{
    struct timespec t;

    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

struct duration_text duration_text(double seconds)
{
    const int64_t s = seconds > 0 ? (int64_t)(seconds + 0.5) : 0, minute = 60, hour = 3600;
    struct duration_text t;

    if (seconds > 0 && seconds < 2)
        snprintf(t.s, sizeof(t.s), "%.1f s", seconds);
    else if (s < minute)
        snprintf(t.s, sizeof(t.s), "%d s", (int)s);
    else if (s < hour)
        snprintf(t.s, sizeof(t.s), "%d min %d s", (int)(s / minute), (int)(s % minute));
    else
        snprintf(t.s, sizeof(t.s), "%lld h %d min", (long long)(s / hour),
                 (int)(s % hour / minute));
    return t;
}

/* "  12 s (40 s expected)", "  43 %, 2 min 5 s left" */
static void how_far(const struct progress_line *p, double spent_s, char *buf, size_t size)
{
    if (p->share > p->before)
        snprintf(buf, size, "  %.0f %%, %s left", 100 * p->share,
                 duration_text(spent_s * (1 - p->share) / (p->share - p->before)).s);
    else if (p->expected_s >= 1)
        snprintf(buf, size, "  %.0f s (%s expected)", spent_s, duration_text(p->expected_s).s);
    else
        snprintf(buf, size, "  %.0f s", spent_s);
}

static void show(struct progress_line *p, double now)
{
    char far[80], text[sizeof(p->text) + sizeof(far)];

    how_far(p, now - p->begun_s, far, sizeof(far));
    snprintf(text, sizeof(text), "%s%s", p->text, far);
    if (p->how == PROGRESS_BAR)
        terminal_line_put(&p->line, text);
    else
        terminal_line_print(text);
    p->told_s = now;
}

void progress_tick(struct progress_line *p)
{
    const bool bar = p->how == PROGRESS_BAR;
    const double silent_s = bar ? 0.3 : 2, again_s = bar ? 0.2 : 30, now = now_s();
    const bool told = p->told_s > p->begun_s;

    if (p->how == PROGRESS_NONE || p->begun_s <= 0)
        return;
    if (now - (told ? p->told_s : p->begun_s) >= (told ? again_s : silent_s))
        show(p, now);
}

void progress_begin(struct progress_line *p, double expected_s, const char *fmt, ...)
{
    progress_end(p);
    VPRINT(p->text, sizeof(p->text), fmt);
    p->expected_s = expected_s;
    p->share = p->before = 0;
    p->begun_s = p->told_s = now_s();
}

void progress_at(struct progress_line *p, double share, const char *fmt, ...)
{
    if (fmt)
        VPRINT(p->text, sizeof(p->text), fmt);
    p->share = share;
    progress_tick(p);
}

void progress_end(struct progress_line *p)
{
    terminal_line_clear(&p->line);
    p->begun_s = 0;
}
