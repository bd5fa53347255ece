/* SPDX-License-Identifier: MIT
 *
 * Starting children and sending requests to them. */
#include "child.h"

#include "harness/cli/command_table.h"
#include "harness/cli/exit_code.h"
#include "harness/machine/env.h"
#include "harness/util/signals.h"
#include "process.h"
#include "variants/backends/outside.h"

#include <signal.h>
#include <sys/socket.h>

/* A slow reference at a large size takes minutes; a child silent for longer is hung. */
enum { PATIENCE_S = 900 };

enum status child_setup_open(struct child_setup *s, const struct options *opt, struct err *e)
{
    if (access("/proc/self/exe", F_OK) != 0)
        return fail(e, E_UNSUPPORTED,
                    "/proc is empty: the program, memory and threads are found there  -> mount -t "
                    "proc proc /proc");
    env_silence_libraries();
    *s = (struct child_setup){.isolate = (enum isolate)opt->isolate, .patience_s = PATIENCE_S};
    s->stop = signals_watch();
    cpu_name(s->cpu, sizeof(s->cpu));
    if (s->isolate == ISOLATE_NONE)
        TRY(topo_open(&s->topo, NULL, e));
    s->environment = env_child_environment(environ, opt->openblas_core, opt->onednn_max_isa);
    return OK;
}

void child_setup_close(struct child_setup *s)
{
    env_free(s->environment);
    s->environment = NULL;
    topo_close(s->topo);
    s->topo = NULL;
}

void child_unpin(const struct child_setup *s)
{
    if (s->topo)
        topo_unpin(s->topo);
}

/* ---- starting ------------------------------------------------------------------------------ */

/* The protocol broke: the reason is how the process died, if it did. */
static enum status broken(struct child *c, enum status st, struct err *e)
{
    struct err death;

    c->failed = true;
    if ((st != E_CHILD && st != E_TIMEOUT) || c->pid <= 0)
        return st;
    kill(c->pid, SIGCONT);
    if (!c->protocol.ended) { /* alive, but silent or sending nonsense */
        kill(c->pid, SIGKILL);
        process_reap(c->pid, &death);
    } else if (process_reap(c->pid, &death) != OK) {
        *e = death;
    }
    kill(-c->pid, SIGKILL); /* the group that a kernel's process is in */
    c->pid = 0;
    return st;
}

/* What a server is started with. */
struct served {
    const struct request *const *requests;
    const struct bench_case *bcase;
    enum role role;
    int reference;
};

/* "bench worker 3 4 ROLE", or the words of setup->launch instead of "bench". */
static enum status start_exec(struct child *c, const struct child_setup *setup,
                              const struct served *as, int socket, struct err *e)
{
    char program[] = "bench", worker[] = "worker", earlier[] = WORKER_EARLIER;
    char channel[] = "3", reference[] = "4", role[8];
    char *argv[CHILD_WORDS + 6];
    int n = 0;

    for (; setup->launch && setup->launch[n]; n++) {
        CHECK(n < CHILD_WORDS);
        argv[n] = (char *)setup->launch[n]; /* execve's signature predates const */
    }
    if (n == 0)
        argv[n++] = program;
    snprintf(role, sizeof(role), "%d", (int)as->role);
    argv[n++] = setup->launch ? earlier : worker;
    argv[n++] = channel;
    argv[n++] = reference;
    argv[n++] = role;
    argv[n] = NULL;
    return process_exec(setup->launch ? setup->launch[0] : NULL, argv, setup->environment,
                        (int[]){socket, as->reference}, 2, &c->pid, e);
}

struct copy {
    const struct served *as;
    int parent_end, own_end;
};

static int serve_in_copy(void *arg)
{
    const struct copy *const c = arg;
    struct server *const s = need_room(1, sizeof(*s));

    close(c->parent_end);
    s->protocol.fd = c->own_end;
    s->requests = c->as->requests;
    s->bcase = c->as->bcase;
    s->role = c->as->role;
    s->reference = c->as->reference;
    const int code = serve(s);
    free(s);
    return code;
}

