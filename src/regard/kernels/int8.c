// x Wᵀ + b for words x (M, K) and a matrix W (N, K) of int8 with a scale a row.
//
// Each word is scaled by its own largest number to whole numbers of up to 16 bits, so many that no sum overflows; the
// sums are exact, and no word's result depends on the words beside it. Numbers are multiplied in pairs, as the machine
// does it: 16 bits by 16 bits, two products added to a sum of 32. Else it goes as in linear.c, a vector of words at a
// time; few words are multiplied with each row as they stand.
#include "vectors.h"
#include <math.h>
#include <omp.h>

#ifdef __AVX2__
#include <immintrin.h>

#define CHUNK 1024          // numbers of a row of W that are near at once
#define STRIDE (CHUNK + 32) // their distance: no power of two
#define PAIR 2
#define FEW 8   // words up to which none is turned
#define AT_ONCE 12 // rows of W that are multiplied at once

#ifdef AVX512
typedef __m512i wide;
INLINE wide load_wide(const void *from) { return _mm512_loadu_si512(from); }
INLINE void store_wide(void *to, wide numbers) { _mm512_storeu_si512(to, numbers); }
INLINE wide widened(const int8_t *from) { return _mm512_cvtepi8_epi16(_mm256_loadu_si256((const void *)from)); }
INLINE wide pair_everywhere(const int16_t *pair) {
    int32_t both;
    memcpy(&both, pair, sizeof both);
    return _mm512_set1_epi32(both);
}
INLINE wide add_pairs(wide sum, wide one, wide other) {
#ifdef __AVX512VNNI__
    return _mm512_dpwssd_epi32(sum, one, other);
#else
    return _mm512_add_epi32(sum, _mm512_madd_epi16(one, other));
#endif
}
#else
typedef __m256i wide;
INLINE wide load_wide(const void *from) { return _mm256_loadu_si256(from); }
INLINE void store_wide(void *to, wide numbers) { _mm256_storeu_si256(to, numbers); }
INLINE wide widened(const int8_t *from) { return _mm256_cvtepi8_epi16(_mm_loadu_si128((const void *)from)); }
INLINE wide pair_everywhere(const int16_t *pair) {
    int32_t both;
    memcpy(&both, pair, sizeof both);
    return _mm256_set1_epi32(both);
}
INLINE wide add_pairs(wide sum, wide one, wide other) { return _mm256_add_epi32(sum, _mm256_madd_epi16(one, other)); }
#endif
#define WIDE (2 * LANES) // numbers of 16 bits in a vector

int int8_is_here(void) { return 1; }

// x (K) is about level · rounded (K). NaN and infinity make the level NaN.
static void round_word(const float *x, long k, float most, float *level, int16_t *rounded) {
    vec best = {}, damage = {};
    for (long i = 0; i < k; i += LANES) {
        vec numbers = load(x + i);
        best = larger((vec)((ints)numbers & 0x7fffffff), best);
        damage += numbers * 0; // NaN where it is no number
    }
    float largest = largest_of(best), damaged = sum_of(damage);
    *level = largest / most + damaged;
    vec factor = all(largest > 1e-30f && damaged == 0 ? most / largest : 0);
    for (long i = 0; i < k; i += LANES) {
        ints whole = whole_of(load(x + i) * factor);
        for (int lane = 0; lane < LANES; lane++) rounded[i + lane] = (int16_t)whole[lane];
    }
}

INLINE void dot(const int count, const int16_t *rounded, long k, const int8_t *row, int32_t *sums) {
    wide sum[FEW];
    UNROLL for (int m = 0; m < count; m++) sum[m] = (wide){};
    for (long i = 0; i < k; i += WIDE) {
        wide numbers = widened(row + i);
        UNROLL for (int m = 0; m < count; m++) sum[m] = add_pairs(sum[m], numbers, load_wide(rounded + m * k + i));
    }
    UNROLL for (int m = 0; m < count; m++) sums[m] = whole_sum_of((ints)sum[m]);
}

// The products of few rounded words with a row; a function of its own, so that each sum has a register.
static ALONE void few(long words, const int16_t *rounded, long k, const int8_t *row, int32_t *sums) {
    switch (words) {
    case 1: return dot(1, rounded, k, row, sums);
    case 2: return dot(2, rounded, k, row, sums);
    case 3: return dot(3, rounded, k, row, sums);
    case 4: return dot(4, rounded, k, row, sums);
    case 5: return dot(5, rounded, k, row, sums);
    case 6: return dot(6, rounded, k, row, sums);
    case 7: return dot(7, rounded, k, row, sums);
    case 8: return dot(8, rounded, k, row, sums);
    }
}

