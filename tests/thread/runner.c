/* SPDX-License-Identifier: MIT
 *
 * Runs the suites under ThreadSanitizer, in place of Criterion's library: that maps memory where
 * ThreadSanitizer has its own, and stops. A test is a child, --jobs of them at a time; results go
 * to
 * --tap in the form that scripts/test.sh reads. Only what our tests use of Criterion is here. */
#include <criterion/criterion.h>
#include <criterion/parameterized.h>

#include <fcntl.h>
#include <fnmatch.h>
#include <sanitizer/common_interface_defs.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { SLOWER = 10 /* time limits are those of a build without ThreadSanitizer */ };

/* The linker collects what the macros register. */
extern struct criterion_test *const __start_cr_tst[], *const __stop_cr_tst[];
extern struct criterion_suite *const __start_cr_sts[], *const __stop_cr_sts[];

struct criterion_options criterion_options;

/* ---- in the child: one test ---------------------------------------------------------------- */

static struct {
    const struct criterion_test *test;
    const struct criterion_test_extra_data *suite; /* NULL = none */
    void *param;
    jmp_buf end;
    bool failed, skipped;
    char *text; /* of failures, or why it is skipped */
    size_t size;
    FILE *to;
} now;

static void call(void (*f)(void))
{
    if (f)
        f();
}

void criterion_internal_test_setup(void)
{
    call(now.suite ? now.suite->init : NULL);
    call(now.test->data->init);
}

void criterion_internal_test_main(void (*f)(void))
{
    if (setjmp(now.end))
        return;
    if (now.test->data->kind_ == CR_TEST_PARAMETERIZED)
        ((void (*)(void *))f)(now.param);
    else
        f();
}

void criterion_internal_test_teardown(void)
{
    call(now.test->data->fini);
    call(now.suite ? now.suite->fini : NULL);
}

void criterion_abort_test(void) { longjmp(now.end, 1); }
void criterion_continue_test(void) {}
void cri_asserts_passed_incr(void) {}

void criterion_skip_test(const char *format, ...)
{
    va_list args;

    now.skipped = true;
    va_start(args, format);
    vfprintf(now.to, format, args);
    va_end(args);
    longjmp(now.end, 1);
}

void criterion_send_assert(struct criterion_assert_stats *stats)
{
    if (stats->passed)
        return;
    now.failed = true;
    fprintf(now.to, "\n  - %s:%u: |+\n    %s", stats->file, stats->line, stats->message);
}

char *cr_translate_assert_msg(int index, ...)
{
    va_list args;
    char *text = NULL;

    va_start(args, index);
    if (index == CRITERION_ASSERT_MSG_EXPR_FALSE)
        text = va_arg(args, char *);
    va_end(args);
    return strdup(text ? text : "the assertion failed");
}

int cr_asprintf(char **out, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    const int n = vasprintf(out, format, args);
    va_end(args);
    return n;
}

void cr_asprintf_free(char *text) { free(text); }

void cr_log(enum criterion_severity severity, const char *format, ...)
{
    va_list args;

    va_start(args, format);
    vfprintf(stderr, format, args);
    va_end(args);
}

/* ---- in the parent ------------------------------------------------------------------------- */

struct one {
    const struct criterion_test *test;
    const struct criterion_test_extra_data *suite;
    size_t param;
    pid_t pid;
};

static int tap;

static void say(const struct one *t, bool failed, bool skipped, const char *text)
{
    char *line;
    const int n = asprintf(&line, "%s - %s::%s%s%s\n", failed ? "not ok" : "ok", t->test->category,
                           t->test->name, skipped ? " # SKIP " : "", text);

    if (n < 0 || write(tap, line, (size_t)n) != n)
        abort();
    free(line);
}

