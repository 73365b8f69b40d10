// x Wᵀ + b for words x (M, K) and a matrix W (N, K) of int8 with a scale a row; and how a matrix becomes such a one.
#include "int8.h"
#include <math.h>
#include <omp.h>

#ifdef __AVX2__
int int8_is_supported(void) { return 1; }

// Row n of a matrix (N, K) is about scales[n] · rounded[n], K filled up with zeros to `wide` numbers; what that leaves
// out has the length errors[n], the row itself sizes[n]; both are NaN where a number is. totals[n] is Σ rounded[n].
void quantize_rows(const float *weight, long n, long k, long wide, int8_t *rounded, float *scales, float *errors,
                float *sizes, int32_t *totals, int threads) {
#pragma omp parallel for num_threads(threads)
    for (long row = 0; row < n; row++) {
        const float *from = weight + row * k;
        int8_t *to = rounded + row * wide;
        vec best = {}, error = {}, size = {}, damage = {};
        ivec total = {};
        for (long i = 0; i < k; i += SIMD_WIDTH) best = max_vec(abs_vec(load_partial(from + i, k - i)), best);
        float scale = fmaxf(reduce_max(best), 1e-12f) / 127, factor = 1 / scale;
        for (long i = 0; i < k; i += SIMD_WIDTH) {
            vec numbers = load_partial(from + i, k - i), level = round_vec(numbers * factor), left = numbers - level * scale;
            ivec whole = __builtin_convertvector(level, ivec);
            for (long lane = 0; lane < min_long(SIMD_WIDTH, k - i); lane++) to[i + lane] = (int8_t)whole[lane];
            total += whole;
            damage += numbers * 0; // NaN where it is no number
            error += left * left;
            size += numbers * numbers;
        }
        memset(to + k, 0, wide - k);
        scales[row] = scale + reduce_sum(damage);
        errors[row] = sqrtf(reduce_sum(error) + k * TINY);
        sizes[row] = sqrtf(reduce_sum(size) + k * TINY);
        totals[row] = reduce_sum_ints(total);
    }
}

// 0, or 1 where memory is short. bias (N) may be missing. out is (M, N).
int linear_int8(const float *x, const int8_t *weight, const float *scales, const float *bias, float *out, long words,
                long n, long k, float most, int threads) {
    whole_words w = {.words = words, .k = k};
    int out_of_memory = make_room(&w);
    int32_t *every_sum = allocate(threads * TILE_ROWS * w.padded * sizeof(int32_t));
    out_of_memory |= !every_sum;
#pragma omp parallel num_threads(threads) if (!out_of_memory)
    if (!out_of_memory) {
        round_words(x, most, &w);
        int16_t near[TILE_ROWS * STRIDE];
        memset(near, 0, sizeof near);
        int32_t *sums = every_sum + (long)omp_get_thread_num() * TILE_ROWS * w.padded;
        float *results = (float *)sums; // in the same place
#pragma omp for
        for (long row = 0; row < n; row += TILE_ROWS) {
            long rows = min_long(TILE_ROWS, n - row);
            multiply_rows(&w, weight, n, row, rows, near, sums);
            for (long r = 0; r < rows; r++)
                for (long m = 0; m < w.padded; m++) {
                    float exact = sums[r * w.padded + m];
                    results[r * w.padded + m] = exact * (w.levels[m] * scales[row + r]) + (bias ? bias[row + r] : 0);
                }
            for (long m = 0; m < words; m += SIMD_WIDTH) // a few words at a time: a line is written whole before it is left
                transpose(results + m, w.padded, out + m * n + row, n, rows, min_long(SIMD_WIDTH, words - m));
        }
    }
    free_room(&w);
    free(every_sum);
    return out_of_memory;
}
#else
int int8_is_supported(void) { return 0; }
void quantize_rows(const float *weight, long n, long k, long wide, int8_t *rounded, float *scales, float *errors,
                float *sizes, int32_t *totals, int threads) {
    (void)weight, (void)n, (void)k, (void)wide, (void)rounded, (void)scales, (void)errors, (void)sizes, (void)totals;
    (void)threads;
}
int linear_int8(const float *x, const int8_t *weight, const float *scales, const float *bias, float *out, long words,
                long n, long k, float most, int threads) {
    (void)x, (void)weight, (void)scales, (void)bias, (void)out, (void)words, (void)n, (void)k, (void)most, (void)threads;
    return 1;
}
#endif