// sums[r][m] += Σ near[r][i] words[i][m], for AT_ONCE rows and a vector of words.
static ALONE void add_products(const int16_t *near, const int16_t *words, long length, int32_t *sums, long stride,
                               const int8_t *ahead, long ahead_stride) {
    wide sum[AT_ONCE];
    UNROLL for (int r = 0; r < AT_ONCE; r++) sum[r] = load_wide(sums + r * stride);
    for (long i = 0; i < length; i += PAIR) {
        if (ahead && i % 64 == 0) // a line of memory has 64 numbers
            for (int r = 0; r < AT_ONCE; r++) __builtin_prefetch(ahead + r * ahead_stride + i, 0, 2);
        wide word = load_wide(words + i * LANES);
        UNROLL for (int r = 0; r < AT_ONCE; r++) sum[r] = add_pairs(sum[r], word, pair_everywhere(near + r * STRIDE + i));
    }
    UNROLL for (int r = 0; r < AT_ONCE; r++) store_wide(sums + r * stride, sum[r]);
}

// K is a multiple of 64. 0, or 1 where memory is short. bias (N) may be missing. out is (M, N).
int linear_int8(const float *x, const int8_t *weight, const float *scales, const float *bias, float *out, long words,
                long n, long k, float most, int threads) {
    long padded = words <= FEW ? words : (words + LANES - 1) / LANES * LANES;
    int16_t *rounded = room_for(words * k * sizeof(int16_t));
    int16_t *turned = room_for(padded * k * sizeof(int16_t));
    int32_t *every_sum = room_for(threads * AT_ONCE * padded * sizeof(int32_t));
    float *levels = calloc(padded, sizeof(float));
    int short_of_memory = !rounded || !turned || !every_sum || !levels;
#pragma omp parallel num_threads(threads) if (!short_of_memory)
    if (!short_of_memory) {
#pragma omp for
        for (long m = 0; m < words; m++) round_word(x + m * k, k, most, levels + m, rounded + m * k);
        int32_t *sums = every_sum + (long)omp_get_thread_num() * AT_ONCE * padded;
        if (words <= FEW) {
#pragma omp for
            for (long row = 0; row < n; row++) {
                few(words, rounded, k, weight + row * k, sums);
                for (long m = 0; m < words; m++)
                    out[m * n + row] = sums[m] * (levels[m] * scales[row]) + (bias ? bias[row] : 0);
            }
        } else {
#pragma omp for collapse(2)
            for (long first = 0; first < padded; first += LANES)
                for (long start = 0; start < k; start += 64) {
                    long given = smaller(LANES, words - first);
                    int16_t *to = turned + first * k + start * LANES;
                    if (given < LANES) memset(to, 0, 64 * LANES * sizeof(int16_t));
                    transpose((const float *)(rounded + first * k + start), k / PAIR, (float *)to, LANES, given, 64 / PAIR);
                }
            int16_t near[AT_ONCE * STRIDE];
            memset(near, 0, sizeof near);
#pragma omp for
            for (long row = 0; row < n; row += AT_ONCE) {
                long rows = smaller(AT_ONCE, n - row);
                memset(sums, 0, AT_ONCE * padded * sizeof(int32_t));
                for (long start = 0; start < k; start += CHUNK) {
                    long length = smaller(CHUNK, k - start);
                    const int8_t *from = weight + row * k + start;
                    for (long r = 0; r < rows; r++)
                        for (long i = 0; i < length; i++) near[r * STRIDE + i] = from[r * k + i];
                    for (long first = 0; first < padded; first += LANES) {
                        const int8_t *ahead = first == 0 && row + 2 * AT_ONCE <= n ? from + AT_ONCE * k : 0;
                        const int16_t *panel = turned + first * k + start * LANES;
                        add_products(near, panel, length, sums + first, padded, ahead, k);
                    }
                }
                float *results = (float *)sums; // in the same place
                for (long r = 0; r < rows; r++)
                    for (long m = 0; m < padded; m += LANES) {
                        vec exact = __builtin_convertvector(*(ints *)(sums + r * padded + m), vec);
                        vec result = exact * (load(levels + m) * scales[row + r]) + (bias ? bias[row + r] : 0);
                        store(results + r * padded + m, result);
                    }
                for (long m = 0; m < words; m += 4) // a few words at a time: a line is written whole before it is left
                    transpose(results + m, padded, out + m * n + row, n, rows, smaller(4, words - m));
            }
        }
    }
    free(rounded);
    free(turned);
    free(every_sum);
    free(levels);
    return short_of_memory;
}
#else
int int8_is_here(void) { return 0; }
int linear_int8(const float *x, const int8_t *weight, const float *scales, const float *bias, float *out, long words,
                long n, long k, float most, int threads) {
    (void)x, (void)weight, (void)scales, (void)bias, (void)out, (void)words, (void)n, (void)k, (void)most, (void)threads;
    return 1;
}
#endif
