// Products of words with a matrix W (N, K) of int8 that has a scale a row; K is a multiple of 64.
//
// Each word is scaled by its own largest number to whole numbers of up to 16 bits, so many that no sum overflows; the
// sums are exact, and no word's result depends on the words beside it. Numbers are multiplied in pairs, as the machine
// does it: 16 bits by 16 bits, two products added to a sum of 32. Else it goes as in linear.c, but
// rows are copied before they are multiplied; few words are multiplied with each row as they stand.
#pragma once
#include "simd.h"

#ifdef __AVX2__
#include <immintrin.h>

#define CHUNK 1024          // numbers of a row of W that are near at once
#define STRIDE (CHUNK + 32) // their distance: no power of two
#define PAIR 2
#define TINY 1.2e-38f // the square of what is smaller is no number any more
#define TURNED 64 // columns of the words that are turned at once
#define FEW 8     // words up to which none is turned
#define WIDE (2 * SIMD_WIDTH) // numbers of 16 bits in a vector

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

// Words x (M, K) in whole numbers: x[m] is about levels[m] · rounded[m].
typedef struct {
    long words, k, padded;     // padded: room for whole vectors of words, or as many as there are, where they are few
    int16_t *rounded, *turned; // (M, K), and in panels of two vectors of words, (K, TILE_COLUMNS)
    float *levels;             // (padded)
} whole_words;

// 0, or 1 where memory is short.
INLINE int make_room(whole_words *w) {
    int few = w->words <= FEW;
    w->padded = few ? w->words : (w->words + SIMD_WIDTH - 1) / SIMD_WIDTH * SIMD_WIDTH;
    w->rounded = allocate(w->words * w->k * sizeof(int16_t));
    w->turned = few ? 0 : allocate(w->padded * w->k * sizeof(int16_t));
    w->levels = calloc(w->padded, sizeof(float));
    return !w->rounded || (!few && !w->turned) || !w->levels;
}

INLINE void free_room(whole_words *w) {
    free(w->rounded);
    free(w->turned);
    free(w->levels);
}

// x (K) is about level · rounded (K). NaN and infinity make the level NaN.
static void round_word(const float *x, long k, float most, float *level, int16_t *rounded) {
    vec best = {}, damage = {};
    for (long i = 0; i < k; i += SIMD_WIDTH) {
        vec numbers = load(x + i);
        best = max_vec(abs_vec(numbers), best);
        damage += numbers * 0; // NaN where it is no number
    }
    float largest = reduce_max(best), damaged = reduce_sum(damage);
    *level = largest / most + damaged;
    vec factor = broadcast(largest > 1e-30f && damaged == 0 ? most / largest : 0);
    for (long i = 0; i < k; i += SIMD_WIDTH) {
        ivec whole = round_to_ints(load(x + i) * factor);
        for (int lane = 0; lane < SIMD_WIDTH; lane++) rounded[i + lane] = (int16_t)whole[lane];
    }
}

// Panel `first` of the words, columns `start` to `start + TURNED`, in pairs.
static void turn(const whole_words *w, long first, long start) {
    long width = min_long(TILE_COLUMNS, w->padded - first), given = min_long(width, w->words - first);
    int16_t *to = w->turned + first * w->k + start * width;
    if (given < width) memset(to, 0, TURNED * width * sizeof(int16_t));
    transpose((const float *)(w->rounded + first * w->k + start), w->k / PAIR, (float *)to, width, given, TURNED / PAIR);
}

// Called by all threads of a team.
static void round_words(const float *x, float most, const whole_words *w) {
#pragma omp for
    for (long m = 0; m < w->words; m++) round_word(x + m * w->k, w->k, most, w->levels + m, w->rounded + m * w->k);
    if (w->words <= FEW) return;
#pragma omp for collapse(2)
    for (long first = 0; first < w->padded; first += TILE_COLUMNS)
        for (long start = 0; start < w->k; start += TURNED) turn(w, first, start);
}