static void run(const struct one *t, struct criterion_test_params p)
{
    now.test = t->test;
    now.suite = t->suite;
    now.param = (char *)p.params + t->param * p.size;
    now.to = open_memstream(&now.text, &now.size);
    const double limit = t->test->data->timeout > 0 ? t->test->data->timeout
                         : t->suite                 ? t->suite->timeout
                                                    : 0;
    alarm((unsigned)(limit * SLOWER));
    t->test->test();
    fclose(now.to);
    say(t, now.failed, now.skipped, now.text);
    exit(0);
}

/* What a child that ended has not said itself. */
static void judge(const struct one *t, int status)
{
    const int signal = t->test->data->signal, code = t->test->data->exit_code;
    char text[64];

    if (signal ? WIFSIGNALED(status) && WTERMSIG(status) == signal
               : code && WIFEXITED(status) && WEXITSTATUS(status) == code)
        say(t, false, false, "");
    else if (!WIFEXITED(status) || WEXITSTATUS(status) || signal || code) {
        snprintf(text, sizeof(text), "\n  - %s:%u: |+\n    ended with status %#x", "status",
                 t->test->data->line_, (unsigned)status);
        say(t, true, false, text);
    }
}

static const struct criterion_test_extra_data *suite_of(const struct criterion_test *t)
{
    for (struct criterion_suite *const *s = __start_cr_sts; s < __stop_cr_sts; s++)
        if (*s && strcmp((*s)->name, t->category) == 0)
            return (*s)->data;
    return NULL;
}

/* A race of two threads, in a child whose report goes nowhere: does its exit code tell of it? */
static bool sees_a_race(void)
{
    int status = 0;
    const pid_t pid = fork();

    if (pid == 0) {
        volatile int n = 0;
        __sanitizer_set_report_fd((void *)(intptr_t)open("/dev/null", O_WRONLY));
#pragma omp parallel num_threads(2)
        n = n + 1;
        exit(0);
    }
    return pid > 0 && waitpid(pid, &status, 0) == pid && WIFEXITED(status) && WEXITSTATUS(status);
}

static bool wait_for_one(struct one *running, int n)
{
    int status;
    const pid_t pid = wait(&status);

    for (int i = 0; i < n; i++)
        if (pid > 0 && running[i].pid == pid) {
            judge(&running[i], status);
            running[i].pid = 0;
        }
    return pid > 0;
}

int main(int argc, char **argv)
{
    const char *path = "/dev/stdout", *filter = "*";
    int jobs = 1, planned = 0;

    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--tap=", 6) == 0)
            path = argv[i] + 6;
        else if (strcmp(argv[i], "--filter") == 0 && i + 1 < argc)
            filter = argv[++i];
        else if (strcmp(argv[i], "--jobs") == 0 && i + 1 < argc)
            jobs = atoi(argv[++i]);
    }
    tap = open(path, O_WRONLY | O_CREAT | O_APPEND, 0644);
    struct one *const running = calloc((size_t)jobs, sizeof(*running));
    if (tap < 0 || !running)
        return 2;
    for (struct criterion_test *const *t = __start_cr_tst; t < __stop_cr_tst; t++) {
        char name[256];
        struct criterion_test_params p = {.length = 1};

        if (!*t)
            continue;
        snprintf(name, sizeof(name), "%s/%s", (*t)->category, (*t)->name);
        if (fnmatch(filter, name, FNM_EXTMATCH) != 0)
            continue;
        if ((*t)->data->kind_ == CR_TEST_PARAMETERIZED)
            p = (*t)->data->param_();
        for (size_t k = 0; k < p.length; k++, planned++) {
            int i = 0;
            while (i < jobs && running[i].pid)
                i++;
            if (i == jobs) {
                wait_for_one(running, jobs);
                for (i = 0; running[i].pid;)
                    i++;
            }
            running[i] = (struct one){*t, suite_of(*t), k, 0};
            fflush(NULL);
            if ((running[i].pid = fork()) == 0)
                run(&running[i], p);
        }
    }
    while (wait_for_one(running, jobs))
        ;
    dprintf(tap, "%s - runner::sees_a_race\n1..%d\n", sees_a_race() ? "ok" : "not ok", planned + 1);
    free(running);
    return 0;
}
