/* SPDX-License-Identifier: MIT
 *
 * Mutations of safetensors files: 8 bytes with the length of the header, the header in JSON, data.
 */
#include "structure.h"

#include <float.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PREFIX = 8 };

static uint64_t next(uint64_t *state) /* splitmix64 */
{
    uint64_t z = *state += 0x9E3779B97F4A7C15u;

    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static size_t below(uint64_t *state, size_t n) { return n ? (size_t)(next(state) % n) : 0; }

struct span {
    size_t at, n;
};

/* Words of the header: texts in quotes and numbers. */
enum { WORDS = 4096 };
static int list_words(struct span *v, const char *header, size_t n)
{
    int words = 0;

    for (size_t i = 0; i < n && words < WORDS; i++) {
        size_t end = i;
        if (header[i] == '"') {
            for (end = ++i; end < n && header[end] != '"'; end++)
                end += header[end] == '\\';
        } else if (header[i] == '-' || (header[i] >= '0' && header[i] <= '9')) {
            while (end < n && strchr("+-.0123456789eE", header[end]))
                end++;
        } else {
            continue;
        }
        end = end < n ? end : n;
        v[words++] = (struct span){i, end - i};
        i = end;
    }
    return words;
}

/* Put `text` in place of a word, and set the length of the header. The new size, or the old one if
 * there is no room. */
static size_t replace(uint8_t *data, size_t size, size_t most, struct span word, const char *text,
                      size_t n)
{
    uint64_t header;

    if (size - word.n + n > most)
        return size;
    memmove(data + PREFIX + word.at + n, data + PREFIX + word.at + word.n,
            size - PREFIX - word.at - word.n);
    memcpy(data + PREFIX + word.at, text, n);
    memcpy(&header, data, PREFIX);
    header += n;
    header -= word.n;
    memcpy(data, &header, PREFIX);
    return size - word.n + n;
}

static size_t change_word(uint8_t *data, size_t size, size_t most, size_t header, uint64_t *state)
{
    /* clang-format off */
    static const char *const texts[] = {
        "0", "1", "2", "3", "-1", "7", "16", "64", "1000", "65536", "1048576", "nan", "inf",
        "-inf", "1e39", "1e-45", "2147483647", "0.5", "-2147483648", "none", "true", "", "layer",
        "post", "4294967296", "sandwich", "9223372036854775807", "xl", "rope", "linear",
        "window=3",
    };
    /* clang-format on */
    struct span *v = malloc(WORDS * sizeof(*v));
    CHECK(v != NULL);
    const int n = list_words(v, (const char *)data + PREFIX, header);

    if (n > 0) {
        const struct span word = v[below(state, (size_t)n)];
        char text[256];
        size_t length;
        if (below(state, 2)) { /* another word of the same file */
            const struct span other = v[below(state, (size_t)n)];
            length = other.n < sizeof(text) ? other.n : sizeof(text);
            memcpy(text, data + PREFIX + other.at, length);
        } else {
            const char *const one = texts[below(state, ARRAY_LEN(texts))];
            length = strlen(one);
            memcpy(text, one, length);
        }
        size = replace(data, size, most, word, text, length);
    }
    free(v);
    return size;
}

static void change_value(uint8_t *data, size_t size, size_t header, uint64_t *state)
{
    static const float values[] = {NAN,     INFINITY, -INFINITY, 0,    -0.0F, 1e-40F,
                                   FLT_MAX, -FLT_MAX, FLT_MIN,   1.0F, -1e20F};
    const size_t floats = (size - PREFIX - header) / sizeof(float);
    const float x = values[below(state, ARRAY_LEN(values))];

    if (floats > 0)
        memcpy(data + PREFIX + header + below(state, floats) * sizeof(float), &x, sizeof(x));
}

size_t mutate_safetensors(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    uint64_t state = seed, header = 0;

    if (size > PREFIX)
        memcpy(&header, data, PREFIX);
    if (size <= PREFIX || header > size - PREFIX || below(&state, 16) == 0)
        return LLVMFuzzerMutate(data, size, most);
    for (size_t times = 1 + below(&state, 3); times > 0; times--)
        if (below(&state, 5) == 0) {
            change_value(data, size, (size_t)header, &state);
        } else {
            size = change_word(data, size, most, (size_t)header, &state);
            memcpy(&header, data, PREFIX);
        }
    return size;
}

int memory_file(const void *bytes, size_t size, char path[MEMORY_PATH])
{
    const int fd = memfd_create("fuzz", MFD_CLOEXEC);

    CHECK(fd >= 0 && write(fd, bytes, size) == (ssize_t)size);
    snprintf(path, MEMORY_PATH, "/proc/self/fd/%d", fd);
    return fd;
}

const char *fuzz_folder(void)
{
    static char folder[] = "/tmp/bench-fuzz-XXXXXX";
    static bool made;

    if (!made)
        CHECK(mkdtemp(folder));
    made = true;
    return folder;
}

const char *fuzz_path(const char *name)
{
    static char path[96];

    snprintf(path, sizeof(path), "%s/%s", fuzz_folder(), name);
    return path;
}

const char *fuzz_put(const char *name, const void *bytes, size_t size)
{
    const char *const path = fuzz_path(name);
    FILE *const f = fopen(path, "wb");

    CHECK(f && fwrite(bytes, 1, size, f) == size && fclose(f) == 0);
    return path;
}
