/* SPDX-License-Identifier: MIT
 *
 * See fake_child.h. */
#include "fake_child.h"
#include "failure.h"
#include "harness/worker/report.h"

#include <signal.h>

struct fake {
    struct protocol t;
    char manner[32];
    int blocks;
};

static bool is(const struct fake *f, const char *manner) { return strcmp(f->manner, manner) == 0; }

/* The word after `name` in a line of options. */
static void word_after(char word[32], const char *line, const char *name)
{
    const char *at = strstr(line, name);

    word[0] = '\0';
    if (at)
        sscanf(at + strlen(name), " %31s", word);
}

static void choose_manner(struct fake *f, const char *repro)
{
    char variant[32], backend[32], key[80];
    const char *plan = getenv(FAKE_PLAN);

    word_after(variant, repro, "--variant");
    word_after(backend, repro, "--backend");
    snprintf(key, sizeof(key), "%s/%s=", variant, backend);
    word_after(f->manner, plan ? plan : "", key);
    if (!f->manner[0])
        strcpy(f->manner, "fine");
}

static void die(int number)
{
    signal(number, SIG_DFL);
    raise(number);
}

/* Is it a further launch? Its environment is padded. */
static bool again(void) { return getenv("BENCH_PADDING") != NULL; }

static struct report report_of(const struct fake *f)
{
    struct report r = {.arena_bytes = is(f, "big") ? 1e9 : 1000, .bind_ns = 5, .tokens = 1};

    strcpy(r.cpu, is(f, "cpu") ? "Z80" : FAKE_CPU);
    strcpy(r.impl, "fake");
    strcpy(r.worst_at, "[0,17,201]");
    r.max_rel_err = is(f, "wrong") ? 3.1e-2 : is(f, "nmse") ? 1e-6 : is(f, "nan") ? 0.0 / 0.0 : 0;
    r.nmse = is(f, "wrong") ? 1e-3 : is(f, "nmse") ? 2e-9 : 0;
    return r;
}

static enum status place(struct fake *f, struct err *e)
{
    const struct report r = report_of(f);

    if (is(f, "segv-place"))
        die(SIGSEGV);
    if (is(f, "nomem"))
        return protocol_write(&f->t, e, "fail %d no memory for 12 bytes", (int)E_NOMEM);
    while (is(f, "mute"))
        pause();
    return report_send(&r, &f->t, e);
}

static enum status block(struct fake *f, struct err *e)
{
    if (++f->blocks > 1 && is(f, "exit-block"))
        _exit(3);
    if (f->blocks > 1 && is(f, "segv-block"))
        die(SIGSEGV);
    if (f->blocks > 1 && is(f, "kill-block"))
        die(SIGKILL);
    if (f->blocks > 1 && is(f, "stop-block"))
        raise(SIGSTOP);
    if (is(f, "layout") && again())
        return protocol_write(&f->t, e, "sample 2e6 2e6 0");
    return protocol_write(&f->t, e, is(f, "garble") ? "smaple 1" : "sample 1e6 1e6 0");
}

static enum status obey(struct fake *f, const char *line, struct err *e)
{
    const struct report r = report_of(f);

    if (strncmp(line, "open ", 5) == 0) {
        choose_manner(f, line + 5);
        if (is(f, "segv-open") || (is(f, "segv-again") && again()))
            die(SIGSEGV);
        if (is(f, "absent"))
            return protocol_write(&f->t, e, "fail %d not on this machine", (int)E_UNSUPPORTED);
        const struct report opened = report_of(f);
        return report_send(&opened, &f->t, e);
    }
    return strcmp(line, "place") == 0 || strncmp(line, "reference ", 10) == 0 ? place(f, e)
           : strncmp(line, "block ", 6) == 0                                  ? block(f, e)
                                             : report_send(&r, &f->t, e);
}

static int serve(int fd)
{
    struct fake f = {.t = {.fd = fd, .patience_s = 20}};
    const char *plan = getenv(FAKE_PLAN);
    const bool rude = plan && strstr(plan, "=greet");
    char line[PROTOCOL_LINE] = "";
    enum status st = protocol_write(&f.t, &failure, rude ? "hello bench-cell/2" : PROTOCOL_HELLO);

    while (st == OK && strcmp(line, "close") != 0) {
        st = protocol_read(&f.t, line, &failure);
        if (st == OK)
            st = obey(&f, line, &failure);
    }
    return st == OK ? 0 : 1;
}

/* Before main, so that the test runner never sees these words. */
__attribute__((constructor)) static void answer(int argc, char **argv)
{
    if (argc == 5 && strcmp(argv[0], "bench") == 0 && strcmp(argv[1], "worker") == 0)
        _exit(serve(atoi(argv[2])));
}