INLINE void dot(const int count, const int16_t *rounded, long k, const int8_t *row, int32_t *sums) {
    wide sum[FEW];
    UNROLL for (int m = 0; m < count; m++) sum[m] = (wide){};
    for (long i = 0; i < k; i += WIDE) {
        wide numbers = widened(row + i);
        UNROLL for (int m = 0; m < count; m++) sum[m] = add_pairs(sum[m], numbers, load_wide(rounded + m * k + i));
    }
    UNROLL for (int m = 0; m < count; m++) sums[m] = reduce_sum_ints((ivec)sum[m]);
}

// The products of few rounded words with a row; a function of its own, so that each sum has a register.
static NOINLINE void few(long words, const int16_t *rounded, long k, const int8_t *row, int32_t *sums) {
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

// sums[r][m] += Σ near[r][i] words[i][m], for TILE_ROWS rows and one or two vectors of words.
INLINE void add_products(const int vecs, const int16_t *near, const int16_t *words, long length, int32_t *sums,
                         long stride, const int8_t *ahead, long ahead_stride) {
    wide sum[TILE_ROWS][2];
    UNROLL for (int r = 0; r < TILE_ROWS; r++)
        UNROLL for (int v = 0; v < vecs; v++) sum[r][v] = load_wide(sums + r * stride + v * SIMD_WIDTH);
    for (long i = 0; i < length; i += PAIR) {
        if (ahead && i % 64 == 0) // a line of memory has 64 numbers
            for (int r = 0; r < TILE_ROWS; r++) __builtin_prefetch(ahead + r * ahead_stride + i, 0, 2);
        wide word[2];
        UNROLL for (int v = 0; v < vecs; v++) word[v] = load_wide(words + (i * vecs + v * PAIR) * SIMD_WIDTH);
        UNROLL for (int r = 0; r < TILE_ROWS; r++) {
            wide pair = pair_everywhere(near + r * STRIDE + i);
            UNROLL for (int v = 0; v < vecs; v++) sum[r][v] = add_pairs(sum[r][v], word[v], pair);
        }
    }
    UNROLL for (int r = 0; r < TILE_ROWS; r++)
        UNROLL for (int v = 0; v < vecs; v++) store_wide(sums + r * stride + v * SIMD_WIDTH, sum[r][v]);
}

static NOINLINE void one_vector(const int16_t *near, const int16_t *words, long length, int32_t *sums, long stride,
                             const int8_t *ahead, long ahead_stride) {
    add_products(1, near, words, length, sums, stride, ahead, ahead_stride);
}
static NOINLINE void two_vectors(const int16_t *near, const int16_t *words, long length, int32_t *sums, long stride,
                              const int8_t *ahead, long ahead_stride) {
    add_products(2, near, words, length, sums, stride, ahead, ahead_stride);
}

// sums[r][m] = Σ W[row + r][i] rounded[m][i] for TILE_ROWS rows, of which `rows` exist, and all words, `padded` apart.
static void multiply_rows(const whole_words *w, const int8_t *weight, long n, long row, long rows, int16_t *near,
                          int32_t *sums) {
    if (w->words <= FEW) {
        for (long r = 0; r < rows; r++) few(w->words, w->rounded, w->k, weight + (row + r) * w->k, sums + r * w->padded);
        return;
    }
    memset(sums, 0, TILE_ROWS * w->padded * sizeof(int32_t));
    for (long start = 0; start < w->k; start += CHUNK) {
        long length = min_long(CHUNK, w->k - start);
        const int8_t *from = weight + row * w->k + start;
        for (long r = 0; r < rows; r++)
            for (long i = 0; i < length; i += WIDE) store_wide(near + r * STRIDE + i, widened(from + r * w->k + i));
        for (long first = 0; first < w->padded; first += TILE_COLUMNS) {
            const int8_t *ahead = first == 0 && row + 2 * TILE_ROWS <= n ? from + TILE_ROWS * w->k : 0;
            int two = w->padded - first >= TILE_COLUMNS;
            const int16_t *panel = w->turned + first * w->k + start * (two ? TILE_COLUMNS : SIMD_WIDTH);
            (two ? two_vectors : one_vector)(near, panel, length, sums + first, w->padded, ahead, w->k);
        }
    }
}
#endif
