/* SPDX-License-Identifier: MIT
 *
 * The instruction is VEX.256.66.0F38.W0 50 /r (Intel, Software Developer's Manual 2): the bytes C4,
 * ~R ~X ~B 00010, 0 ~vvvv 1 01, 50, then a register or an address. Registers lie in the signal's
 * frame as XSAVE stores them: the lower halves of ymm in the legacy part, the upper ones in
 * component 2. */
#include "emulate_dot4_x86.h"

#include <cpuid.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#include <ucontext.h>

enum { XMM_AT = 160, HEADER_AT = 512, PARTS_SSE = 2, PARTS_AVX = 4, HALF = 16 };

/* to += sums of four products of `first`, unsigned, with the register `second`, or what lies at
 * `at`, signed. */
struct dot4 {
    int to, first, second;
    const void *at;      /* NULL: a register */
    const uint8_t *next; /* instruction */
};

static uint64_t general(const ucontext_t *c, int i)
{
    static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP,
                                  REG_RSI, REG_RDI, REG_R8,  REG_R9,  REG_R10, REG_R11,
                                  REG_R12, REG_R13, REG_R14, REG_R15};

    return (uint64_t)c->uc_mcontext.gregs[order[i]];
}

static int64_t displacement(const uint8_t *p, int bytes)
{
    int8_t one;
    int32_t four;

    memcpy(&one, p, sizeof(one));
    memcpy(&four, p, sizeof(four));
    return bytes == 1 ? one : bytes == 4 ? four : 0;
}

/* The address that begins with `modrm`; x and b are the fourth bits of index and base. */
static void decode_address(struct dot4 *d, const ucontext_t *c, const uint8_t *modrm, int x, int b)
{
    const int mod = *modrm >> 6, rm = *modrm & 7;
    const bool has_index = rm == 4, relative = rm == 5 && mod == 0;
    const int scaled = modrm[1], base = has_index ? scaled & 7 : rm;
    const bool no_base = base == 5 && mod == 0;
    const int bytes = mod == 1 ? 1 : mod == 2 || no_base ? 4 : 0;
    const uint8_t *const disp = modrm + 1 + has_index;
    const int index = (scaled >> 3 & 7) | x;
    uint64_t at = (uint64_t)displacement(disp, bytes);

    d->next = disp + bytes;
    if (has_index && index != 4)
        at += general(c, index) << (scaled >> 6);
    if (!no_base)
        at += general(c, base | b);
    d->at = (const void *)(uintptr_t)(at + (relative ? (uint64_t)(uintptr_t)d->next : 0));
}

static bool decode(struct dot4 *d, const ucontext_t *c)
{
    const uint8_t *const p = (const uint8_t *)(uintptr_t)c->uc_mcontext.gregs[REG_RIP];
    const uint8_t *const modrm = p + 4;

    if (p[0] != 0xc4 || (p[1] & 0x1f) != 2 || (p[2] & 0x87) != 0x05 || p[3] != 0x50)
        return false;
    const int r = p[1] & 0x80 ? 0 : 8, x = p[1] & 0x40 ? 0 : 8, b = p[1] & 0x20 ? 0 : 8;
    *d = (struct dot4){.to = (*modrm >> 3 & 7) | r,
                       .first = ~p[2] >> 3 & 15,
                       .second = (*modrm & 7) | b,
                       .next = modrm + 1};
    if (*modrm >> 6 != 3)
        decode_address(d, c, modrm, x, b);
    return true;
}

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
    struct dot4 d;
    uint8_t *to[2], *first[2], *second[2];

    if (!decode(&d, c)) {
        signal(number, SIG_DFL); /* the instruction runs again, and ends the process */
        return;
    }
    halves(to, c, d.to);
    halves(first, c, d.first);
    halves(second, c, d.second);
    for (int h = 0; h < 2; h++) {
        int32_t sum[HALF / 4];
        int8_t by[HALF];
        memcpy(sum, to[h], HALF);
        memcpy(by, d.at ? (const uint8_t *)d.at + h * HALF : second[h], HALF);
        for (int i = 0; i < HALF; i++)
            sum[i / 4] += first[h][i] * by[i];
        memcpy(to[h], sum, HALF);
    }
    c->uc_mcontext.gregs[REG_RIP] = (greg_t)(uintptr_t)d.next;
}

void emulate_avx_vnni(void)
{
    struct sigaction by_hand = {.sa_sigaction = on_illegal, .sa_flags = SA_SIGINFO};
    unsigned flags, unused;

    __cpuid_count(0xd, 2, upper_size, upper_at, flags, unused);
    sigemptyset(&by_hand.sa_mask);
    sigaction(SIGILL, &by_hand, NULL);
}
