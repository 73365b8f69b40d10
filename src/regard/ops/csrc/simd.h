// What all kernels share: SIMD vectors of the machine's width, by the vector extensions of GCC and Clang.
#pragma once
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#if defined(__AVX512F__) && defined(__AVX512BW__)
#define AVX512
#define SIMD_WIDTH 16 // floats in a vector
#define TILE_ROWS 12  // rows of a matrix in one tile: TILE_ROWS × 2 vectors of sums fill the registers
#else
#define SIMD_WIDTH 8
#define TILE_ROWS 6
#endif
#define TILE_COLUMNS (2 * SIMD_WIDTH) // activation rows in one tile

// What a function returns on failure; 0 is success.
enum { OUT_OF_MEMORY = 1, OUT_OF_RANGE = 2 };

#define INLINE static inline __attribute__((always_inline))
#define NOINLINE __attribute__((noinline))
#define UNROLL _Pragma("GCC unroll 16")

// Aligned as a single float: loads and stores may be unaligned.
typedef float vec __attribute__((vector_size(4 * SIMD_WIDTH), aligned(4)));
typedef int32_t ivec __attribute__((vector_size(4 * SIMD_WIDTH), aligned(4)));
typedef float four __attribute__((vector_size(16), aligned(4)));
typedef int32_t four_ints __attribute__((vector_size(16)));
#ifdef __clang__
#define SHUFFLE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define SHUFFLE(a, b, ...) __builtin_shuffle(a, b, (four_ints){__VA_ARGS__})
#endif

INLINE vec load(const float *from) { return *(const vec *)from; }
INLINE void store(float *to, vec lanes) { *(vec *)to = lanes; }

// The last floats of an array: a full vector, or fewer, padded with zeros.
INLINE vec load_partial(const float *from, long count) {
    if (count >= SIMD_WIDTH) return load(from);
    float buffer[SIMD_WIDTH] = {0};
    memcpy(buffer, from, count * sizeof(float));
    return load(buffer);
}

INLINE void store_partial(float *to, vec lanes, long count) {
    if (count >= SIMD_WIDTH) {
        store(to, lanes);
    } else {
        float buffer[SIMD_WIDTH];
        store(buffer, lanes);
        memcpy(to, buffer, count * sizeof(float));
    }
}

INLINE vec broadcast(float value) { return value - (vec){}; }
INLINE vec blend(ivec which, vec yes, vec no) { return (vec)(((ivec)yes & which) | ((ivec)no & ~which)); }
INLINE vec abs_vec(vec lanes) { return (vec)((ivec)lanes & 0x7fffffff); }
INLINE vec max_vec(vec one, vec other) { return blend(one > other, one, other); }
INLINE long min_long(long one, long other) { return one < other ? one : other; }
INLINE void *allocate(long bytes) { return aligned_alloc(64, (bytes + 63) / 64 * 64); }

// The sum across a vector, by halves: of 16 lanes, where there are so many, of 8, and of 4.
#define REDUCE_SUM(name, type, value)                                                                                  \
    INLINE value name(type lanes) {                                                                                    \
        typedef value eight_of __attribute__((vector_size(32)));                                                       \
        typedef value four_of __attribute__((vector_size(16)));                                                        \
        const char *bytes = (const char *)&lanes;                                                                      \
        eight_of eight, rest = {};                                                                                     \
        four_of low, high;                                                                                             \
        memcpy(&eight, bytes, 32);                                                                                     \
        if (SIMD_WIDTH > 8) memcpy(&rest, bytes + sizeof lanes - 32, 32);                                              \
        eight += rest;                                                                                                 \
        memcpy(&low, &eight, 16);                                                                                      \
        memcpy(&high, (const char *)&eight + 16, 16);                                                                  \
        low += high;                                                                                                   \
        return (low[0] + low[2]) + (low[1] + low[3]);                                                                  \
    }
REDUCE_SUM(reduce_sum, vec, float)
REDUCE_SUM(reduce_sum_ints, ivec, int32_t)

// The maximum across a vector, likewise.
INLINE float reduce_max(vec lanes) {
    typedef float eight_of __attribute__((vector_size(32)));
    typedef int32_t eight_ints __attribute__((vector_size(32)));
    eight_of one, other;
    memcpy(&one, &lanes, 32);
    memcpy(&other, (const char *)&lanes + sizeof lanes - 32, 32);
    eight_ints which = one > other;
    one = (eight_of)(((eight_ints)one & which) | ((eight_ints)other & ~which));
    float best = one[0];
    UNROLL for (int i = 1; i < 8; i++) best = one[i] > best ? one[i] : best;
    return best;
}

INLINE float dot_product(const float *one, const float *other, long count) {
    vec sums[4] = {};
    long i = 0;
    for (; i + 4 * SIMD_WIDTH <= count; i += 4 * SIMD_WIDTH)
        UNROLL for (int v = 0; v < 4; v++) sums[v] += load(one + i + v * SIMD_WIDTH) * load(other + i + v * SIMD_WIDTH);
    for (; i + SIMD_WIDTH <= count; i += SIMD_WIDTH) sums[0] += load(one + i) * load(other + i);
    float total = reduce_sum((sums[0] + sums[1]) + (sums[2] + sums[3]));
    for (; i < count; i++) total += one[i] * other[i];
    return total;
}

