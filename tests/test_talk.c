/* SPDX-License-Identifier: MIT
 *
 * The protocol between parent and child, spoken over a socket pair by a side that may stammer. */
#include "../harness/talk.h"

#include <criterion/criterion.h>
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

TestSuite(talk, .timeout = 20);

/* Two ends; what the test writes to `peer` is what `t` reads. */
struct wire {
    struct talk t;
    int peer;
};

static struct wire wire_open(double patience_s)
{
    int ends[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    return (struct wire){.t = {.fd = ends[0], .patience_s = patience_s}, .peer = ends[1]};
}

static void wire_close(struct wire *w)
{
    close(w->t.fd);
    close(w->peer);
}

static void say(const struct wire *w, const char *text, size_t n)
{
    for (size_t done = 0; done < n;) {
        const ssize_t sent = write(w->peer, text + done, n - done);
        cr_assert(sent > 0);
        done += (size_t)sent;
    }
}

static void say_line(const struct wire *w, const char *text) { say(w, text, strlen(text)); }

static void expect_line(struct wire *w, const char *want)
{
    char line[TALK_LINE];
    struct err e;

    cr_assert_eq(talk_read(&w->t, line, &e), OK, "%s", e.msg);
    cr_expect_str_eq(line, want);
}

static void expect_broken(struct wire *w, const char *message)
{
    char line[TALK_LINE];
    struct err e;

    cr_assert_eq(talk_read(&w->t, line, &e), E_CHILD);
    cr_expect_str_eq(e.msg, message);
}

/* ---- lines -------------------------------------------------------------------------------- */

Test(talk, lines_in_one_piece_and_in_many)
{
    struct wire w = wire_open(5);

    say_line(&w, "one\n\nthree\nfo");
    expect_line(&w, "one");
    expect_line(&w, "");
    expect_line(&w, "three");
    say_line(&w, "ur\n");
    expect_line(&w, "four");
    wire_close(&w);
}

Test(talk, the_longest_line_and_one_too_long)
{
    struct wire w = wire_open(5);
    char text[TALK_LINE + 1];

    memset(text, 'x', sizeof(text));
    text[TALK_LINE - 1] = '\n';
    say(&w, text, TALK_LINE);
    text[TALK_LINE - 1] = '\0';
    expect_line(&w, text);
    memset(text, 'y', sizeof(text));
    text[TALK_LINE] = '\n';
    say(&w, text, sizeof(text));
    expect_broken(&w, "sent a line of over 16384 characters");
    wire_close(&w);
}

Test(talk, a_line_cut_short_is_no_line)
{
    struct wire w = wire_open(5);

    say_line(&w, "sample 1 2");
    shutdown(w.peer, SHUT_WR);
    expect_broken(&w, "ended");
    wire_close(&w);
}

Test(talk, silence_has_an_end)
{
    struct wire w = wire_open(0.02);

    say_line(&w, "half a li");
    expect_broken(&w, "is silent for 0 s");
    wire_close(&w);
}

static volatile int interruptions;

static void on_signal(int number)
{
    (void)number;
    interruptions++;
}

/* A process that sends SIGUSR1 to this one until it is killed. */
static pid_t nag(void)
{
    const struct sigaction act = {.sa_handler = on_signal};
    const pid_t pid = (sigaction(SIGUSR1, &act, NULL), fork());

    cr_assert(pid >= 0);
    while (pid == 0) {
        usleep(20000);
        if (kill(getppid(), SIGUSR1) != 0)
            _exit(0);
    }
    return pid;
}

Test(talk, an_interruption_ends_only_the_waits_that_ask_for_it)
{
    struct wire w = wire_open(0.5);
    char line[TALK_LINE];
    struct err e;
    const pid_t pid = nag();

    w.t.stop = &interruptions;
    w.t.patience_s = 10;
    cr_expect_eq(talk_read(&w.t, line, &e), E_INTERRUPTED);
    w.t.stop = NULL;
    w.t.patience_s = 0.01;
    cr_expect_eq(talk_read(&w.t, line, &e), E_CHILD, "it waits on and loses patience");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
    wire_close(&w);
}

Test(talk, writing_to_the_dead_is_an_error_and_no_signal)
{
    struct wire w = wire_open(5);
    struct err e;

    close(w.peer);
    cr_expect_eq(talk_write(&w.t, &e, "place"), E_CHILD);
    cr_expect_str_eq(e.msg, "ended");
    close(w.t.fd);
}

/* A path of the user's may be longer than a line: an error, no fault of ours. */
Test(talk, a_line_too_long_to_send)
{
    struct wire w = wire_open(5);
    char text[TALK_LINE + 1];
    struct err e;

    memset(text, 'x', TALK_LINE);
    text[TALK_LINE] = '\0';
    cr_expect_eq(talk_write(&w.t, &e, "score %s", text), E_CHILD);
    cr_expect(strstr(e.msg, "over 16382 characters"), "%s", e.msg);
    text[TALK_LINE - 2] = '\0';
    cr_expect_eq(talk_write(&w.t, &e, "%s", text), OK);
    wire_close(&w);
}

/* ---- reports ------------------------------------------------------------------------------ */

static struct report full_report(void)
{
    struct report r = {.max_abs_err = NAN, .max_rel_err = 0.1, .nmse = INFINITY};

