/* SPDX-License-Identifier: MIT
 *
 * The instruction is VEX.256.66.0F38.W0 50 /r (Intel, Software Developer's Manual 2): reg += sums of
 * four products of vvvv, unsigned, with rm, signed. Registers lie in the signal's
 * frame as XSAVE stores them: the lower halves of ymm in the legacy part, the upper ones in
 * component 2. */
#include "emulate_dot4_x86.h"

#include "vex_x86.h"

#include <cpuid.h>
#include <signal.h>

enum { XMM_AT = 160, HEADER_AT = 512, PARTS_SSE = 2, PARTS_AVX = 4, HALF = 16 };

static unsigned upper_at, upper_size; /* of the upper halves in a frame */

/* Both halves of register i. An upper half that the frame leaves out is 0. */
static void halves(uint8_t *half[2], const ucontext_t *c, int i)
{
    uint8_t *const frame = (uint8_t *)c->uc_mcontext.fpregs;
    uint64_t parts;

    memcpy(&parts, frame + HEADER_AT, sizeof(parts));
    if (!(parts & PARTS_AVX))
        memset(frame + upper_at, 0, upper_size);
    if (!(parts & PARTS_SSE))
        memset(frame + XMM_AT, 0, (size_t)HALF * HALF);
    parts |= PARTS_SSE | PARTS_AVX;
    memcpy(frame + HEADER_AT, &parts, sizeof(parts));
    half[0] = frame + XMM_AT + i * HALF;
    half[1] = frame + upper_at + i * HALF;
}

static void on_illegal(int number, siginfo_t *info, void *context)
{
    ucontext_t *const c = context;
    const uint8_t *const p = (const uint8_t *)(uintptr_t)c->uc_mcontext.gregs[REG_RIP];
    uint8_t *to[2], *first[2], *second[2];

    if (p[0] != 0xc4 || (p[1] & 0x1f) != 2 || (p[2] & 0x87) != 0x05 || p[3] != 0x50) {
        signal(number, SIG_DFL); /* the instruction runs again, and ends the process */
        return;
    }
    const struct vex v = vex_decode(c, p);
    const uint8_t *const at = (const uint8_t *)(uintptr_t)(v.base + v.index);
    halves(to, c, v.reg);
    halves(first, c, v.vvvv);
    halves(second, c, v.rm);
    for (int h = 0; h < 2; h++) {
        int32_t sum[HALF / 4];
        int8_t by[HALF];
        memcpy(sum, to[h], HALF);
        memcpy(by, v.in_memory ? at + h * HALF : second[h], HALF);
        for (int i = 0; i < HALF; i++)
            sum[i / 4] += first[h][i] * by[i];
        memcpy(to[h], sum, HALF);
    }
    c->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)v.next;
}

void emulate_avx_vnni(void)
{
    struct sigaction by_hand = {.sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO};
    unsigned flags, unused;

    __cpuid_count(0xd, 2, upper_size, upper_at, flags, unused);
    sigemptyset(&by_hand.sa_mask);
    sigaction(SIGILL, &by_hand, NULL);
}