#define MAGIC 12582912.0f // 1.5 · 2^23: adding it rounds a float below 2^22 to an integer
INLINE vec round_vec(vec x) { return (x + MAGIC) - MAGIC; }
INLINE ivec round_to_ints(vec x) { return __builtin_convertvector(round_vec(x), ivec); }

// e^x for x ≤ 0, relative error 2e-7: 2^n e^r with |r| ≤ ln 2 / 2, e^r by its Taylor series; 0 below -87; NaN stays
// NaN.
INLINE vec exp_vec(vec x) {
    vec n = round_vec(x * 1.44269504f);
    vec r = x - n * 0.693359375f + n * 2.12194440e-4f; // ln 2 as a sum of two floats, the first with few bits
    vec series = broadcast(1.0f / 5040);
    series = series * r + 1.0f / 720;
    series = series * r + 1.0f / 120;
    series = series * r + 1.0f / 24;
    series = series * r + 1.0f / 6;
    series = series * r + 0.5f;
    series = series * r + 1.0f;
    series = series * r + 1.0f;
    ivec power = (__builtin_convertvector(n, ivec) + 127) << 23;
    return blend(x < -87.0f, broadcast(0), series * (vec)power);
}

// Interleave two vectors: their first halves, or their second.
#if SIMD_WIDTH == 16
#define FIRST_HALVES 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23
#define SECOND_HALVES 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31
#else
#define FIRST_HALVES 0, 8, 1, 9, 2, 10, 3, 11
#define SECOND_HALVES 4, 12, 5, 13, 6, 14, 7, 15
#endif
#ifdef __clang__
#define INTERLEAVE(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define INTERLEAVE(a, b, ...) __builtin_shuffle(a, b, (ivec){__VA_ARGS__})
#endif

// Transpose a SIMD_WIDTH × SIMD_WIDTH block: interleave each row with the one half a block away, log2(SIMD_WIDTH)
// times.
INLINE void transpose_block(const float *from, long from_stride, float *to, long to_stride) {
    vec one[SIMD_WIDTH], other[SIMD_WIDTH];
    UNROLL for (int r = 0; r < SIMD_WIDTH; r++) one[r] = load(from + r * from_stride);
    UNROLL for (int done = 1; done < SIMD_WIDTH; done *= 2) {
        UNROLL for (int r = 0; r < SIMD_WIDTH / 2; r++) {
            other[2 * r] = INTERLEAVE(one[r], one[r + SIMD_WIDTH / 2], FIRST_HALVES);
            other[2 * r + 1] = INTERLEAVE(one[r], one[r + SIMD_WIDTH / 2], SECOND_HALVES);
        }
        UNROLL for (int r = 0; r < SIMD_WIDTH; r++) one[r] = other[r];
    }
    UNROLL for (int c = 0; c < SIMD_WIDTH; c++) store(to + c * to_stride, one[c]);
}

INLINE void transpose_four(const float *from, long from_stride, float *to, long to_stride) {
    four a = *(const four *)from, b = *(const four *)(from + from_stride);
    four d = *(const four *)(from + 2 * from_stride), e = *(const four *)(from + 3 * from_stride);
    four ab = SHUFFLE(a, b, 0, 4, 1, 5), ab2 = SHUFFLE(a, b, 2, 6, 3, 7);
    four de = SHUFFLE(d, e, 0, 4, 1, 5), de2 = SHUFFLE(d, e, 2, 6, 3, 7);
    *(four *)to = SHUFFLE(ab, de, 0, 1, 4, 5);
    *(four *)(to + to_stride) = SHUFFLE(ab, de, 2, 3, 6, 7);
    *(four *)(to + 2 * to_stride) = SHUFFLE(ab2, de2, 0, 1, 4, 5);
    *(four *)(to + 3 * to_stride) = SHUFFLE(ab2, de2, 2, 3, 6, 7);
}

// to[c][r] = from[r][c], in blocks as large as fit.
static inline void transpose(const float *from, long from_stride, float *to, long to_stride, long rows, long columns) {
    for (long r = 0, high; r < rows; r += high) {
        high = rows - r >= SIMD_WIDTH ? SIMD_WIDTH : rows - r >= 4 ? 4 : 1;
        for (long c = 0, wide; c < columns; c += wide) {
            const float *at = from + r * from_stride + c;
            float *there = to + c * to_stride + r;
            if (high == SIMD_WIDTH && columns - c >= SIMD_WIDTH) {
                wide = SIMD_WIDTH;
                transpose_block(at, from_stride, there, to_stride);
            } else if (high >= 4 && columns - c >= 4) {
                wide = 4;
                for (long i = 0; i < high; i += 4)
                    transpose_four(at + i * from_stride, from_stride, there + i, to_stride);
            } else {
                wide = 1;
                for (long i = 0; i < high; i++) there[i] = at[i * from_stride];
            }
        }
    }
}
