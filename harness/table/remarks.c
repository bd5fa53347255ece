/* SPDX-License-Identifier: MIT
 *
 * Writes remarks as words and reads them back; a list holds each flag and its words once. */
#include "remarks.h"

#include "record.h"

static const struct {
    enum remark remark;
    const char *word;
} words[] = {
    {REMARK_UNCHECKED, "unchecked"}, {REMARK_NOISY, "noisy"},         {REMARK_FEW, "few"},
    {REMARK_SAMPLED, "sampled"},     {REMARK_THROTTLED, "throttled"}, {REMARK_BEYOND, "beyond"},
    {REMARK_MIXED, "mixed"},         {REMARK_CLOCK, "clock"},         {REMARK_OWN, "own"},
    {REMARK_EMBEDDED, "embedded"}};

void remarks_print(char *buf, size_t size, unsigned remarks)
{
    buf[0] = '\0';
    for (size_t i = 0; i < ARRAY_LEN(words); i++)
        if (remarks & words[i].remark)
            text_join(buf, size, " ", words[i].word);
}

unsigned remarks_of_row(const char *status, const char *status_detail)
{
    unsigned remarks = 0;

    if (strcmp(status, row_status_name[ROW_OK]) != 0)
        return 0;
    for (const char *at = status_detail; *at; at += strspn(at, " ")) {
        const size_t n = strcspn(at, " ");
        for (size_t i = 0; i < ARRAY_LEN(words); i++)
            if (strlen(words[i].word) == n && memcmp(at, words[i].word, n) == 0)
                remarks |= words[i].remark;
        at += n;
    }
    return remarks;
}