    snprintf(r.impl, sizeof(r.impl), "fused");
    snprintf(r.config, sizeof(r.config), "OpenBLAS 0.3.21 DYNAMIC_ARCH with blanks ");
    r.arena_bytes = 9007199254740992.0;
    r.threads_seen = 2;
    for (int p = 0; p < PART_COUNT; p++)
        r.part_bytes[p] = 1e9 * p + 0.5;
    return r;
}

Test(talk, reports_cross_unharmed)
{
    struct wire w = wire_open(5);
    struct talk back = {.fd = w.peer, .patience_s = 5};
    const struct report sent = full_report();
    struct report got = {0};
    struct err e;

    cr_assert_eq(talk_write_report(&back, &sent, &e), OK, "%s", e.msg);
    cr_assert_eq(talk_read_report(&w.t, &got, &e), OK, "%s", e.msg);
#define X(name) cr_expect_str_eq(got.name, sent.name);
    REPORT_TEXTS(X)
#undef X
#define X(name)                                                                                    \
    cr_expect(got.name == sent.name || (isnan(got.name) && isnan(sent.name)), #name " %g, not %g", \
              got.name, sent.name);
    REPORT_REALS(X)
#undef X
    for (int p = 0; p < PART_COUNT; p++)
        cr_expect_eq(got.part_bytes[p], sent.part_bytes[p]);
    wire_close(&w);
}

Test(talk, unknown_fields_are_ignored)
{
    struct wire w = wire_open(5);
    struct report r = {0};
    struct err e;

    say_line(&w, "colour of the CPU green\nflop 12\npart99 4\npart-1 4\npart1x 4\nend\n");
    cr_expect_eq(talk_read_report(&w.t, &r, &e), OK, "%s", e.msg);
    cr_expect_eq(r.flop, 12);
    for (int p = 0; p < PART_COUNT; p++)
        cr_expect_eq(r.part_bytes[p], 0);
    wire_close(&w);
}

Test(talk, a_text_too_long_is_cut)
{
    struct wire w = wire_open(5);
    struct report r = {0};
    char line[1024] = "impl ";
    struct err e;

    memset(line + 5, 'i', 600);
    strcpy(line + 605, "\nflop 3\nend\n");
    say_line(&w, line);
    cr_expect_eq(talk_read_report(&w.t, &r, &e), OK, "%s", e.msg);
    cr_expect_eq(strlen(r.impl), REPORT_TEXT - 1);
    cr_expect_eq(r.flop, 3);
    wire_close(&w);
}

Test(talk, garbage_in_a_report)
{
    struct wire w = wire_open(5);
    struct report r = {0};
    struct err e;

    say_line(&w, "flop 1\nSegmentation\n");
    cr_expect_eq(talk_read_report(&w.t, &r, &e), E_CHILD);
    cr_expect_str_eq(e.msg, "sent \"Segmentation\" in a report");
    wire_close(&w);
}

Test(talk, a_report_cut_short)
{
    struct wire w = wire_open(5);
    struct report r = {0};
    struct err e;

    say_line(&w, "flop 1\nbytes 2\n");
    shutdown(w.peer, SHUT_WR);
    cr_expect_eq(talk_read_report(&w.t, &r, &e), E_CHILD);
    cr_expect_str_eq(e.msg, "ended");
    wire_close(&w);
}

/* ---- failures ----------------------------------------------------------------------------- */

Test(talk, failures_carry_their_status)
{
    struct err e = {""};

    cr_expect_eq(talk_failure("fail 3 no memory  -> lower --seq", &e), E_NOMEM);
    cr_expect_str_eq(e.msg, "no memory  -> lower --seq");
    cr_expect_eq(talk_failure("sample 1 2 3", &e), OK);
    cr_expect_eq(talk_failure("failure 3 x", &e), OK);
    cr_expect_eq(talk_failure("fail x", &e), OK);
}

/* A failure without a status that we know is still a failure. */
Test(talk, failures_of_an_unknown_kind)
{
    const char *const lines[] = {"fail 0 fine?", "fail -7 x", "fail 99 x"};

    for (size_t i = 0; i < ARRAY_LEN(lines); i++) {
        struct err e = {""};
        cr_expect_eq(talk_failure(lines[i], &e), E_CHILD, "%s", lines[i]);
        cr_expect_str_eq(e.msg, lines[i] + strcspn(lines[i] + 5, " ") + 6);
    }
}

Test(talk, a_failure_instead_of_a_report)
{
    struct wire w = wire_open(5);
    struct report r = {0};
    struct err e;

    say_line(&w, "fail 2 no such thing\n");
    cr_expect_eq(talk_read_report(&w.t, &r, &e), E_UNSUPPORTED);
    cr_expect_str_eq(e.msg, "no such thing");
    wire_close(&w);
}

/* ---- the child's side --------------------------------------------------------------------- */

/* A child that serves the orders in `orders`, and then sees the line end. Returns its exit code;
 * `said` is everything that it answered. */
static int serve(const char *orders, char *said, size_t size)
{
    struct wire w = wire_open(10);
    size_t n = 0;
    int how = 0;
    const pid_t pid = fork();

    cr_assert(pid >= 0);
    if (pid == 0) {
        close(w.peer);
        _exit(serve_talk(&w.t, NULL, ROLE_NONE, -1));
    }
    close(w.t.fd);
    say_line(&w, orders);
    shutdown(w.peer, SHUT_WR);
    for (ssize_t got; n + 1 < size && (got = read(w.peer, said + n, size - 1 - n)) > 0;)
        n += (size_t)got;
    said[n] = '\0';
    close(w.peer);
    cr_assert_eq(waitpid(pid, &how, 0), pid);
    cr_assert(WIFEXITED(how), "the child died of signal %d", WTERMSIG(how));
    return WEXITSTATUS(how);
}

#define CELL                                                                                       \
    "--variant xl --backend ref --workload layer --seq 4 --mem 2 --d-model 16 --heads 2 --threads " \
    "1 --pin none"

static int count_lines(const char *text, const char *line)
{
    int n = 0;

    for (const char *at = text; (at = strstr(at, line)); at++)
        n += at == text || at[-1] == '\n';
    return n;
}

Test(talk, a_whole_conversation)
{
    char said[16384];

    cr_expect_eq(serve("open " CELL "\nplace\nblock 2 1\nblock 1 0\nclose\n", said, sizeof(said)),
                 0);
    cr_expect_eq(count_lines(said, TALK_HELLO "\n"), 1);
    cr_expect_eq(count_lines(said, "end\n"), 3, "%s", said);
    cr_expect_eq(count_lines(said, "sample "), 2, "%s", said);
    cr_expect_eq(count_lines(said, "fail "), 0, "%s", said);
}

Test(talk, a_child_answers_nonsense_with_a_failure)
{
    static const char *const orders[] = {"block", "block 0 1", "block many 1", "dance", "", "open x"};
    char said[16384], line[512];

    for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
        snprintf(line, sizeof(line), "open " CELL "\n%s\nplace\nblock 1 0\nclose\n", orders[i]);
        cr_expect_eq(serve(line, said, sizeof(said)), 0, "%s", orders[i]);
        cr_expect_eq(count_lines(said, "fail 6 an order that makes no sense"), 1, "%s: %s",
                     orders[i], said);
        cr_expect_eq(count_lines(said, "sample "), 1, "%s goes on", orders[i]);
    }
}

Test(talk, a_child_refuses_what_is_no_cell)
{
    static const char *const orders[] = {
        "dance",
        "",
        "open",
        "open --variant nothing",
        "open --seq 1..",
        "open --variant xl --backend ref --seq 4,8 --mem 0 --threads 1",
        "score --ckpt nothing --corpus nothing --seq 4 --mem 0 --backend ref --threads 1",
    };
    char said[16384], line[512];

    for (size_t i = 0; i < ARRAY_LEN(orders); i++) {
        snprintf(line, sizeof(line), "%s\n", orders[i]);
        cr_expect_neq(serve(line, said, sizeof(said)), 0, "%s", orders[i]);
        cr_expect_eq(count_lines(said, "fail "), 1, "%s: %s", orders[i], said);
        cr_expect_eq(count_lines(said, "end\n"), 0, "%s: %s", orders[i], said);
    }
}

Test(talk, a_child_whose_parent_is_gone_ends)
{
    char said[16384];

    cr_expect_neq(serve("", said, sizeof(said)), 0);
    cr_expect_neq(serve("open " CELL "\nplace\n", said, sizeof(said)), 0);
    cr_expect_neq(serve("open " CELL "\nplace\nblo", said, sizeof(said)), 0);
}
