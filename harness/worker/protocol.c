/* SPDX-License-Identifier: MIT
 *
 * Lines over a socket. */
#include "protocol.h"

#include "harness/machine/clock.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

/* poll for at most so long, -1 = for ever. A signal ends it, also one that arrived since *stop was
 * last read. */
static int poll_once(struct protocol *t, int ms)
{
    const struct timespec time = {.tv_sec = ms / 1000, .tv_nsec = ms % 1000 * 1000000L};
    struct pollfd p = {.fd = t->fd, .events = POLLIN};
    sigset_t signals, before;
    int got = -1;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, &before);
    t->interrupted = t->stop && *t->stop;
    if (!t->interrupted)
        got = ppoll(&p, 1, ms < 0 ? NULL : &time, &before);
    if (got < 0 && !t->interrupted && errno != EINTR)
        got = 1; /* read will say why */
    sigprocmask(SIG_SETMASK, &before, NULL);
    t->interrupted = t->stop && *t->stop;
    return got;
}

/* Wait until there is something to read. */
static enum status wait_for(struct protocol *t, struct err *e)
{
    enum { TICK_MS = 100 };
    const int64_t since = clock_wall_ns();

    for (;;) {
        const double left_s = t->patience_s - (double)(clock_wall_ns() - since) * 1e-9;
        const int patience_ms = t->patience_s > 0 ? max_int(0, (int)(left_s * 1000)) : -1;
        const bool by_tick = t->tick && (patience_ms < 0 || patience_ms > TICK_MS);
        const int got = poll_once(t, by_tick ? TICK_MS : patience_ms);
        if (t->interrupted)
            return fail(e, E_INTERRUPTED, "interrupted");
        if (got > 0)
            return OK;
        if (got == 0 && !by_tick)
            return fail(e, E_TIMEOUT, "is silent for %.0f s", t->patience_s);
        if (t->tick)
            t->tick(t->tick_arg);
    }
}

static enum status ended(struct protocol *t, struct err *e)
{
    t->ended = true;
    return fail(e, E_CHILD, "ended");
}

enum status protocol_read(struct protocol *t, char *line, struct err *e)
{
    for (;;) {
        char *end = memchr(t->buf, '\n', t->n);
        if (end) {
            const size_t len = (size_t)(end - t->buf);
            memcpy(line, t->buf, len);
            line[len] = '\0';
            t->n -= len + 1;
            memmove(t->buf, end + 1, t->n);
            return OK;
        }
        if (t->n == sizeof(t->buf))
            return fail(e, E_CHILD, "sent a line of over %d characters", PROTOCOL_LINE);
        TRY(wait_for(t, e));
        const ssize_t n = read(t->fd, t->buf + t->n, sizeof(t->buf) - t->n);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return ended(t, e);
        t->n += (size_t)n;
    }
}

enum status protocol_write(struct protocol *t, struct err *e, const char *fmt, ...)
{
    char line[PROTOCOL_LINE];
    va_list ap;

    va_start(ap, fmt);
    const int len = vsnprintf(line, sizeof(line) - 1, fmt, ap);
    va_end(ap);
    if (len < 0 || len >= (int)sizeof(line) - 1)
        return fail(e, E_CHILD, "cannot send a line of over %d characters  -> use shorter paths",
                    PROTOCOL_LINE - 2);
    line[len] = '\n';
    /* MSG_NOSIGNAL: writing to a dead reader returns an error instead of raising SIGPIPE. */
    for (size_t done = 0; done < (size_t)len + 1;) {
        const ssize_t n = send(t->fd, line + done, (size_t)len + 1 - done, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return ended(t, e);
        done += (size_t)n;
    }
    return OK;
}

enum status protocol_read_answer(struct protocol *t, field_fn *field, void *arg, struct err *e)
{
    char line[PROTOCOL_LINE];

    for (;;) {
        TRY(protocol_read(t, line, e));
        TRY(protocol_failure(line, e));
        if (strcmp(line, "end") == 0)
            return OK;
        char *blank = strchr(line, ' ');
        if (!blank)
            return fail(e, E_CHILD, "sent \"%.40s\" in a report", line);
        *blank = '\0';
        field(arg, line, blank + 1);
    }
}

enum status protocol_failure(const char *line, struct err *e)
{
    int st, at = 0;

    if (sscanf(line, "fail %d %n", &st, &at) < 1 || at == 0)
        return OK;
    if (st <= OK || st > E_INTERRUPTED)
        st = E_CHILD;
    return fail(e, (enum status)st, "%s", line + at);
}
