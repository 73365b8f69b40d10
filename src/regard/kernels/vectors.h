// What all kernels share: vectors as wide as the machine's registers, in the words of GCC and Clang.
#pragma once
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__AVX512F__) && defined(__AVX512BW__)
#define AVX512
#define LANES 16 // numbers in a vector
#define ROWS 12  // rows of a matrix that are multiplied at once: ROWS × 2 sums fill the registers
#else
#define LANES 8
#define ROWS 6
#endif
#define PANEL (2 * LANES) // words that are multiplied at once

#define INLINE static inline __attribute__((always_inline))
#define ALONE __attribute__((noinline))
#define UNROLL _Pragma("GCC unroll 16")

// Aligned as a single number is: they may begin anywhere.
typedef float vec __attribute__((vector_size(4 * LANES), aligned(4)));
typedef int32_t ints __attribute__((vector_size(4 * LANES), aligned(4)));
typedef float four __attribute__((vector_size(16), aligned(4)));
typedef int32_t four_places __attribute__((vector_size(16)));
#ifdef __clang__
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (four_places){__VA_ARGS__})
#endif

INLINE vec load(const float *from) { return *(const vec *)from; }
INLINE void store(float *to, vec numbers) { *(vec *)to = numbers; }

// The numbers that are left: a vector of them, or fewer, with zeros behind them.
INLINE vec load_some(const float *from, long count) {
    if (count >= LANES) return load(from);
    float room[LANES] = {0};
    memcpy(room, from, count * sizeof(float));
    return load(room);
}

INLINE void store_some(float *to, vec numbers, long count) {
    if (count >= LANES) {
        store(to, numbers);
    } else {
        float room[LANES];
        store(room, numbers);
        memcpy(to, room, count * sizeof(float));
    }
}

INLINE vec all(float number) { return number - (vec){}; }
INLINE vec choose(ints which, vec yes, vec no) { return (vec)(((ints)yes & which) | ((ints)no & ~which)); }
INLINE vec absolute(vec numbers) { return (vec)((ints)numbers & 0x7fffffff); }
INLINE vec larger(vec one, vec other) { return choose(one > other, one, other); }
INLINE long smaller(long one, long other) { return one < other ? one : other; }
INLINE void *room_for(long bytes) { return aligned_alloc(64, (bytes + 63) / 64 * 64); }

// The sum across a vector, folded in halves: of 16 numbers, where it has so many, of 8, and of 4.
#define SUM_OF(name, type, number)                                                                                     \
    INLINE number name(type numbers) {                                                                                 \
        typedef number eight_of __attribute__((vector_size(32)));                                                      \
        typedef number four_of __attribute__((vector_size(16)));                                                       \
        const char *bytes = (const char *)&numbers;                                                                    \
        eight_of eight, rest = {};                                                                                     \
        four_of low, high;                                                                                             \
        memcpy(&eight, bytes, 32);                                                                                     \
        if (LANES > 8) memcpy(&rest, bytes + sizeof numbers - 32, 32);                                                 \
        eight += rest;                                                                                                 \
        memcpy(&low, &eight, 16);                                                                                      \
        memcpy(&high, (const char *)&eight + 16, 16);                                                                  \
        low += high;                                                                                                   \
        return (low[0] + low[2]) + (low[1] + low[3]);                                                                  \
    }
SUM_OF(sum_of, vec, float)
SUM_OF(whole_sum_of, ints, int32_t)

INLINE float largest_of(vec numbers) {
    float best = numbers[0];
    UNROLL for (int i = 1; i < LANES; i++) best = numbers[i] > best ? numbers[i] : best;
    return best;
}

#define MAGIC 12582912.0f // 1.5 · 2^23: adding it rounds a float below 2^22 to a whole number
INLINE vec rounded_of(vec x) { return (x + MAGIC) - MAGIC; }
INLINE ints whole_of(vec x) { return __builtin_convertvector(rounded_of(x), ints); }

// e^x for x ≤ 0, right to 2e-7 of itself: 2^n e^r with |r| ≤ ln 2 / 2, e^r by its series; 0 below -87; NaN stays NaN.
INLINE vec exponential(vec x) {
    vec n = rounded_of(x * 1.44269504f);
    vec r = x - n * 0.693359375f + n * 2.12194440e-4f; // ln 2 in two parts, the first of few bits
    vec series = all(1.0f / 5040);
    series = series * r + 1.0f / 720;
    series = series * r + 1.0f / 120;
    series = series * r + 1.0f / 24;
    series = series * r + 1.0f / 6;
    series = series * r + 0.5f;
    series = series * r + 1.0f;
    series = series * r + 1.0f;
    ints power = (__builtin_convertvector(n, ints) + 127) << 23;
    return choose(x < -87.0f, all(0), series * (vec)power);
}

// to[c][r] = from[r][c], four by four.
static inline void transpose(const float *from, long from_stride, float *to, long to_stride, long rows, long columns) {
    long r = 0;
    for (; r + 4 <= rows; r += 4) {
        long c = 0;
        for (; c + 4 <= columns; c += 4) {
            const float *at = from + r * from_stride + c;
            four a = *(const four *)at, b = *(const four *)(at + from_stride);
            four d = *(const four *)(at + 2 * from_stride), e = *(const four *)(at + 3 * from_stride);
            four ab = SHUFFLE(a, b, 0, 4, 1, 5), ab2 = SHUFFLE(a, b, 2, 6, 3, 7);
            four de = SHUFFLE(d, e, 0, 4, 1, 5), de2 = SHUFFLE(d, e, 2, 6, 3, 7);
            float *there = to + c * to_stride + r;
            *(four *)there = SHUFFLE(ab, de, 0, 1, 4, 5);
            *(four *)(there + to_stride) = SHUFFLE(ab, de, 2, 3, 6, 7);
            *(four *)(there + 2 * to_stride) = SHUFFLE(ab2, de2, 0, 1, 4, 5);
            *(four *)(there + 3 * to_stride) = SHUFFLE(ab2, de2, 2, 3, 6, 7);
        }
        for (; c < columns; c++)
            for (int i = 0; i < 4; i++) to[c * to_stride + r + i] = from[(r + i) * from_stride + c];
    }
    for (; r < rows; r++)
        for (long c = 0; c < columns; c++) to[c * to_stride + r] = from[r * from_stride + c];
}