static enum status start_process(struct child *c, const struct child_setup *setup,
                                 const struct served *as, struct err *e)
{
    int ends[2];
    enum status st;

    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return fail(e, E_CHILD, "no socket for a child process: %s", strerror(errno));
    if (setup->isolate == ISOLATE_FORK) {
        struct copy copy = {as, ends[0], ends[1]};
        st = process_fork(serve_in_copy, &copy, &c->pid, e);
    } else {
        st = start_exec(c, setup, as, ends[1], e);
    }
    close(ends[1]);
    c->protocol = (struct protocol){.fd = ends[0],
                                    .patience_s = setup->patience_s,
                                    .stop = setup->stop,
                                    .tick = setup->tick,
                                    .tick_arg = setup->tick_arg};
    if (st != OK)
        c->pid = 0;
    return st;
}

/* Start the child, read the greeting, send the first request. */
static enum status greet(struct child *c, const struct child_setup *setup, const struct served *as,
                         const char *request, const char *words, struct err *e)
{
    char hello[PROTOCOL_LINE];

    TRY(start_process(c, setup, as, e));
    TRY(protocol_read(&c->protocol, hello, e));
    if (strcmp(hello, PROTOCOL_HELLO) != 0)
        return fail(e, E_CHILD, "child process said \"%.40s\" for a greeting", hello);
    return protocol_write(&c->protocol, e, "%s %s", request, words);
}

static enum status start(struct child *c, const struct child_setup *setup, const struct served *as,
                         const char *request, const char *words, struct err *e)
{
    const enum status st = greet(c, setup, as, request, words, e);

    return st == OK ? OK : broken(c, st, e);
}

/* ---- one request ----------------------------------------------------------------------------- */

enum status child_begin(struct child *c, const struct child_setup *setup,
                        const struct request *request, const char *words, struct err *e)
{
    const struct request *const requests[] = {request, NULL};
    const struct served as = {.requests = requests, .role = ROLE_NONE, .reference = -1};

    *c = (struct child){.protocol = {.fd = -1}};
    return start(c, setup, &as, request->name, words, e);
}

enum status child_answer(struct child *c, field_fn *field, void *arg, struct err *e)
{
    const enum status st = protocol_read_answer(&c->protocol, field, arg, e);

    return st == OK ? OK : broken(c, st, e);
}

enum status child_ask(const struct child_setup *setup, const struct request *request,
                      const char *words, field_fn *field, void *arg, struct err *e)
{
    struct child child;
    enum status st = child_begin(&child, setup, request, words, e);

    if (st == OK)
        st = child_answer(&child, field, arg, e);
    child_close(&child);
    return st;
}

static enum status answer_to_the_end(struct child *c, field_fn *field, void *arg, struct err *e)
{
    enum status st = protocol_read_answer(&c->protocol, field, arg, e);

    if (st == E_INTERRUPTED && c->protocol.interrupted) {
        if (signals_exit_code() == EXIT_SIGTERM)
            kill(c->pid, SIGTERM);
        c->protocol.stop = NULL;
        st = protocol_read_answer(&c->protocol, field, arg, e);
    }
    return st == OK ? OK : broken(c, st, e);
}

enum status child_ask_to_the_end(const struct child_setup *setup, const struct request *request,
                                 const char *words, field_fn *field, void *arg, struct err *e)
{
    struct child_setup patient = *setup;
    struct child child;

    patient.patience_s = 0;
    enum status st = child_begin(&child, &patient, request, words, e);
    if (st == OK)
        st = answer_to_the_end(&child, field, arg, e);
    child_close(&child);
    return st;
}

/* ---- measuring ----------------------------------------------------------------------------- */

static enum status read_report(struct child *c, struct err *e)
{
    return child_answer(c, report_field, &c->report, e);
}

