/* SPDX-License-Identifier: MIT
 *
 * The protocol between parent and child, over a socket pair whose other side sends lines in pieces.
 */
#include "harness/worker/report.h"
#include "tests/support/failure.h"

#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>

TestSuite(protocol, .timeout = 240);

/* Two ends; what the test writes to `peer` is what `t` reads. */
struct wire {
    struct protocol t;
    int peer;
};

static struct wire wire_open(double patience_s)
{
    int ends[2];

    cr_assert_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends), 0);
    return (struct wire){.t = {.fd = ends[0], .patience_s = patience_s}, .peer = ends[1]};
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
    char line[PROTOCOL_LINE];

    MUST(protocol_read(&w->t, line, &failure));
    cr_expect_str_eq(line, want);
}

static void expect_broken(struct wire *w, enum status st, const char *message)
{
    char line[PROTOCOL_LINE];

    cr_assert_eq(protocol_read(&w->t, line, &failure), st);
    cr_expect_str_eq(failure.msg, message);
}

/* ---- lines -------------------------------------------------------------------------------- */

Test(protocol, lines_in_one_piece_and_in_many)
{
    struct wire w = wire_open(5);

    say_line(&w, "one\n\nthree\nfo");
    expect_line(&w, "one");
    expect_line(&w, "");
    expect_line(&w, "three");
    say_line(&w, "ur\n");
    expect_line(&w, "four");
}

Test(protocol, the_longest_line_and_one_too_long)
{
    struct wire w = wire_open(5);
    char text[PROTOCOL_LINE + 1];

    memset(text, 'x', sizeof(text));
    text[PROTOCOL_LINE - 1] = '\n';
    say(&w, text, PROTOCOL_LINE);
    text[PROTOCOL_LINE - 1] = '\0';
    expect_line(&w, text);
    memset(text, 'y', sizeof(text));
    text[PROTOCOL_LINE] = '\n';
    say(&w, text, sizeof(text));
    expect_broken(&w, E_CHILD, "sent a line of over 16384 characters");
}

Test(protocol, a_line_cut_short_is_no_line)
{
    struct wire w = wire_open(5);

    say_line(&w, "sample 1 2");
    shutdown(w.peer, SHUT_WR);
    expect_broken(&w, E_CHILD, "ended");
    cr_expect(w.t.ended);
}

Test(protocol, silence_has_an_end)
{
    struct wire w = wire_open(0.02);

    say_line(&w, "half a li");
    expect_broken(&w, E_TIMEOUT, "is silent for 0 s");
}

static volatile int interruptions;

static void on_signal(int number) { interruptions++; }

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

Test(protocol, an_interruption_ends_only_the_waits_that_ask_for_it)
{
    struct wire w = wire_open(0.5);
    char line[PROTOCOL_LINE];
    const pid_t pid = nag();

    w.t.stop = &interruptions;
    w.t.patience_s = 10;
    cr_expect_eq(protocol_read(&w.t, line, &failure), E_INTERRUPTED);
    cr_expect(w.t.interrupted);
    w.t.stop = NULL;
    w.t.patience_s = 0.01;
    cr_expect_eq(protocol_read(&w.t, line, &failure), E_TIMEOUT, "it waits on and loses patience");
    kill(pid, SIGKILL);
    waitpid(pid, NULL, 0);
}

Test(protocol, writing_to_the_dead_is_an_error_and_no_signal)
{
    struct wire w = wire_open(5);

    close(w.peer);
    cr_expect_eq(protocol_write(&w.t, &failure, "place"), E_CHILD);
    cr_expect_str_eq(failure.msg, "ended");
    close(w.t.fd);
}

/* A path of the user's may be longer than a line: an error, not a failed CHECK. */
Test(protocol, a_line_too_long_to_send)
{
    struct wire w = wire_open(5);
    char text[PROTOCOL_LINE + 1];

    memset(text, 'x', PROTOCOL_LINE);
    text[PROTOCOL_LINE] = '\0';
    REFUSED(protocol_write(&w.t, &failure, "score %s", text), E_CHILD, "over 16382 characters");
    text[PROTOCOL_LINE - 2] = '\0';
    cr_expect_eq(protocol_write(&w.t, &failure, "%s", text), OK);
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

Test(protocol, reports_cross_unharmed)
{
    struct wire w = wire_open(5);
    struct protocol back = {.fd = w.peer, .patience_s = 5};
    const struct report sent = full_report();
    struct report got = {0};

    MUST(report_send(&sent, &back, &failure));
    MUST(protocol_read_answer(&w.t, report_field, &got, &failure));
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
}

Test(protocol, unknown_fields_are_ignored)
{
    struct wire w = wire_open(5);
    struct report r = {0};

    say_line(&w, "colour of the CPU green\nflop 12\npart99 4\npart-1 4\npart1x 4\nend\n");
    cr_expect_eq(protocol_read_answer(&w.t, report_field, &r, &failure), OK, "%s", failure.msg);
    cr_expect_eq(r.flop, 12);
    for (int p = 0; p < PART_COUNT; p++)
        cr_expect_eq(r.part_bytes[p], 0);
}

Test(protocol, a_text_too_long_is_cut)
{
    struct wire w = wire_open(5);
    struct report r = {0};
    char line[1024] = "impl ";

    memset(line + 5, 'i', 600);
    strcpy(line + 605, "\nflop 3\nend\n");
    say_line(&w, line);
    cr_expect_eq(protocol_read_answer(&w.t, report_field, &r, &failure), OK, "%s", failure.msg);
    NUMBERS({strlen(r.impl), REPORT_TEXT - 1}, {r.flop, 3});
}

/* Garbage, an end, a failure. */
Test(protocol, what_is_no_report)
{
    static const struct {
        const char *said;
        enum status st;
        const char *why;
    } cases[] = {{"flop 1\nSegmentation\n", E_CHILD, "sent \"Segmentation\" in a report"},
                 {"flop 1\nbytes 2\n", E_CHILD, "ended"},
                 {"fail 2 no such thing\n", E_UNSUPPORTED, "no such thing"}};

    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct wire w = wire_open(5);
        struct report r = {0};
        say_line(&w, cases[i].said);
        shutdown(w.peer, SHUT_WR);
        cr_expect_eq(protocol_read_answer(&w.t, report_field, &r, &failure), cases[i].st, "%s",
                     cases[i].said);
        cr_expect_str_eq(failure.msg, cases[i].why);
    }
}

/* ---- failures ----------------------------------------------------------------------------- */

Test(protocol, failures_carry_their_status)
{
    cr_expect_eq(protocol_failure("fail 3 no memory  -> lower --seq", &failure), E_NOMEM);
    cr_expect_str_eq(failure.msg, "no memory  -> lower --seq");
    cr_expect_eq(protocol_failure("sample 1 2 3", &failure), OK);
    cr_expect_eq(protocol_failure("failure 3 x", &failure), OK);
    cr_expect_eq(protocol_failure("fail x", &failure), OK);
}

/* A failure with an unknown status is still a failure. */
Test(protocol, failures_of_an_unknown_kind)
{
    EACH_TEXT (line, "fail 0 fine?", "fail -7 x", "fail 99 x") {
        struct err e = {""};
        cr_expect_eq(protocol_failure(line, &e), E_CHILD, "%s", line);
        cr_expect_str_eq(e.msg, line + strcspn(line + 5, " ") + 6);
    }
}