enum status child_open(struct child *c, const struct bench_case *bcase,
                       const struct child_setup *setup, enum role role, int reference,
                       struct err *e)
{
    const struct served as = {
        .requests = measuring_requests, .bcase = bcase, .role = role, .reference = reference};

    struct child_setup mine = *setup;

    if (backend_is_outside(bcase->backend->name) && setup->patience_s > 0)
        mine.patience_s = outside_patience_s(bcase->backend->name);
    *c = (struct child){.bcase = bcase, .protocol = {.fd = -1}};
    if (setup->isolate != ISOLATE_NONE) {
        TRY(start(c, &mine, &as, request_open.name, bcase->repro, e));
        return read_report(c, e);
    }
    c->worker = malloc(sizeof(*c->worker));
    if (!c->worker)
        return fail(e, E_NOMEM, "no memory for a case");
    const enum status st = worker_open(c->worker, bcase, role, reference, setup->topo, e);
    c->report = c->worker->report;
    return st;
}

enum status child_place(struct child *c, struct err *e)
{
    if (c->worker) {
        const enum status st = worker_place(c->worker, e);
        c->report = c->worker->report;
        return st;
    }
    const enum status st = protocol_write(&c->protocol, e, "%s", request_place.name);
    return st == OK ? read_report(c, e) : broken(c, st, e);
}

enum status child_reference(struct child *c, double limit_s, struct err *e)
{
    if (c->worker) {
        const enum status st = worker_reference(c->worker, limit_s, e);
        c->report = c->worker->report;
        return st;
    }
    const enum status st =
        protocol_write(&c->protocol, e, "%s %.17g", request_reference.name, limit_s);
    return st == OK ? read_report(c, e) : broken(c, st, e);
}

static enum status ask_block(struct child *c, bool prime, struct sample *out, struct err *e)
{
    char line[PROTOCOL_LINE];

    TRY(protocol_write(&c->protocol, e, "%s %u %d", request_block.name, out->calls, prime));
    TRY(protocol_read(&c->protocol, line, e));
    TRY(protocol_failure(line, e));
    /* Those behind the third may be unknown to a child of another version. */
    if (sscanf(line, "sample %lf %lf %u %lf %lf %lf %lf %lf", &out->wall_ns, &out->cpu_ns,
               &out->involuntary_switches, &out->spin_ns, &out->energy_j, &out->first_ns,
               &out->token_ns, &out->token_p99_ns) < 3)
        return fail(e, E_CHILD, "child process answered \"%.40s\"", line);
    return OK;
}

enum status child_block(void *ctx, uint32_t calls, bool prime, struct sample *out, struct err *e)
{
    struct child *c = ctx;

    if (c->worker)
        return worker_block(c->worker, calls, prime, out, e);
    *out = (struct sample){.calls = calls};
    c->protocol.tick = NULL; /* it would take time from the block */
    const enum status st = ask_block(c, prime, out, e);
    return st == OK ? OK : broken(c, st, e);
}

/* ---- the end ------------------------------------------------------------------------------- */

void child_close(struct child *c)
{
    struct err ignored;

    if (c->worker) {
        worker_close(c->worker);
        c->report = c->worker->report;
        free(c->worker);
        c->worker = NULL;
    }
    if (c->pid > 0) {
        c->protocol.stop = NULL; /* an idle child answers at once, others are killed */
        if (!c->failed && protocol_write(&c->protocol, &ignored, "close") == OK)
            protocol_read_answer(&c->protocol, report_field, &c->report, &ignored);
        close(c->protocol.fd);
        c->protocol.fd = -1;
        if (c->failed || (c->bcase && backend_is_outside(c->bcase->backend->name)))
            kill(c->pid, SIGKILL); /* a kernel from a file may not end by itself */
        process_reap(c->pid, &ignored);
        kill(-c->pid, SIGKILL); /* as in broken() */
        c->pid = 0;
    }
    if (c->protocol.fd >= 0) {
        close(c->protocol.fd);
        c->protocol.fd = -1;
    }
}
